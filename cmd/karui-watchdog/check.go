package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/watchdog"
	"karui/watchdog/settings"
)

func newCheckCommand() *cobra.Command {
	var file configFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Runs one round of all sites, acts on it, and ends (for cron)",
		Long: `Runs one round of all sites and does what 'run' would do: a proxy that is down is
taken out, one that is well again is put back, and mails are sent. What it has to
remember from one check to the next lies in state_dir.

Exit code 0 if every proxy is up; 1 if one is down, if a round was inconclusive
(the watchdog's own network is gone), if the order could not be read (for want of
credentials or rights: it could not act either), or if something could not be
carried out.`,
		Example: `  karui-watchdog check
  */5 * * * * karui-watchdog check --config /etc/karui/watchdog.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, &file, "check", diskWanted, func(ctx context.Context, w *wiring, _ settings.Config) error {
				results, errs := w.Check(ctx)
				for _, err := range errs {
					say(cmd, "karui-watchdog: %s", err)
				}
				if err := printResults(cmd.OutOrStdout(), results, asJSON); err != nil {
					return err
				}
				if len(errs) > 0 || !watchdog.AllUp(results) || !watchdog.AllRead(results) {
					return command.ErrReported
				}
				return nil
			})
		},
	}
	file.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the results as JSON")
	return cmd
}

func printResults(out io.Writer, results []watchdog.Result, asJSON bool) error {
	if asJSON {
		return printJSON(out, results)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range results {
		verdict, did := string(r.Round.Verdict), r.Did
		if verdict == "" {
			verdict = "not looked at"
		}
		if did != "" && r.Error == "" {
			did += "d"
		}
		if r.Error != "" {
			did = fmt.Sprintf("%s failed: %s", did, r.Error)
		}
		text := ""
		if n := len(r.Round.Probes); n > 0 {
			text = r.Round.Probes[n-1].Text
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.Site, verdict, orderWord(r.Order), text, did)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.Round.OrderError == "" {
			continue
		}
		_, _ = fmt.Fprintf(out, "%s: the order could not be read, so that nothing could be done if it had to be: %s\n", r.Site, r.Round.OrderError)
		if r.Round.OrderHint != "" {
			_, _ = fmt.Fprintf(out, "  -> %s\n", r.Round.OrderHint)
		}
	}
	return nil
}
