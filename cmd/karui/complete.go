package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"karui/internal/server"
	"karui/proxy/dial"
)

// completion gives the words that a shell may offer for an argument or a flag.
type completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// completeNames lets the shell complete what the configuration names: the sites of
// --site, for every command that has it, places, and levels of the dial.
func completeNames(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeNames(cmd)
		if cmd.Flags().Lookup("site") != nil {
			if _, there := cmd.GetFlagCompletionFunc("site"); !there {
				if err := cmd.RegisterFlagCompletionFunc("site", siteIDs); err != nil {
					panic(err) // only for a flag that does not exist
				}
			}
		}
		switch cmd.Name() {
		case "place":
			cmd.ValidArgsFunction = placeArguments
		case "dial":
			cmd.ValidArgsFunction = dialArguments
		case "retry":
			cmd.ValidArgsFunction = inTurn([]string{"off", "auto"})
		}
	}
}

// inTurn completes one argument after the other from lists of their own.
func inTurn(lists ...[]string) completion {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(lists) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return lists[len(args)], cobra.ShellCompDirectiveNoFileComp
	}
}

// configured reads the configuration that the command line names so far. Whoever
// presses the tab key may not be able to read it, or its secrets: then nothing is
// offered, and nothing is said.
func configured(cmd *cobra.Command) (server.Config, bool) {
	path, err := cmd.Flags().GetString("config")
	if err != nil {
		return server.Config{}, false
	}
	loaded, err := server.Load(path, os.Environ())
	if err != nil {
		return server.Config{}, false
	}
	return loaded.Value, true
}

func siteIDs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var ids []string
	if c, ok := configured(cmd); ok {
		for _, s := range c.Sites {
			ids = append(ids, s.ID)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// placeArguments offers the places of the site that --site names, or of all.
func placeArguments(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if c, ok := configured(cmd); ok && len(args) == 0 {
		only, _ := cmd.Flags().GetString("site") // without the flag: all
		for _, s := range c.Sites {
			for _, p := range s.Origins {
				if (only == "" || s.ID == only) && !slices.Contains(names, p.Name) {
					names = append(names, p.Name)
				}
			}
		}
	}
	return inTurn(names, []string{"out", "in"})(cmd, args, begun)
}

// dialArguments offers the levels by name: a number is quick to type anyway.
func dialArguments(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	words := []string{"auto"}
	c, ok := configured(cmd)
	if ok && len(c.Dial.Levels) > 0 {
		for _, level := range c.Dial.Levels {
			words = append(words, level.Name)
		}
	} else {
		for _, level := range dial.Defaults() {
			words = append(words, level.Name)
		}
	}
	return inTurn(words)(cmd, args, begun)
}
