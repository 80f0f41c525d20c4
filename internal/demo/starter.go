package demo

import (
	"os/exec"
	"runtime"
)

// starter starts child processes from one OS thread that lives as long as the
// starter. The kernel's parent-death signal is bound to the thread that forked;
// the Go runtime ends threads when it likes, which would kill healthy children.
type starter struct {
	folder   string // that children are marked with; empty for none
	requests chan startRequest
	done     chan struct{}
}

type startRequest struct {
	cmd  *exec.Cmd
	errs chan<- error
}

func newStarter() *starter {
	s := &starter{requests: make(chan startRequest), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for r := range s.requests {
			r.errs <- r.cmd.Start()
		}
	}()
	return s
}

// start is cmd.Start on the starter's thread. It must not be called after close.
func (s *starter) start(cmd *exec.Cmd) error {
	errs := make(chan error, 1)
	s.requests <- startRequest{cmd, errs}
	return <-errs
}

// close ends the thread, and with it every child that still runs.
func (s *starter) close() {
	close(s.requests)
	<-s.done
}
