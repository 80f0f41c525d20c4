package convert

import (
	"os/exec"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// starter starts child processes from one OS thread that lives as long as the starter.
//
// The kernel's parent-death signal is bound to the thread that forked, not to the process. The Go runtime ends
// threads when it likes, which would kill healthy workers; so one goroutine keeps a thread for itself and does all
// the forking.
type starter struct {
	requests chan startRequest
	done     chan struct{}
	once     sync.Once
}

type startRequest struct {
	cmd  *exec.Cmd
	errs chan<- error
}

func newStarter() *starter {
	s := &starter{requests: make(chan startRequest), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *starter) run() {
	defer close(s.done)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	// What is forked here inherits this with all its threads: work in the background that interrupts nobody, itself
	// included. A refusal costs some speed only; workers see to their own nice value.
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: workerNice}, 0)
	for r := range s.requests {
		r.errs <- r.cmd.Start()
	}
}

// start is cmd.Start on the starter's thread. It must not be called after close.
func (s *starter) start(cmd *exec.Cmd) error {
	errs := make(chan error, 1)
	s.requests <- startRequest{cmd, errs}
	return <-errs
}

// close ends the thread, and with it every child that still runs.
func (s *starter) close() {
	s.once.Do(func() { close(s.requests) })
	<-s.done
}
