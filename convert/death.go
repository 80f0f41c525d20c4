package convert

import (
	"os"
	"syscall"
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

// causeOfDeath reads the cause from how a process ended that nobody here killed.
func causeOfDeath(s *os.ProcessState) Cause {
	status, ok := s.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return CauseCrash
	case status.Exited() && status.ExitStatus() == exitCPU:
		return CauseTimeout
	}
	return CauseCrash
}
