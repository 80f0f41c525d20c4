package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// diskSize is the size of karui's cache disk, which lies in memory. It holds what
// the demonstration makes in some minutes, and is quickly filled.
const diskSize = 48 << 20

// ballastName is the file that fills the disk.
const ballastName = "ballast"

// Disk is the first half of a child's start: in the mount namespace that the
// child was given, it mounts a small disk at dir and then becomes the program
// with args. It returns only when that failed, or when there are no args.
func Disk(dir, program string, args []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to this process: %w", err)
	}
	data := fmt.Sprintf("size=%d,mode=0700", diskSize)
	if err := unix.Mount("karui-demo", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, data); err != nil {
		return fmt.Errorf("mount a small disk: %w", err)
	}
	if len(args) == 0 {
		return nil
	}
	return become(program, args)
}

// become replaces this process by the program. It returns only when that failed.
//
// The parent-death signal is a thread's, and the thread that calls execve is the one
// that stays: any but the first has none, since threads do not inherit it. So it is
// set anew on the very thread that goes on.
func become(program string, args []string) error {
	runtime.LockOSThread() // the calls below are one thread's
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("die with the parent: %w", err)
	}
	return fmt.Errorf("become %s: %w", program, syscall.Exec(program, append([]string{program}, args...), os.Environ()))
}

// diskAttr is how a child gets a mount namespace: as root directly, else within a
// user namespace of its own, in which it counts as root.
func diskAttr() syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	}
	return syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
}

// tryDisk tells why a child cannot be given a small disk; nil if it can.
func tryDisk(s *starter, executable string, disk []string, dir string) error {
	c, err := s.spawn(spawn{name: "a try of a small disk", path: executable, args: append(disk, dir), env: cleanEnv(), dir: "/", attr: diskAttr()})
	if err != nil {
		return fmt.Errorf("this system gives no mount namespace: %w", err)
	}
	<-c.ended
	if !c.state.Success() {
		return fmt.Errorf("this system mounts no disk in memory (%s)", c.state)
	}
	return nil
}

// diskOf is where the disk of a running child can be reached from outside.
func diskOf(pid int, dir string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), "root", dir)
}

// fill writes ballast until nothing more fits.
func fill(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, ballastName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for written := 0; written <= 2*diskSize; written += len(block) {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return fmt.Errorf("fill the disk: %w", err)
		}
	}
	return fmt.Errorf("fill the disk: %s is no small disk", dir)
}

// empty takes the ballast away.
func empty(dir string) error {
	if err := os.Remove(filepath.Join(dir, ballastName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("empty the disk: %w", err)
	}
	return nil
}
