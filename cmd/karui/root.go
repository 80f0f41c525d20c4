package main

import (
	"github.com/spf13/cobra"

	"karui/internal/command"
)

// commands lists the commands in the order in which the help shows them.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newServeCommand(),
		newDemoCommand(),
		newConvertCommand(),
		newAuditCommand(),
		newPurgeCommand(),
		newWarmCommand(),
		newDialCommand(),
		newPlaceCommand(),
		newRetryCommand(),
		newDrillCommand(),
		newHealthcheckCommand(),
		newConfigCommand(),
		newVersionCommand(),
		newWorkerCommand(),
		newDemoWatchdogCommand(),
		newDemoDiskCommand(),
		newDemoJanitorCommand(),
	}
}

func newRoot() *cobra.Command {
	root := command.Group(&cobra.Command{
		Use:   "karui",
		Short: "Puts WebP in front of a site that knows nothing about WebP",
		Long: `karui (軽い, "light") stands between Amazon CloudFront and a site's own origin
server. Browsers that can take WebP get it under the same URL, all others get
the file they asked for; when karui is in trouble, the original goes out.

Exit codes: 0 good, 1 failed, 2 wrong usage or configuration.`,
		Example: `  karui serve --origin https://www.example.com
  karui convert photos/ -o variants/
  karui config check --config /etc/karui/karui.yaml
  karui completion bash > /etc/bash_completion.d/karui`,
	})
	root.Version = versions()
	root.SetVersionTemplate("{{.Version}}")
	root.AddCommand(commands()...)
	completeNames(root)
	return root
}
