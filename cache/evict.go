package cache

import (
	"errors"
	"fmt"
	"io/fs"
)

// maxSlack bounds how far under max_size an eviction goes, so that not every Put
// has to evict: a hundredth, at most 64 MiB (a thousand unlinks or so).
const maxSlack = 64 << 20

// reserve makes room for a file of that many bytes under max_size, evicting what
// was used least recently, and counts it from now on. What is being removed counts
// until it is gone, so that the cap also holds while many write at once.
func (v *volume) reserve(bytes int64) error {
	if bytes > v.maxSize {
		return fmt.Errorf("%w: %d bytes on disk, max_size of %s is %d", ErrTooLarge, bytes, v.path, v.maxSize)
	}
	if v.take(bytes) {
		return nil
	}
	v.evicting.Lock()
	defer v.evicting.Unlock()
	slack := min(v.maxSize/100, maxSlack)
	for {
		err := v.evictWhile(func(_, _ int64) bool { return v.index.bytes+v.reserved+bytes > v.maxSize-slack })
		if v.take(bytes) {
			return nil
		}
		if err != nil { // else somebody else took the room, or was faster to put
			return fmt.Errorf("%w: no room for %d bytes under max_size: %w", ErrUnavailable, bytes, err)
		}
	}
}

func (v *volume) take(bytes int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.index.bytes+v.reserved+bytes > v.maxSize {
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

// evict removes the least recently used entries until that many bytes and files
// are gone.
func (v *volume) evict(bytes, files int64) {
	v.evicting.Lock()
	defer v.evicting.Unlock()
	_ = v.evictWhile(func(b, f int64) bool { return b < bytes || f < files }) // counted there
}

// evictWhile evicts while more says so, which is asked with mu held and told what
// is gone so far. The error says why it ended early.
func (v *volume) evictWhile(more func(bytes, files int64) bool) error {
	var bytes, files int64
	for {
		v.mu.Lock()
		if !more(bytes, files) {
			v.mu.Unlock()
			return nil
		}
		victim, ok := v.index.oldest()
		if state := v.health.state; !ok || state != StateOK {
			v.mu.Unlock()
			return fmt.Errorf("nothing to evict (volume is %s)", state)
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
			return err
		}
		v.memory.drop(victim.hash)
		v.evictions.Add(1)
		bytes += victim.bytes()
		files++
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
