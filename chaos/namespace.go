package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// inside marks a process that runs in the namespaces that asRoot makes.
const inside = "KARUI_CHAOS_INSIDE"

// asRoot runs this program once more, in a user namespace in which it counts as
// root and in a mount namespace of its own, so that it may mount a small disk.
// ok is false where that is not needed or not allowed, and the proof does without.
func asRoot(args []string, stdout, stderr io.Writer) (code int, ok bool) {
	if os.Geteuid() == 0 || os.Getenv(inside) != "" {
		return 0, false
	}
	// The kernel's signal for the end of the parent is one for the end of its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", args...) //nolint:gosec // what this program was started with
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   syscall.SIGTERM,
	}
	if err := cmd.Start(); err != nil {
		return 0, false
	}
	// Signals of the terminal reach the child, too, and it ends in order.
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(1, exit.ExitCode()), true
	}
	return 0, true
}
