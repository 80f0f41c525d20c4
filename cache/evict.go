package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

const (
	// evictBatch is how many files one eviction removes at most before it lets the next
	// one in. A disk that takes a millisecond for each holds a write up for 16 ms so,
	// and not for as long as it takes to make room for thousands.
	evictBatch = 16
	// measureAgain is after how many evictions for disk.high the file system is asked
	// again: somebody else may have made room.
	measureAgain = 64 * evictBatch
	// maxSlack bounds how far under max_size an eviction goes, so that not every write
	// has to evict: a hundredth, at most 1 MiB, and at most a batch.
	maxSlack = 1 << 20
	// roomWait is how long a write waits for the load to find something to evict.
	roomWait = 5 * time.Second
)

// used is what counts against max_size, in bytes: the files that are known, those
// being written or removed, at most what has not been found yet, and what the
// folders have grown by. Called with mu held.
func (v *volume) used() int64 { return v.index.bytes + v.reserved + v.unseen + v.listings }

// reserve makes room for a file of that many bytes under max_size, evicting what
// was used least recently, and counts it from now on. What is being removed counts
// until it is gone, so that the cap also holds while many write at once. A volume
// that is over max_size already, because that was made smaller or since not all files
// have been found, takes a file for each that this removes, and does not grow.
func (v *volume) reserve(bytes int64) error {
	if bytes > v.maxSize {
		return fmt.Errorf("%w: %d bytes on disk, max_size of %s is %d", ErrTooLarge, bytes, v.path, v.maxSize)
	}
	slack := min(v.maxSize/100, maxSlack)
	made := int64(0)
	var limit <-chan time.Time
	for {
		if v.take(bytes, made) {
			v.raiseCeiling()
			return nil
		}
		v.mu.Lock()
		progress := v.progress
		loading := v.loading && !v.closed
		v.mu.Unlock()
		gone, err := v.evictBatch(func(gone, _ int64) bool {
			if v.used() > v.maxSize {
				return made+gone < bytes
			}
			return v.used()+bytes > v.maxSize-slack
		})
		made += gone
		switch {
		case err == nil: // and if there is no room, somebody else took it, or was faster to put
		case errors.Is(err, errNothing) && loading:
			if limit == nil {
				timer := time.NewTimer(roomWait)
				defer timer.Stop()
				limit = timer.C
			}
			select {
			case <-progress:
			case <-limit:
				return fmt.Errorf("%w: no room for %d bytes under max_size before more of the volume is loaded", ErrUnavailable, bytes)
			}
		case !v.take(bytes, made):
			return fmt.Errorf("%w: no room for %d bytes under max_size: %w", ErrUnavailable, bytes, err)
		default:
			v.raiseCeiling()
			return nil
		}
	}
}

// take counts a file from now on if there is room for it. On a volume that is over
// max_size there is if the caller has made it.
func (v *volume) take(bytes, made int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	used := v.used()
	if used+bytes > v.maxSize && (used <= v.maxSize || made < bytes) {
		return false
	}
	v.reserved += bytes
	return true
}

func (v *volume) release(bytes int64) {
	v.mu.Lock()
	v.reserved -= bytes
	v.mu.Unlock()
}

// evict removes the least recently used entries until that many bytes and files are
// gone, or enough says that this will do, which is asked now and then; nil never does.
func (v *volume) evict(ctx context.Context, bytes, files int64, enough func() bool) {
	var goneBytes, goneFiles, asked int64
	for ctx.Err() == nil && (goneBytes < bytes || goneFiles < files) {
		batch := int64(0)
		b, err := v.evictBatch(func(b, f int64) bool {
			batch = f
			return goneBytes+b < bytes || goneFiles+f < files
		})
		goneBytes, goneFiles = goneBytes+b, goneFiles+batch
		if err != nil { // counted there
			return
		}
		if enough != nil && goneFiles-asked >= measureAgain {
			asked = goneFiles
			if enough() {
				return
			}
		}
	}
}

// shrink removes what is over max_size: that may have been made smaller.
func (v *volume) shrink(ctx context.Context) {
	for ctx.Err() == nil {
		over := false
		_, err := v.evictBatch(func(_, _ int64) bool {
			over = v.index.bytes+v.reserved+v.listings > v.maxSize
			return over
		})
		if !over || err != nil { // counted there
			return
		}
	}
}

// errNothing is why an eviction ends early when nothing is left.
var errNothing = errors.New("nothing to evict")

// evictBatch removes the least recently used entries, evictBatch of them at most,
// while more says so, which is asked with mu held and told what is gone so far. It
// gives the bytes of what is gone; the error says why it ended early.
func (v *volume) evictBatch(more func(bytes, files int64) bool) (bytes int64, err error) {
	v.evicting.Lock()
	defer v.evicting.Unlock()
	for files := int64(0); ; files++ {
		v.mu.Lock()
		if !more(bytes, files) || files == evictBatch {
			v.mu.Unlock()
			return bytes, nil
		}
		if v.closed || v.health.state != StateOK {
			defer v.mu.Unlock()
			return bytes, fmt.Errorf("volume is %s (closed: %t)", v.health.state, v.closed)
		}
		victim, ok := v.index.oldest()
		if !ok {
			v.mu.Unlock()
			return bytes, errNothing
		}
		v.index.remove(victim.hash)
		v.reserved += victim.bytes()
		v.mu.Unlock()

		err := v.unlinkVictim(victim.hash)
		v.mu.Lock()
		v.reserved -= victim.bytes()
		if err != nil && v.index.find(victim.hash) == nil {
			victim.access = v.now().UnixNano() // not the next victim as well
			v.index.put(victim)
		}
		v.mu.Unlock()
		if err != nil {
			v.fault(err, true)
			return bytes, err
		}
		v.memory.drop(victim.hash)
		v.evictions.Add(1)
		bytes += victim.bytes()
	}
}

// unlinkVictim leaves the file alone if the key has been put again meanwhile.
func (v *volume) unlinkVictim(h hash) error {
	lock := v.keyLock(h)
	lock.Lock()
	defer lock.Unlock()
	v.mu.Lock()
	again := v.index.find(h) != nil
	v.mu.Unlock()
	if again {
		return nil
	}
	err := v.unlink(h)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
