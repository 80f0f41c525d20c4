package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/watchdog"
	"karui/watchdog/settings"
)

// rehearsing is the command line of rehearse.
type rehearsing struct {
	file   configFlag
	how    watchdog.Rehearse
	asJSON bool
}

func newRehearseCommand() *cobra.Command {
	var r rehearsing
	cmd := &cobra.Command{
		Use:   "rehearse SITE",
		Short: "Proves, before any outage, that degrade and restore would go through",
		Long: `Goes through a checklist: the role, the distribution's group, criteria, behaviours,
cache keys, lifetimes and timeouts, the right to write, ping, origin and controls,
that viewers really get lighter images, and mail. Under everything that is wrong
stands what to do about it.

The right to write is proved by writing the configuration back unchanged, and a
test mail is sent; --no-write leaves the first out. With --swap it also degrades,
waits until the edge has it, proves through viewer_url that images come from the
true origin, restores, and proves that. Interrupted, it restores before it ends.

Exit code 0 if all points pass (warnings do not count), 1 if not.`,
		Example: `  karui-watchdog rehearse shop
  karui-watchdog rehearse shop --no-write --json
  karui-watchdog rehearse shop --swap`,
		Args: oneSite,
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.how.Swap && r.how.NoWrite {
				return command.Usage("--swap writes, and --no-write forbids it: leave one of them out")
			}
			return with(cmd, &r.file, "rehearse "+args[0], diskNeeded, func(ctx context.Context, w *wiring, c settings.Config) error {
				if err := siteArgument(c, args); err != nil {
					return err
				}
				return r.run(ctx, cmd, w, args[0])
			})
		},
	}
	r.file.register(cmd)
	cmd.Flags().BoolVar(&r.how.NoWrite, "no-write", false, "change nothing: whether the role may write is not proved")
	cmd.Flags().BoolVar(&r.how.Swap, "swap", false, "really degrade and restore, and prove both; takes some minutes")
	cmd.Flags().BoolVar(&r.asJSON, "json", false, "print the checklist as JSON")
	return cmd
}

func (r *rehearsing) run(ctx context.Context, cmd *cobra.Command, w *wiring, site string) error {
	ctx, stop := undisturbed(ctx)
	defer stop()
	r.how.Person = person()
	r.how.Announce = func(text string) { say(cmd, "... %s", text) }
	if command.IsTerminal(cmd.ErrOrStderr()) {
		r.how.Begin = r.how.Announce // elsewhere the points say it when they are done
	}
	if !r.asJSON {
		r.how.Progress = func(p watchdog.Point) { printPoint(cmd.OutOrStdout(), p) }
	}
	result, err := w.Rehearse(ctx, site, r.how)
	if err != nil {
		return withHint(err)
	}
	if r.asJSON {
		if err := printJSON(cmd.OutOrStdout(), result); err != nil {
			return err
		}
	} else if err := printSum(cmd.OutOrStdout(), result); err != nil {
		return err
	}
	if !result.Passed {
		return command.ErrReported
	}
	return nil
}

// undisturbed lets neither a reader that went away nor a terminal that was lost
// kill a rehearsal that has something to put back: the first goes unnoticed, the
// second interrupts it.
func undisturbed(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	if signal.Ignored(syscall.SIGHUP) { // nohup
		return ctx, func() {}
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// pointColours show at a glance what is wrong, on a terminal.
var pointColours = map[watchdog.PointStatus]command.Colour{
	watchdog.Pass: command.Good, watchdog.Warn: command.Caution, watchdog.Fail: command.Bad,
}

func printPoint(out io.Writer, p watchdog.Point) {
	status := command.Paint(out, pointColours[p.Status], fmt.Sprintf("%-7s", p.Status))
	_, _ = fmt.Fprintf(out, "%s %-22s %s\n", status, p.Name, p.Text)
	if p.Hint != "" {
		_, _ = fmt.Fprintf(out, "%31s-> %s\n", "", p.Hint)
	}
}

func printSum(out io.Writer, r watchdog.Rehearsal) error {
	counts := map[watchdog.PointStatus]int{}
	for _, p := range r.Points {
		counts[p.Status]++
	}
	verdict := "passed"
	switch {
	case r.Interrupted:
		verdict = "interrupted"
	case !r.Passed:
		verdict = "FAILED"
	}
	_, err := fmt.Fprintf(out, "%s: %s (%d passed, %d warnings, %d failed, %d skipped)\n",
		r.Site, verdict, counts[watchdog.Pass], counts[watchdog.Warn], counts[watchdog.Fail], counts[watchdog.Skipped])
	return err
}
