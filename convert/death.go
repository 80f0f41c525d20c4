package convert

import (
	"strings"
	"syscall"
	"time"
)

// Exit codes of a worker. Everything else, signals included, is a crash.
const (
	// exitOrphan: the pool is gone.
	exitOrphan = 0
	// exitSetup: it could not set itself up.
	exitSetup = 3
	// exitGarbage: the pool sent something that is no job.
	exitGarbage = 4
	// exitCPU: the kernel's limit on CPU time was reached.
	exitCPU = 5
)

// causeOfDeath tells why a dead process ended that nobody here killed.
func (p *process) causeOfDeath() Cause {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Exited() && status.ExitStatus() == exitCPU {
		return CauseTimeout
	}
	// A worker that grows fast meets the kernel's limit before its memory is looked at from here. Whoever asked for
	// the memory ends the process in a way of its own, and says why.
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.said:
	case <-timer.C:
	}
	if p.starved.Load() {
		return CauseMemory
	}
	return CauseCrash
}

// refusedMemory tells whether a line on stderr is the last word of a process that got no more memory: of Go's runtime,
// of C++, of GLib, or of the race detector.
func refusedMemory(line string) bool {
	for _, words := range []string{"out of memory", "cannot allocate memory", "Cannot allocate memory", "std::bad_alloc", "failed to allocate"} {
		if strings.Contains(line, words) {
			return true
		}
	}
	return false
}
