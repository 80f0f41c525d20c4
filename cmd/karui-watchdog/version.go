package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// Set by the linker (-X main.version=v1.2.3 -X main.commit=...).
var (
	version = "development"
	commit  = "unknown"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Shows the version of karui-watchdog and of what it was built with",
		Example: "  karui-watchdog version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versions())
			return err
		},
	}
}

// versions is what `karui-watchdog version` and `karui-watchdog --version` print.
func versions() string {
	return fmt.Sprintf("karui-watchdog %s\ncommit %s\n%s %s/%s\n",
		version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
