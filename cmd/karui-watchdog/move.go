package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"karui/internal/command"
	"karui/watchdog"
	"karui/watchdog/distribution"
	"karui/watchdog/event"
	"karui/watchdog/settings"
)

func newDegradeCommand() *cobra.Command {
	return newMoveCommand(event.OrderDirect, &cobra.Command{
		Use:   "degrade SITE",
		Short: "Puts a site's true origin first: viewers get originals",
		Long: `Puts the true origin first in the origin group of the site's distribution, and tells
the operators. The watchdog leaves it so until the proxy's health changes: after
maintenance, run restore. Already so: nothing is written.

It refuses when the true origin does not answer, and when the group does not hold
exactly the two configured origins. A state_dir that cannot be written to does not
stop it. It waits until the change has reached the
whole edge; Ctrl-C ends the waiting and not the change.`,
		Example: `  karui-watchdog degrade shop
  karui-watchdog degrade shop --yes`,
	})
}

func newRestoreCommand() *cobra.Command {
	return newMoveCommand(event.OrderProxy, &cobra.Command{
		Use:   "restore SITE",
		Short: "Puts a site's proxy first again: viewers get lighter images",
		Long: `Puts the proxy first in the origin group of the site's distribution, and tells the
operators. The watchdog leaves it so until the proxy's health changes. Already so:
nothing is written.

It refuses when the edge would not fail over from the proxy to the true origin. It
waits until the change has reached the whole edge, and invalidates then what
invalidate_paths names (with after_restore: invalidate); Ctrl-C ends the waiting
and not the change.`,
		Example: `  karui-watchdog restore shop
  karui-watchdog restore shop --yes`,
	})
}

// moving is the command line of degrade and restore.
type moving struct {
	file configFlag
	want event.Order
	yes  bool
}

func newMoveCommand(want event.Order, cmd *cobra.Command) *cobra.Command {
	m := &moving{want: want}
	need := diskNeeded
	if want == event.OrderDirect {
		need = diskWanted
	}
	cmd.Args = oneSite
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return with(cmd, &m.file, cmd.Name()+" "+args[0], need, func(ctx context.Context, w *wiring, c settings.Config) error {
			if err := siteArgument(c, args); err != nil {
				return err
			}
			return m.run(ctx, cmd, w, args[0])
		})
	}
	m.file.register(cmd)
	cmd.Flags().BoolVarP(&m.yes, "yes", "y", false, "do not ask; needed when stdin is not a terminal")
	return cmd
}

func (m *moving) run(ctx context.Context, cmd *cobra.Command, w *wiring, site string) error {
	if !m.yes && !command.IsTerminal(cmd.InOrStdin()) {
		return command.Usage("stdin is not a terminal, so that nobody can be asked: add --yes")
	}
	p, err := w.Preview(ctx, site, m.want)
	if err != nil {
		return withHint(err)
	}
	if p.Order == m.want {
		say(cmd, "%s: the order is %s already; nothing is written", site, orderWord(p.Order))
	} else {
		describe(cmd, p)
	}
	if !m.yes {
		sure, err := ask(ctx, cmd, fmt.Sprintf("%s %s now? [y/N] ", cmd.Name(), site))
		if err != nil {
			return err
		}
		if !sure {
			say(cmd, "nothing was done")
			return command.ErrReported
		}
	}
	moved, err := w.Move(ctx, site, m.want, person())
	if flushing := w.Flush(context.WithoutCancel(ctx)); flushing != nil && moved.Unwritten == nil {
		say(cmd, "mail: %s (it stays in the outbox and is tried again by 'run' and 'check')", flushing)
	}
	if moved.Unwritten != nil {
		command.Warn(cmd, "state_dir does not tell of this, so that the watchdog will take it for somebody else's doing, and the audit log lacks it: %s", moved.Unwritten)
	}
	if err != nil {
		return withHint(err)
	}
	word := "already"
	if moved.Changed {
		word = "now"
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s %s (version %s)\n", site, orderWord(moved.Order), word, moved.Result.ETag); err != nil {
		return err
	}
	if !moved.Changed {
		return nil
	}
	say(cmd, "waiting until the change has reached the whole edge; Ctrl-C ends the waiting, not the change")
	err = w.Arrived(ctx, site)
	if ctx.Err() != nil {
		say(cmd, "not waited for; 'karui-watchdog status' shows it")
		return nil
	}
	if err != nil {
		return withHint(err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: deployed\n", site)
	return err
}

// describe says what a person should know before saying yes.
func describe(cmd *cobra.Command, p watchdog.Preview) {
	say(cmd, "%s: %s now (version %s)", p.Site, orderWord(p.Order), p.ETag)
	say(cmd, "  proxy: %s", p.Ping.Text)
	if p.Origin != nil {
		say(cmd, "  true origin: %s", p.Origin.Text)
	}
	for _, f := range p.Findings {
		word := "note"
		if f.Refusal {
			word = "will be refused"
		}
		say(cmd, "  %s: %s", word, f)
	}
	if p.Want == event.OrderProxy && !p.Ping.OK {
		say(cmd, "  the proxy does not answer well: viewers would wait for it before the edge fails over")
	}
}

// ask asks a question and takes y or yes for yes. It ends with ctx.
func ask(ctx context.Context, cmd *cobra.Command, question string) (bool, error) {
	_, _ = fmt.Fprint(cmd.ErrOrStderr(), question)
	answered := make(chan string, 1)
	go func() { // ends with the process, if nobody answers: a read cannot be broken off
		line, _ := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 100)).ReadString('\n')
		answered <- line
	}()
	select {
	case line := <-answered:
		word := strings.ToLower(strings.TrimSpace(line))
		return word == "y" || word == "yes", nil
	case <-ctx.Done():
		say(cmd, "")
		return false, ctx.Err()
	}
}

// withHint adds the remedy that an error knows.
func withHint(err error) error {
	if hint := distribution.HintOf(err); hint != "" {
		return fmt.Errorf("%w\n%s", err, hint)
	}
	return err
}
