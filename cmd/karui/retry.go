package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"karui/internal/api"
	"karui/internal/command"
	"karui/internal/server"
)

func newRetryCommand() *cobra.Command {
	var a asking
	cmd := &cobra.Command{
		Use:   "retry [off | auto]",
		Short: "Shows if failed fetches are tried once more; switches that off, or on (auto)",
		Long: `Shows whether a request to an origin that failed is tried once more (retry.mode and
retry.level), or switches that off, for a festival say, when second tries would
only add to the load. auto is on: it follows the configuration's level, and karui's
own judgement: with over 20 % of tries failing, none is repeated. What is set holds at
once, and over a restart of karui.`,
		Example: `  karui retry
  karui retry off --for 6h
  karui retry auto`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 1 && (args[0] == "off" || args[0] == "auto") {
				return nil
			}
			return command.Usage("say `karui retry`, `karui retry off`, or `karui retry auto` for on")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			hold, err := a.holds(cmd)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				if hold != "" {
					return command.Usage("--for is about what is set: say off or auto")
				}
				return a.ask(cmd, api.Read, http.MethodGet, "/retry", nil)
			}
			return a.ask(cmd, api.Dial, http.MethodPut, "/retry", server.RetryChange{Mode: args[0], For: hold, Site: a.site})
		},
	}
	a.register(cmd)
	return cmd
}
