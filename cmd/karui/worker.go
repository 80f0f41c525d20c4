package main

import (
	"os"

	"github.com/spf13/cobra"

	"karui/convert"
)

// newWorkerCommand is what the conversion pool starts; people have no use for it.
func newWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:                convert.WorkerCommand,
		Short:              "Converts images for the karui process that started it",
		Hidden:             true,
		DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			// A worker has nothing to tidy up, and its exit codes are between it and the pool.
			os.Exit(convert.WorkerMain(args))
		},
	}
}
