package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/watchdog"
	"karui/watchdog/event"
	"karui/watchdog/settings"
)

func newStatusCommand() *cobra.Command {
	var file configFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [SITE]",
		Short: "Shows how things are, as the last rounds left them",
		Long: `Shows how every site is, or the one that is named: what the last round found, who comes first in the origin
group, and what is under way. It reads state_dir, writes nothing and asks nobody, so that
it works beside 'run' and costs nothing. For a fresh look, use 'check' or 'rehearse'.

Exit code 0 if the state could be read, whatever it says.`,
		Example: `  karui-watchdog status
  karui-watchdog status shop
  karui-watchdog status --json | jq '.sites[] | select(.health == "down")'`,
		Args: oneSiteAtMost,
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, &file, "status", diskRead, func(_ context.Context, w *wiring, c settings.Config) error {
				status := w.Status()
				if len(args) > 0 {
					if err := siteArgument(c, args); err != nil {
						return err
					}
					status.Sites = slices.DeleteFunc(status.Sites, func(s watchdog.SiteStatus) bool { return s.Site != args[0] })
				}
				if asJSON {
					if err := printJSON(cmd.OutOrStdout(), status); err != nil {
						return err
					}
				} else if err := printStatus(cmd.OutOrStdout(), status); err != nil {
					return err
				}
				for _, s := range status.Sites {
					if s.Error != "" {
						return command.ErrReported
					}
				}
				return nil
			})
		},
	}
	file.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the status as JSON")
	return cmd
}

func printStatus(out io.Writer, s watchdog.Status) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, site := range s.Sites {
		since := ""
		if !site.Since.IsZero() {
			since = "since " + site.Since.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", site.Site, site.Words, since)
		if !site.Degraded.IsZero() {
			_, _ = fmt.Fprintf(table, "\tdegraded since %s, good rounds %d of %d, restore: %s\n",
				site.Degraded.UTC().Format(time.RFC3339), site.GoodRounds, site.GoodRoundsNeeded, site.Restore)
		}
		if site.Last != nil && site.Last.OrderError != "" {
			_, _ = fmt.Fprintf(table, "\tthe order could not be read: %s\n", site.Last.OrderError)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case s.MailError != "":
		_, _ = fmt.Fprintf(out, "mails: %s\n", s.MailError)
	case s.Mails > 0:
		_, _ = fmt.Fprintf(out, "mails waiting: %d, the oldest since %s\n", s.Mails, s.OldestMail.UTC().Format(time.RFC3339))
	}
	return nil
}

// orderWord is an order as people read it.
func orderWord(o event.Order) string {
	switch o {
	case event.OrderProxy:
		return "proxy first"
	case event.OrderDirect:
		return "true origin first"
	}
	return "order not known"
}
