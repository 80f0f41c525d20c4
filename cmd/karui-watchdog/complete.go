package main

import (
	"os"

	"github.com/spf13/cobra"

	"karui/watchdog/settings"
)

// completeNames lets the shell complete the sites of the configuration, for every
// command that takes one.
func completeNames(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "status", "degrade", "restore", "rehearse":
			cmd.ValidArgsFunction = siteIDs
		}
	}
}

// siteIDs reads the configuration that the command line names so far. Whoever presses
// the tab key may not be able to read it, or its secrets: then nothing is offered, and
// nothing is said.
func siteIDs(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	path, err := cmd.Flags().GetString("config")
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	loaded, err := settings.Load(path, os.Environ())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, s := range loaded.Value.Sites {
		ids = append(ids, s.ID)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
