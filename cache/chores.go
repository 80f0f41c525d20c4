package cache

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A chore is what a Get found out should be done and does not wait for. Chores are
// done one after the other; when too many wait, new ones are left: the next Get
// of that key finds the same.
type chore struct {
	what  choreKind
	hash  hash
	stamp uint32 // the file that is meant; 0 is one that is no regular file
	at    time.Time
	err   error
	done  chan<- struct{}
}

type choreKind uint8

const (
	choreAccess choreKind = iota // write the time of the last use to disk
	choreBroken                  // remove a file that is no entry
	choreExpire                  // remove an entry that has expired
	choreBury                    // hide a file that the disk cannot read, remove it when that works
	choreSync                    // write everything to the disk
	choreNothing
)

func (v *volume) ask(c chore) {
	select {
	case v.chores <- c:
	default:
	}
}

// touched has the time of use written to disk, at most once an hour for an entry,
// so that the order of use survives a restart.
func (v *volume) touched(seen record, now time.Time) {
	if seen.version != 0 && seen.access/accessEvery != now.UnixNano()/accessEvery {
		v.ask(chore{what: choreAccess, hash: seen.hash, at: now})
	}
}

func (v *volume) doChores(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-v.chores:
			v.do(c)
			if c.done != nil {
				close(c.done)
			}
		}
	}
}

func (v *volume) do(c chore) {
	if c.what == choreBury {
		lock := v.keyLock(c.hash)
		lock.Lock()
		defer lock.Unlock()
		v.mu.Lock()
		defer v.mu.Unlock()
		v.index.remove(c.hash)
		v.dig(c.hash, grave{dug: v.now().UnixNano(), file: true})
		return
	}
	if v.working() != nil {
		return
	}
	switch c.what {
	case choreAccess:
		if err := v.files.SetAccess(v.name(c.hash), c.at); judge(err, true) != unharmed {
			v.fault(err, true)
		}
	case choreBroken:
		v.discard(c.hash, func() bool {
			info, err := v.files.Lstat(v.name(c.hash))
			if err != nil {
				return false
			}
			if c.stamp == 0 {
				return !info.Mode().IsRegular()
			}
			return fingerprint(info) == c.stamp
		}, func() {
			v.broken.Add(1)
			v.log.Debug("cache file is broken", "file", v.name(c.hash), "err", c.err)
		})
	case choreExpire:
		v.discard(c.hash, func() bool {
			f, hd, _, err := v.openHead(nil, c.hash, unix.O_RDONLY)
			if err != nil {
				return false
			}
			_ = f.Close()
			return hd.meta.expired(v.now())
		}, func() {})
	case choreSync:
		v.sync()
	case choreBury, choreNothing:
	}
}

// discard removes a file if it is still the one that is meant.
func (v *volume) discard(h hash, meant func() bool, removed func()) {
	lock := v.keyLock(h)
	lock.Lock()
	defer lock.Unlock()
	if !meant() {
		return
	}
	if err := v.unlink(h); err != nil {
		v.fault(err, true)
		return
	}
	v.mu.Lock()
	v.index.remove(h)
	v.mu.Unlock()
	v.memory.drop(h)
	removed()
}

// sync writes the file system's buffers out. An error says that something written
// since the last time is lost, nobody knows what: the volume is taken out, and
// every file is verified anew when it returns.
func (v *volume) sync() {
	v.mu.Lock()
	lock := v.lock
	v.mu.Unlock()
	if lock == nil {
		return
	}
	err := v.files.Sync(lock)
	if noSpace(err) || judge(err, true) != unharmed {
		v.fault(fmt.Errorf("%w: what was written last is lost: %w", unix.EIO, err), true)
	}
}
