package convert

import (
	"math/bits"
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
	at   seat
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
	var all unix.CPUSet
	known := unix.SchedGetaffinity(0, &all) == nil
	for r := range s.requests {
		if known && r.at.class == Slow {
			// What is forked here inherits this too, with all the threads that an encoder will start. A refusal shows
			// in what the worker says of itself.
			one := oneOf(all, r.at.n)
			_ = unix.SchedSetaffinity(0, &one)
		}
		err := r.cmd.Start()
		if known && r.at.class == Slow {
			_ = unix.SchedSetaffinity(0, &all)
		}
		r.errs <- err
	}
}

// oneOf picks one processor of the set for the n-th worker for slow codecs: from the last one down, since the first
// ones have more to do for the kernel.
func oneOf(all unix.CPUSet, n int) unix.CPUSet {
	var cpus []int
	for cpu := range len(all) * bits.UintSize {
		if all.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	var one unix.CPUSet
	if len(cpus) > 0 {
		one.Set(cpus[len(cpus)-1-n%len(cpus)])
	}
	return one
}

// start is cmd.Start on the starter's thread. It must not be called after close.
func (s *starter) start(cmd *exec.Cmd, at seat) error {
	errs := make(chan error, 1)
	s.requests <- startRequest{cmd, at, errs}
	return <-errs
}

// close ends the thread, and with it every child that still runs.
func (s *starter) close() {
	s.once.Do(func() { close(s.requests) })
	<-s.done
}
