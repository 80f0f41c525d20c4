package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"karui/internal/config"
)

// Exit codes of every command.
const (
	exitGood   = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands lists the commands in the order in which the help shows them.
//
// A command writes what it answers to cmd.OutOrStdout() and what it has to say
// about its work to cmd.ErrOrStderr(), takes its context from cmd.Context() (it
// ends with SIGINT and SIGTERM), and returns
//
//   - nil: exit code 0;
//   - usageError(...): 2, with a pointer to the command's help;
//   - an error that holds a *config.Problem: 2;
//   - errReported: 1, nothing more is printed;
//   - any other error: 1, printed as one "karui-watchdog: ..." line.
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
	root := &cobra.Command{
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
		SilenceErrors: true, // report prints them, once
		SilenceUsage:  true,
		Args:          subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(commands()...)
	markRunErrors(root)
	return root
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
			cmd.Args = subcommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		case "help":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				if about, rest, err := cmd.Root().Find(args); len(args) > 0 && (err != nil || about == cmd.Root() || len(rest) > 0) {
					return usageError("no help on %q: there is no such command", strings.Join(args, " "))
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
	return usageError("unknown command %q%s", args[0], hint)
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

// errReported is returned by a command that failed and has already said why.
var errReported = errors.New("failed")

// misuse is an error about how a command was called.
type misuse struct{ error }

func (e misuse) Unwrap() error { return e.error }

// usageError makes the error for a command line that cannot be understood.
func usageError(format string, args ...any) error {
	return misuse{fmt.Errorf(format, args...)}
}

// report prints err and returns the exit code that it stands for.
func report(stderr io.Writer, cmd *cobra.Command, err error) int {
	var (
		ran     runError
		wrong   misuse
		problem *config.Problem
	)
	switch {
	case err == nil:
		return exitGood
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &problem):
		_, _ = fmt.Fprintf(stderr, "%s\n", err)
		return exitUsage
	case !errors.As(err, &ran) || errors.As(err, &wrong):
		_, _ = fmt.Fprintf(stderr, "karui-watchdog: %s\nSee '%s --help'.\n", err, cmd.CommandPath())
		return exitUsage
	}
	_, _ = fmt.Fprintf(stderr, "karui-watchdog: %s\n", err)
	return exitFailed
}
