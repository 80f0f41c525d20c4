package main

import (
	"github.com/spf13/cobra"

	"karui/internal/command"
)

// commands lists the commands in the order in which the help shows them.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newRunCommand(),
		newCheckCommand(),
		newStatusCommand(),
		newDegradeCommand(),
		newRestoreCommand(),
		newRehearseCommand(),
		newConfigCommand(),
		newVersionCommand(),
	}
}

func newRoot() *cobra.Command {
	root := command.Group(&cobra.Command{
		Use:   "karui-watchdog",
		Short: "Takes karui out of a CloudFront distribution while it is down",
		Long: `karui-watchdog asks each site's proxy for a ping, from outside. When the proxy is
down, it puts the site's true origin first in the origin group of its CloudFront
distribution and tells the operators by mail; when the proxy is well again, it
puts it back.

Begin with 'karui-watchdog config check', then 'karui-watchdog rehearse SITE',
which proves before any outage that all of it would go through; then leave
'karui-watchdog run' running, on another machine than the proxy.

Exit codes: 0 good, 1 failed, 2 wrong usage or configuration.`,
		Example: `  karui-watchdog config check --config /etc/karui/watchdog.yaml
  karui-watchdog rehearse shop
  karui-watchdog run`,
	})
	root.Version = versions()
	root.SetVersionTemplate("{{.Version}}")
	root.AddCommand(commands()...)
	completeNames(root)
	return root
}
