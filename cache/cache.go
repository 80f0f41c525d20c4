package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"karui/internal/sabotage"
)

// Options are what does not come from the configuration.
type Options struct {
	// Log gets what an operator should know: a volume that fails or returns, files
	// that were found broken. Default: slog.Default().
	Log *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time

	upkeepEvery  time.Duration // tests drive the upkeep themselves
	writeThrough bool          // tests of the disk put past the write queue
}

// Cache holds entries by key. Its methods may be called by many goroutines at once.
type Cache struct {
	memory  *memory
	volumes volumes
	queue   *queue
	purges  *purges
	now     func() time.Time
	through bool
	misses  atomic.Uint64
	queued  atomic.Uint64 // hits in the write queue
	closed  atomic.Bool
}

// Open takes the volumes' folders into use, creating them where they are missing,
// and returns at once however many entries they hold; they are all found from then
// on. The error is ErrLocked when another process uses a folder, or says which key
// of the configuration asks for what is not there. A disk that fails is no error:
// it is tried again each minute.
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
	if len(cfg.Volumes) == 0 {
		return nil, errors.New("cache.volumes is empty: name at least one folder")
	}
	m, err := newMemory(int64(cfg.Memory))
	if err != nil {
		return nil, fmt.Errorf("open cache: memory of %v: %w", cfg.Memory, err)
	}
	purged := newPurges(opts.Now)
	vs, err := openVolumes(cfg.Volumes, disk, opts, files, m, purged)
	if err != nil {
		m.close()
		return nil, err
	}
	return &Cache{
		memory: m, volumes: vs, purges: purged, queue: newQueue(vs, m, purged, int64(cfg.WriteQueue)),
		now: opts.Now, through: opts.writeThrough,
	}, nil
}

// Get gives the entry that is stored under key; false is a miss. The entry must be closed.
func (c *Cache) Get(key Key) (*Entry, bool) {
	if c.closed.Load() {
		return nil, false
	}
	h := key.hash()
	e, found := c.queue.get(&key, h, c.now())
	switch {
	case e != nil:
		c.queued.Add(1)
	case !found:
		e = c.volumes.get(&key, h)
	}
	if e != nil && c.purges.hit(&e.Key, &e.Meta) {
		_ = e.Close() // only read from; a sweep removes it
		e = nil
	}
	if e == nil {
		c.misses.Add(1)
		return nil, false
	}
	return e, true
}

// Put stores body under key, in place of what was fetched earlier. It waits for no
// disk: the entry is answered from memory until it is written, soon after. The cache
// keeps body and the attributes: they must not be written to afterwards. On an error
// nothing has changed: ErrSuperseded, ErrTooLarge, ErrClosed, or ErrUnavailable
// when no volume can be written or too much waits for them already.
func (c *Cache) Put(key Key, meta Meta, body []byte) error {
	if err := c.check(key, meta); err != nil {
		return err
	}
	if sabotage.Truncated {
		body = body[:len(body)/2]
	}
	if err := c.put(key, meta, body); err != nil {
		return fmt.Errorf("cache: put: %w", err)
	}
	return nil
}

func (c *Cache) put(key Key, meta Meta, body []byte) error {
	if c.purges.hit(&key, &meta) {
		return errPurged
	}
	h, sum := key.hash(), xxhash.Sum64(body)
	d := wholeDraft(key, h, meta, body, sum)
	if err := c.volumes.fit(d); err != nil {
		return err
	}
	if c.through || !c.queue.fits(d.size) {
		version, err := c.pastQueue(d)
		if err == nil {
			c.memory.set(h, version, key, meta, sum, body)
		}
		return err
	}
	if err := c.volumes.overtaken(d); err != nil {
		return err
	}
	return c.queue.put(h, &Entry{Key: key, Meta: meta, size: d.size, sum: sum, bytes: body, inRAM: true})
}

// pastQueue writes at once what is too large to wait in memory.
func (c *Cache) pastQueue(d *draft) (uint32, error) {
	fetched := toNano(d.meta.FetchStart)
	if err := c.queue.stream(d.hash, fetched); err != nil {
		return 0, err
	}
	version, err := c.volumes.write(d)
	if err == nil {
		c.queue.streamed(d.hash, fetched)
	}
	return version, err
}

// PutFrom is Put for a body of size bytes that need not be in memory. One that is
// too large to wait in the write queue is written before PutFrom returns, and the
// error may be the disk's. A reader that fails or gives fewer bytes stores nothing.
func (c *Cache) PutFrom(key Key, meta Meta, size int64, r io.Reader) error {
	if err := c.check(key, meta); err != nil {
		return err
	}
	if size < 0 {
		return fmt.Errorf("cache: put: size is %d, want the length of the body in bytes", size)
	}
	if err := c.putFrom(key, meta, size, r); err != nil {
		return fmt.Errorf("cache: put: %w", err)
	}
	return nil
}

func (c *Cache) putFrom(key Key, meta Meta, size int64, r io.Reader) error {
	if c.memory.admits(size) {
		body := make([]byte, size)
		if n, err := io.ReadFull(r, body); err != nil {
			return short(int64(n), size, err)
		}
		return c.put(key, meta, body)
	}
	if c.purges.hit(&key, &meta) {
		return errPurged
	}
	_, err := c.pastQueue(streamDraft(key, key.hash(), meta, size, r))
	return err
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
	found, err := c.queue.update(entry.Key.hash(), entry, meta)
	if !found {
		err = c.volumes.update(entry, meta)
	}
	if err != nil {
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
	h := key.hash()
	end := c.queue.begin(h, toNano(at))
	defer end()
	if err := c.volumes.remove(h, at); err != nil {
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

// Flush waits until all that was put is on its disk, or ctx ends.
func (c *Cache) Flush(ctx context.Context) error {
	if err := c.queue.flush(ctx); err != nil {
		return fmt.Errorf("flush cache: %w", err)
	}
	return nil
}

// Close writes what waits to be written, for a few seconds at most (Flush before it
// gives more time), ends the background work and gives the folders free. Open
// entries stay readable. Afterwards Get misses and the others return ErrClosed.
func (c *Cache) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	flushing, stop := context.WithTimeout(ctx, flushWait)
	defer stop()
	_ = c.queue.flush(flushing) // close counts what is left
	err := errors.Join(c.queue.close(flushing), c.volumes.close(ctx))
	c.memory.close()
	return err
}

// Stats is cheap enough to be asked for every second.
func (c *Cache) Stats() Stats {
	s := Stats{Misses: c.misses.Load(), HitsMemory: c.queued.Load()}
	for _, v := range c.volumes {
		s.HitsMemory += v.hitsMemory.Load()
		s.HitsDisk += v.hitsDisk.Load()
		s.Volumes = append(s.Volumes, v.stats())
	}
	s.MemoryBytes, s.MemoryMax = c.memory.used()
	s.QueueBytes, s.QueueMax, s.Dropped = c.queue.stats()
	s.Purges, s.Swept = c.purges.stats()
	return s
}
