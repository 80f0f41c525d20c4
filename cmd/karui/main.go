// Command karui is the origin proxy and the tools of its operator.
//
// Every command ends with 0 (good), 1 (failed) or 2 (wrong usage or
// configuration). What a command answers goes to stdout; what it has to say
// about its work, errors included, goes to stderr.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(realMain())
}

// realMain lives apart from main so that its deferred calls run before os.Exit.
func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for a clean end; from then on a second one kills at once.
	defer context.AfterFunc(ctx, stop)()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	strict(root)
	cmd, err := root.ExecuteContextC(ctx)
	return report(stderr, cmd, err)
}
