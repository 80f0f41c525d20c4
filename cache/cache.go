package cache

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"karui/internal/sabotage"
)

// Options are what does not come from the configuration.
type Options struct {
	// Log gets what an operator should know: a volume that fails or returns, files
	// that were found broken. Default: slog.Default().
	Log *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time

	upkeepEvery time.Duration // tests drive the upkeep themselves
}

// Cache holds entries by key. Its methods may be called by many goroutines at once.
type Cache struct {
	memory *memory
	volume *volume
	closed atomic.Bool
}

// Open takes the volume's folder into use, creating it where it is missing, and
// returns at once however many entries it holds; they are all found from then on.
// The error is ErrLocked when another process uses the folder, or says which key
// of the configuration asks for what is not there.
func Open(cfg Config, disk DiskConfig, opts Options) (*Cache, error) {
	return open(cfg, disk, opts, osFiles{})
}

func open(cfg Config, disk DiskConfig, opts Options, files fileSystem) (*Cache, error) {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.upkeepEvery == 0 {
		opts.upkeepEvery = upkeepEvery
	}
	if cfg.Shared.URL != "" {
		return nil, fmt.Errorf("cache.shared.url is %q: a shared store is not available in this version, leave it empty", cfg.Shared.URL)
	}
	if n := len(cfg.Volumes); n != 1 {
		return nil, fmt.Errorf("cache.volumes has %d volumes: this version works with exactly one", n)
	}
	m, err := newMemory(int64(cfg.Memory))
	if err != nil {
		return nil, fmt.Errorf("open cache: memory of %v: %w", cfg.Memory, err)
	}
	v, err := openVolume(cfg.Volumes[0], disk, opts, files, m)
	if err != nil {
		m.close()
		return nil, fmt.Errorf("open cache volume %s: %w", cfg.Volumes[0].Path, err)
	}
	return &Cache{memory: m, volume: v}, nil
}

// Get gives the entry that is stored under key; false is a miss. The entry must be closed.
func (c *Cache) Get(key Key) (*Entry, bool) {
	if c.closed.Load() {
		return nil, false
	}
	e := c.volume.get(&key, key.hash())
	if e == nil {
		c.volume.misses.Add(1)
		return nil, false
	}
	return e, true
}

// Put stores body under key, in place of what was fetched earlier. The cache keeps
// body and the attributes: they must not be written to afterwards. On an error nothing has changed:
// ErrSuperseded, ErrTooLarge, ErrUnavailable, ErrClosed, or what the disk said.
func (c *Cache) Put(key Key, meta Meta, body []byte) error {
	if err := c.check(key, meta); err != nil {
		return err
	}
	if sabotage.Truncated {
		body = body[:len(body)/2]
	}
	if err := c.volume.put(key, meta, body); err != nil {
		return fmt.Errorf("cache: put: %w", err)
	}
	return nil
}

// PutFrom is Put for a body of size bytes that need not be in memory. A reader
// that fails or gives fewer bytes stores nothing.
func (c *Cache) PutFrom(key Key, meta Meta, size int64, r io.Reader) error {
	if err := c.check(key, meta); err != nil {
		return err
	}
	if size < 0 {
		return fmt.Errorf("cache: put: size is %d, want the length of the body in bytes", size)
	}
	if err := c.volume.putFrom(key, meta, size, r); err != nil {
		return fmt.Errorf("cache: put: %w", err)
	}
	return nil
}

// Update gives the body of an entry, which may be closed already, new metadata: an
// origin said that it is still good. It is cheap: the body is not written again. It
// changes nothing and returns ErrSuperseded if another body has been stored
// meanwhile or what is stored was fetched after meta.FetchStart, ErrGone if nothing
// is stored any more. Entries that are open keep the metadata they had.
func (c *Cache) Update(entry *Entry, meta Meta) error {
	if err := c.check(entry.Key, meta); err != nil {
		return err
	}
	if err := c.volume.update(entry, meta); err != nil {
		return fmt.Errorf("cache: update: %w", err)
	}
	return nil
}

// Delete removes what is stored under key unless it was fetched after at, the
// start of the fetch that found it gone. A Put or an Update whose FetchStart is
// not after at loses too, should it come within the next minutes. Nothing to
// remove is no error; after an error of the disk the entry is a miss all the same,
// and its removal is tried again while the process lives.
func (c *Cache) Delete(key Key, at time.Time) error {
	if err := c.check(key, Meta{FetchStart: at}); err != nil {
		return err
	}
	if err := c.volume.remove(key.hash(), at); err != nil {
		return fmt.Errorf("cache: delete: %w", err)
	}
	return nil
}

func (c *Cache) check(key Key, meta Meta) error {
	if c.closed.Load() {
		return ErrClosed
	}
	return errors.Join(key.check(), meta.check())
}

// Close ends the background work and gives the folder free. Open entries stay
// readable. Afterwards Get misses and the others return ErrClosed.
func (c *Cache) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	err := c.volume.close()
	c.memory.close()
	return err
}

// Stats is cheap enough to be asked for every second.
func (c *Cache) Stats() Stats {
	s := Stats{
		HitsMemory: c.volume.hitsMemory.Load(), HitsDisk: c.volume.hitsDisk.Load(), Misses: c.volume.misses.Load(),
		Volumes: []VolumeStats{c.volume.stats()},
	}
	s.MemoryBytes, s.MemoryMax = c.memory.used()
	return s
}
