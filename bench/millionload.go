package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"karui/cache"
	"karui/internal/units"
)

// strokes are the times that calls took.
type strokes struct {
	mu    sync.Mutex
	times []time.Duration
}

func (s *strokes) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, d)
}

func (s *strokes) cells() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.times) == 0 {
		return []any{"-", "-", "-"}
	}
	us := func(d time.Duration) string { return fmt.Sprintf("%.3f", milliseconds(d)) }
	return []any{us(quantile(s.times, 0.5)), us(quantile(s.times, 0.99)), us(slices.Max(s.times))}
}

// probe calls Get and Put about 500 times a second each until stop.
func (m *million) probe(c *cache.Cache) (gets, puts *strokes, stop func()) {
	gets, puts = &strokes{}, &strokes{}
	end := make(chan struct{})
	var all sync.WaitGroup
	every := func(call func(r *rand.Rand), into *strokes) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(7, 7))
			beat := time.NewTicker(2 * time.Millisecond)
			defer beat.Stop()
			for {
				select {
				case <-end:
					return
				case <-beat.C:
				}
				began := time.Now()
				call(r)
				into.add(time.Since(began))
			}
		})
	}
	every(func(r *rand.Rand) {
		if e, ok := c.Get(m.keyOf(r.IntN(m.b.files))); ok {
			_ = e.Close()
		}
	}, gets)
	every(func(r *rand.Rand) {
		_ = c.Put(m.keyOf(m.b.files+r.IntN(10_000)), m.meta, m.body) // a full queue is a quick answer, too
	}, puts)
	return gets, puts, func() {
		close(end)
		all.Wait()
	}
}

// write has n workers put new entries as fast as the disk takes them, until ctx ends or most are written.
func (m *million) write(ctx context.Context, c *cache.Cache, n int, most int64, size func(r *rand.Rand) int) error {
	var (
		group sync.WaitGroup
		next  atomic.Int64
		mu    sync.Mutex
		bad   error
	)
	run := time.Now().UnixNano()
	for w := range n {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(run), uint64(w)))
			for i := next.Add(1); i <= most && ctx.Err() == nil; i = next.Add(1) {
				key := m.key
				key.Path = fmt.Sprintf("/new/%d/%d.jpg", run, i)
				if err := m.put(ctx, c, key, make([]byte, size(r))); err != nil && ctx.Err() == nil {
					mu.Lock()
					bad = errors.Join(bad, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	group.Wait()
	return bad
}

// latencies looks at Get and Put while nothing else happens, and while very many entries are evicted.
func (m *million) latencies(ctx context.Context) error {
	evicted := int64(m.b.files) / 10
	t := newTable("Get and Put in the process, 500 a second each, ms", "meanwhile", "s", "evictions", "Puts turned away (queue full)",
		"Get p50", "p99", "slowest", "Put p50", "p99", "slowest", "largest use / max_size")
	var full int64
	row := func(what string, c *cache.Cache, work func() error) error {
		m.b.say("Get and Put: %s", what)
		before := c.Stats()
		peak := watchUse(c)
		gets, puts, stop := m.probe(c)
		began := time.Now()
		err := work()
		took := time.Since(began)
		stop()
		use := peak()
		s := c.Stats()
		cells := []any{what, fmt.Sprintf("%.1f", took.Seconds()), s.Volumes[0].Evictions - before.Volumes[0].Evictions, s.Dropped - before.Dropped}
		cells = append(append(cells, gets.cells()...), puts.cells()...)
		t.row(append(cells, fmt.Sprintf("%.4f", use))...)
		return err
	}
	rest := func(d time.Duration) func() error {
		return func() error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return nil
			}
		}
	}
	session := func(most int64, loadFirst bool, use func(c *cache.Cache) error) error {
		c, err := m.open(0, m.folder, most)
		if err != nil {
			return err
		}
		if loadFirst {
			err = loaded(ctx, c)
		}
		if err == nil {
			err = use(c)
		}
		err = errors.Join(err, c.Flush(ctx)) // Close waits for some seconds only
		full = c.Stats().Volumes[0].Bytes
		return errors.Join(err, c.Close())
	}
	small := func(r *rand.Rand) int { return 300 + r.IntN(2500) }
	evictionsReach := func(c *cache.Cache, n int64) func() error {
		return func() error {
			for s := c.Stats().Volumes[0]; s.Evictions < uint64(n) || !s.Loaded; s = c.Stats().Volumes[0] {
				if err := rest(20 * time.Millisecond)(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	err := session(1<<40, true, func(c *cache.Cache) error {
		if err := row("nothing", c, rest(5*time.Second)); err != nil {
			return err
		}
		return row("8 writers, room for all", c, func() error { return errors.Join(m.write(ctx, c, 8, evicted/4, small), c.Flush(ctx)) })
	})
	if err != nil {
		return err
	}
	err = session(1<<40, false, func(c *cache.Cache) error {
		return row("the load", c, func() error { return loaded(ctx, c) })
	})
	if err != nil {
		return err
	}
	err = session(full, true, func(c *cache.Cache) error {
		return row("8 writers at max_size", c, func() error { return errors.Join(m.write(ctx, c, 8, evicted, small), c.Flush(ctx)) })
	})
	if err != nil {
		return err
	}
	err = session(full, false, func(c *cache.Cache) error {
		return row("the load, and 8 writers at max_size", c, func() error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			wrote := make(chan error, 1)
			go func() { wrote <- m.write(ctx, c, 8, 1<<60, small) }()
			err := loaded(ctx, c)
			cancel()
			return errors.Join(err, <-wrote)
		})
	})
	if err != nil {
		return err
	}
	err = session(full-full/8, true, func(c *cache.Cache) error {
		return row("max_size made an eighth smaller (from 1.14)", c, evictionsReach(c, evicted))
	})
	if err != nil {
		return err
	}
	t.print(m.b)
	du, err := diskUse(m.folder)
	if err != nil {
		return err
	}
	m.b.say("du of the folder, with all folders in it: %.4f of what the cache counts", float64(du)/float64(full))
	return nil
}

// watchUse samples what the cache says that it takes, and gives the most of it as a share of max_size.
func watchUse(c *cache.Cache) (stop func() float64) {
	end := make(chan struct{})
	var (
		watching sync.WaitGroup
		most     float64
	)
	watching.Go(func() {
		beat := time.NewTicker(5 * time.Millisecond)
		defer beat.Stop()
		for {
			for _, v := range c.Stats().Volumes {
				most = max(most, float64(v.Bytes)/float64(v.MaxBytes))
			}
			select {
			case <-end:
				return
			case <-beat.C:
			}
		}
	})
	return func() float64 {
		close(end)
		watching.Wait()
		return most
	}
}

// diskUse is what du -s says, in bytes.
func diskUse(folder string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it went while it was looked at
		}
		if info, err := os.Lstat(path); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += s.Blocks * 512
			}
		}
		return nil
	})
	return sum, err
}

// purgeTime bounds how long a purge is watched: its sweep is slow on purpose.
const purgeTime = time.Minute

// purge removes files by prefix, in the background, and looks at Get and Put meanwhile.
func (m *million) purge(ctx context.Context) error {
	c, err := m.open(0, m.folder, 1<<40)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := loaded(ctx, c); err != nil {
		return err
	}
	m.b.say("purge")
	gets, puts, stop := m.probe(c)
	began := time.Now()
	err = c.Purge(m.key.Site, []string{"/products/1"}, time.Now())
	answered := time.Since(began)
	for done := false; err == nil && !done; {
		done = true
		for _, p := range c.Purges() {
			done = done && p.Done
		}
		done = done || time.Since(began) > purgeTime
		if !done {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	took := time.Since(began)
	stop()
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	var removed, looked int64
	for _, p := range c.Purges() {
		removed += p.Removed
		looked += p.Looked
	}
	t := newTable(fmt.Sprintf("The first %s of a purge by prefix of a ninth of all files, ms", purgeTime),
		"answered after", "s", "files looked at", "files removed", "files", "Get p50", "p99", "slowest", "Put p50", "p99", "slowest")
	cells := []any{ms(answered), fmt.Sprintf("%.1f", took.Seconds()), looked, removed, c.Stats().Volumes[0].Files + removed}
	t.row(append(append(cells, gets.cells()...), puts.cells()...)...)
	t.print(m.b)
	return nil
}

// caps fills three volumes of different sizes with 8 writers, and looks at what they take: each is a file system of its
// own, so that what it has in use can be read off at any instant; without the right to mount one, du is asked.
func (m *million) caps(ctx context.Context) error {
	sizes := []int64{32 << 20, 64 << 20, 128 << 20}
	cfg := cache.DefaultConfig()
	cfg.Memory, cfg.Volumes = 0, nil
	how := "used blocks of its own file system, every ms"
	for i, size := range sizes {
		v := cache.DefaultVolume()
		v.Path, v.MaxSize = filepath.Join(m.b.dir, fmt.Sprintf("volume-%d", i)), units.Size(size)
		if err := os.MkdirAll(v.Path, 0o700); err != nil {
			return fmt.Errorf("make a volume: %w", err)
		}
		if err := unix.Mount("tmpfs", v.Path, "tmpfs", 0, fmt.Sprintf("size=%d", 4*size)); err == nil {
			defer func() { _ = unix.Unmount(v.Path, 0) }() // goes with the machine at the latest
		} else {
			how = "du, again and again: it counts twice what moves meanwhile"
		}
		cfg.Volumes = append(cfg.Volumes, v)
	}
	mounted := strings.HasPrefix(how, "used")
	t := newTable("The cap under 8 writers of 300 bytes to 40 KiB, three volumes ("+how+")",
		"", "s", "written", "dropped", "largest use / max_size of 32 MiB", "64 MiB", "128 MiB")
	run := func(what string, begin func(c *cache.Cache) error) error {
		m.b.say("cap: %s", what)
		c, err := cache.Open(cfg, cache.DiskConfig{High: 99.9, Low: 99.8, Stress: 100}, cache.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		end := make(chan struct{})
		most := make([]float64, len(sizes))
		var watching sync.WaitGroup
		for i, v := range cfg.Volumes {
			watching.Go(func() {
				for {
					most[i] = max(most[i], float64(useOf(v.Path, mounted))/float64(sizes[i]))
					select {
					case <-end:
						return
					case <-time.After(time.Millisecond):
					}
				}
			})
		}
		began := time.Now()
		err = begin(c)
		took := time.Since(began)
		close(end)
		watching.Wait()
		s := c.Stats()
		var puts uint64
		for _, v := range s.Volumes {
			puts += v.Puts
		}
		err = errors.Join(err, c.Flush(ctx))
		cells := []any{what, fmt.Sprintf("%.1f", took.Seconds()), puts, s.Dropped}
		for _, share := range most {
			cells = append(cells, fmt.Sprintf("%.4f", share))
		}
		t.row(cells...)
		return errors.Join(err, c.Close())
	}
	mixed := func(r *rand.Rand) int { return 300 + r.IntN(40_000) }
	writers := func(c *cache.Cache) error { return m.write(ctx, c, 8, 40_000, mixed) }
	for _, what := range []string{"from empty", "restarted full, written to from the first moment on"} {
		if err := run(what, writers); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(cfg.Volumes[1].Path, "size")); err != nil {
		return fmt.Errorf("forget a size: %w", err)
	}
	if err := run("the same, one volume without its note about the size", writers); err != nil {
		return err
	}
	t.print(m.b)
	return nil
}

// useOf is what a volume takes on its disk.
func useOf(folder string, mounted bool) int64 {
	if !mounted {
		n, _ := diskUse(folder) // errors are of what went meanwhile
		return n
	}
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0
	}
	return int64(s.Blocks-s.Bfree) * s.Bsize
}
