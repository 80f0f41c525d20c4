// Package command runs the command lines of both programs in one way.
//
// Guaranteed: exit code 0 for good, 1 for failed, 2 for wrong usage or
// configuration; each error printed once, on stderr, with a pointer to the help
// where the command line was wrong; SIGINT and SIGTERM end the context of the
// command, and a later one ends the process at once.
//
// A command writes what it answers to cmd.OutOrStdout() and what it has to say
// about its work to cmd.ErrOrStderr(), takes its context from cmd.Context(), and
// returns
//
//   - nil: exit code 0;
//   - Usage(...): 2, with a pointer to the command's help;
//   - an error that holds a *config.Problem: 2;
//   - ErrReported: 1, nothing more is printed;
//   - ErrMisused: 2, nothing more is printed;
//   - any other error: 1, printed as one line after the program's name.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"karui/internal/config"
)

// Exit codes of every command.
const (
	ExitGood   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// ErrReported is returned by a command that failed and has already said why.
var ErrReported = errors.New("failed")

// ErrMisused is returned by a command that was called in a wrong way and has already
// said how.
var ErrMisused = errors.New("wrong usage")

// twins is how long signals after the first count as the first: timeout(1) and
// supervisors signal the process and its group.
const twins = time.Second

// Main runs the command line of the process and returns its exit code.
func Main(root *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for a clean end; a later one kills at once.
	defer context.AfterFunc(ctx, func() {
		time.Sleep(twins)
		stop()
	})()
	return Run(ctx, root, os.Args[1:], os.Stdout, os.Stderr)
}

// Run executes one command line and returns its exit code. It changes root, which
// is good for one run.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SilenceErrors = true // report prints them, once
	root.SilenceUsage = true
	root.CompletionOptions.HiddenDefaultCmd = false
	markRunErrors(root)
	nameStrays(root)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	strict(root)
	cmd, err := root.ExecuteContextC(ctx)
	return report(stderr, cmd, err)
}

// Group makes cmd one that only has others below it: it shows its help, and
// refuses what it does not know.
func Group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = subcommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// strict makes the commands that cobra brings refuse what they do not know, which
// they would answer with a help text and exit code 0. It comes after SetOut, since
// completion keeps the writer that it finds.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			Group(cmd)
		case "help":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				if about, rest, err := cmd.Root().Find(args); len(args) > 0 && (err != nil || about == cmd.Root() || len(rest) > 0) {
					return Usage("no help on %q: there is no such command", strings.Join(args, " "))
				}
				return nil
			}
		}
	}
}

// subcommand refuses the arguments of a command that only has others below it.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		hint = ", did you mean " + config.Or(names...) + "?"
	}
	return Usage("unknown command %q%s", args[0], hint)
}

// runError is an error that a command returned while it ran. Everything else
// that cobra returns is about the command line.
type runError struct{ error }

func (e runError) Unwrap() error { return e.error }

// markRunErrors wraps what the commands return, since cobra gives its own
// errors (unknown flags, too many arguments) through the same door.
func markRunErrors(cmd *cobra.Command) {
	if body := cmd.RunE; body != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := body(cmd, args); err != nil {
				return runError{err}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		markRunErrors(sub)
	}
}

// nameStrays calls an argument that a command does not take what it is. cobra calls
// it an unknown command, also where there are none to know.
func nameStrays(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		nameStrays(sub)
	}
	check := cmd.Args
	if check == nil || cmd.HasSubCommands() {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if own := (misuse{}); errors.As(err, &own) {
			return err // the command has words of its own for it
		}
		if err != nil && check(cmd, nil) == nil && check(cmd, args[:1]) != nil {
			return Usage("%s takes no argument, but %q is one", cmd.CommandPath(), args[0])
		}
		return err
	}
}

// misuse is an error about how a command was called.
type misuse struct{ error }

func (e misuse) Unwrap() error { return e.error }

// Usage makes the error for a command line that cannot be understood.
func Usage(format string, args ...any) error {
	return misuse{fmt.Errorf(format, args...)}
}

// IsUsage tells whether an error, or one that it wraps, is about how a command was called.
func IsUsage(err error) bool {
	var wrong misuse
	return errors.As(err, &wrong) || errors.Is(err, ErrMisused)
}

// report prints err and returns the exit code that it stands for.
func report(stderr io.Writer, cmd *cobra.Command, err error) int {
	var (
		ran     runError
		wrong   misuse
		problem *config.Problem
	)
	name := Paint(stderr, Bad, cmd.Root().Name()+":")
	switch {
	case err == nil:
		return ExitGood
	case errors.Is(err, ErrReported):
		return ExitFailed
	case errors.Is(err, ErrMisused):
		return ExitUsage
	case errors.As(err, &problem):
		_, _ = fmt.Fprintf(stderr, "%s\n", err)
		return ExitUsage
	case !errors.As(err, &ran) || errors.As(err, &wrong):
		_, _ = fmt.Fprintf(stderr, "%s %s\nSee '%s --help'.\n", name, err, cmd.CommandPath())
		return ExitUsage
	}
	_, _ = fmt.Fprintf(stderr, "%s %s\n", name, err)
	return ExitFailed
}

// Warn prints a line about something that is tolerated and yet looks like a mistake.
func Warn(cmd *cobra.Command, format string, args ...any) {
	w := cmd.ErrOrStderr()
	_, _ = fmt.Fprintf(w, "%s %s\n", Paint(w, Caution, "warning:"), fmt.Sprintf(format, args...))
}
