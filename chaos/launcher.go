package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// launcher starts processes from one thread that lives as long as it does: what
// this program started must not outlive it, and the kernel's signal for that comes
// when the *thread* that started them ends.
//
// Where it is allowed, the thread has mounts of its own, which its processes see
// and nobody else, and which are gone when all of them are, however they ended.
type launcher struct {
	work chan func()
	done chan struct{}
	// root is where this program sees the thread's files, "" if as its own.
	root string
}

func newLauncher() *launcher {
	l := &launcher{work: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		for f := range l.work {
			f()
		}
	}()
	_ = l.run(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		l.root = fmt.Sprintf("/proc/%d/task/%d/root", os.Getpid(), unix.Gettid())
		return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}) // without mounts of its own it does as well
	return l
}

// run does something on the thread.
func (l *launcher) run(f func() error) error {
	result := make(chan error, 1)
	l.work <- func() { result <- f() }
	return <-result
}

func (l *launcher) start(cmd *exec.Cmd) error { return l.run(cmd.Start) }

func (l *launcher) close() {
	close(l.work)
	<-l.done
}
