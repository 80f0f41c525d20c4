// Command karui-watchdog looks after karui from outside: when the proxy is down, it
// puts the true origin first in the CloudFront distribution, tells the operators,
// and puts the proxy back when it is well.
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
	"time"
)

// twins is how long signals after the first count as the first.
const twins = time.Second

func main() {
	os.Exit(realMain())
}

// realMain lives apart from main so that its deferred calls run before os.Exit.
func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for a clean end; a later one kills at once. One that
	// comes with the first is the same asked twice: timeout(1) and supervisors
	// signal the process and its group.
	defer context.AfterFunc(ctx, func() {
		time.Sleep(twins)
		stop()
	})()
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
