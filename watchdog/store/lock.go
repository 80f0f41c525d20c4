package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a taken lock is tried. flock could wait by itself, but
// not be told to stop.
const lockPoll = 100 * time.Millisecond

// Holder is who has a lock.
type Holder struct {
	PID  int       `json:"pid"`
	What string    `json:"what"` // "run", "degrade shop", ...
	At   time.Time `json:"at"`
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("karui-watchdog %s (process %d, since %s)", h.What, h.PID, h.At.UTC().Format(time.RFC3339))
}

// BusyError says that somebody else has the lock.
type BusyError struct{ Holder Holder }

func (e *BusyError) Error() string {
	return e.Holder.String() + " is acting; wait until it is done, or end it"
}

// Lock is held until Unlock, or until the process ends.
type Lock struct{ file *os.File }

// Unlock lets go. The zero Lock holds nothing.
func (l *Lock) Unlock() {
	if l.file != nil {
		l.file.Close()
	}
}

// Lock waits for the site's lock, for at most wait. The error is a *BusyError
// when somebody else still has it, or that ctx ended.
func (s *Site) Lock(ctx context.Context, what string, wait time.Duration) (*Lock, error) {
	making := s.make()
	l, err := lock(ctx, filepath.Join(s.dir, "lock"), what, wait)
	if errors.Is(err, fs.ErrNotExist) && making != nil {
		err = making
	}
	return l, err
}

// LockEdge waits for the lock of whoever waits for the site's last change to
// reach the edge.
func (s *Site) LockEdge(ctx context.Context, what string, wait time.Duration) (*Lock, error) {
	making := s.make()
	l, err := lock(ctx, filepath.Join(s.dir, "edge.lock"), what, wait)
	if errors.Is(err, fs.ErrNotExist) && making != nil {
		err = making
	}
	return l, err
}

// LockRun takes the lock of the daemon, of which there is one a directory.
func (s *Store) LockRun(ctx context.Context, wait time.Duration) (*Lock, error) {
	return lock(ctx, filepath.Join(s.dir, "run.lock"), "run", wait)
}

func lock(ctx context.Context, path, what string, wait time.Duration) (*Lock, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	deadline := time.Now().Add(wait)
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			sign(f, what)
			return &Lock{file: f}, nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case !time.Now().Before(deadline):
			h := holder(f)
			f.Close()
			return nil, &BusyError{h}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		}
	}
}

// open makes the lock file. One that is there already serves also when nothing
// can be written any more: a lock is no content.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if f, reading := os.Open(path); reading == nil {
			return f, nil
		}
		return nil, err
	}
	if err := adopt(path); err != nil && !errors.Is(err, unix.EROFS) {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sign writes into the lock file who has it: for messages only, so that a
// failure does not matter.
func sign(f *os.File, what string) {
	data, err := json.Marshal(Holder{PID: os.Getpid(), What: what, At: time.Now()})
	if err != nil {
		return
	}
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt(data, 0)
	}
}

func holder(f *os.File) Holder {
	var h Holder
	data := make([]byte, 1024)
	n, _ := f.ReadAt(data, 0)
	if json.Unmarshal(data[:n], &h) != nil {
		return Holder{}
	}
	return h
}
