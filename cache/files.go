package cache

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// file is an open entry file. In production it is an *os.File, which sendfile needs.
type file interface {
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Sync() error
}

// fileSystem is every call that a volume makes to its file system, so that tests
// can make each of them fail.
type fileSystem interface {
	// Open opens without following a symbolic link at the end, and without waiting
	// for the other end of a pipe.
	Open(name string, flag int) (file, error)
	Rename(from, to string) error
	Remove(name string) error
	// RemoveAll removes a folder and what is in it, without following links.
	RemoveAll(name string) error
	MkdirAll(name string) error
	Lstat(name string) (fs.FileInfo, error)
	// Names calls visit with the names in a folder, in no order, until it says false.
	Names(dir string, visit func(name string) bool) error
	// SetAccess sets the access time and leaves the modification time.
	SetAccess(name string, at time.Time) error
	// Sync writes out the whole file system that holds an open file. The error also
	// tells of what could not be written since the file was opened (Linux 5.8).
	Sync(of *os.File) error
	// Usage is of the file system that holds dir.
	Usage(dir string) (usage, error)
}

// osFiles is the real one.
type osFiles struct{}

func (osFiles) Open(name string, flag int) (file, error) {
	// Not os.OpenFile: on Linux it tries to hand every file to the poller, five
	// system calls that a regular file can only refuse.
	for {
		fd, err := unix.Open(name, flag|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
		if err != unix.EINTR {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

func (osFiles) Rename(from, to string) error           { return os.Rename(from, to) }
func (osFiles) Remove(name string) error               { return os.Remove(name) }
func (osFiles) RemoveAll(name string) error            { return os.RemoveAll(name) }
func (osFiles) MkdirAll(name string) error             { return os.MkdirAll(name, 0o700) }
func (osFiles) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

func (osFiles) Names(dir string, visit func(string) bool) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(512)
		for _, name := range names {
			if !visit(name) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (osFiles) SetAccess(name string, at time.Time) error {
	times := []unix.Timespec{unix.NsecToTimespec(at.UnixNano()), {Nsec: unix.UTIME_OMIT}}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, name, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "utimensat", Path: name, Err: err}
	}
	return nil
}

func (osFiles) Sync(of *os.File) error {
	conn, err := of.SyscallConn() // not Fd: the file may be closed meanwhile
	if err != nil {
		return err
	}
	cerr := conn.Control(func(fd uintptr) {
		err = unix.Syncfs(int(fd))
	})
	if err = errors.Join(cerr, err); err != nil {
		return &fs.PathError{Op: "syncfs", Path: of.Name(), Err: err}
	}
	return nil
}

func (osFiles) Usage(dir string) (usage, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return usage{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	block := s.Frsize
	if block <= 0 {
		block = s.Bsize
	}
	return usage{
		bytesUsed: (int64(s.Blocks) - int64(s.Bfree)) * block,
		bytesFree: int64(s.Bavail) * block,
		filesUsed: int64(s.Files) - int64(s.Ffree),
		filesFree: int64(s.Ffree),
	}, nil
}

// onDisk is what a file takes of its file system: its blocks.
func onDisk(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

// accessed is when a file was last used, as far as the file system knows.
func accessed(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Atim.Unix())
	}
	return info.ModTime()
}
