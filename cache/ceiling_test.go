package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// gated is a scale whose load stops before one folder until it is let go.
type gated struct {
	*scale
	before string
	gate   chan struct{}
}

func (g gated) Names(dir string, visit func(string) bool) error {
	if filepath.Base(dir) == g.before && filepath.Base(filepath.Dir(dir)) == "entries" {
		<-g.gate
	}
	return g.osFiles.Names(dir, visit)
}

// Usage is what a machine of its own would say.
func (g gated) Usage(string) (usage, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return usage{bytesUsed: g.sum, bytesFree: 1 << 40}, nil
}

// The cap holds on a full volume whose files are only half known, however its last
// process ended, whoever writes; and nothing that was put is lost for it.
func TestCapHoldsWhileLoading(t *testing.T) {
	const limit = 4 << 20
	for _, ended := range []string{"well", "killed", "without a note"} {
		t.Run(ended, func(t *testing.T) {
			dir := t.TempDir()
			cfg := testConfig(dir)
			cfg.Memory, cfg.Volumes[0].MaxSize = 0, limit
			weights := newScale(dir)
			c, _ := openOn(t, cfg, roomy(), weights, time.Now)
			for i := range 1100 {
				if err := c.Put(Key{Path: fmt.Sprint("old", i)}, Meta{FetchStart: at(1)}, make([]byte, 3000)); err != nil {
					t.Fatal(err)
				}
			}
			note := filepath.Join(dir, "size")
			killed, err := os.ReadFile(note)
			if err = errors.Join(err, c.Close()); err != nil {
				t.Fatal(err)
			}
			switch ended {
			case "killed":
				err = os.WriteFile(note, killed, 0o600)
			case "without a note":
				err = os.Remove(note)
			}
			if err != nil {
				t.Fatal(err)
			}
			if weights.worst > limit || weights.sum < limit*9/10 {
				t.Fatalf("%d bytes, %d at the worst, of %d before the restart", weights.sum, weights.worst, limit)
			}

			files := gated{weights, "80", make(chan struct{})}
			log := newMessages()
			c, err = open(cfg, roomy(), Options{Log: slogger(log), writeThrough: true}, files)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var writers sync.WaitGroup
			var puts atomic.Int64
			for w := range 8 {
				writers.Go(func() {
					r := rand.New(rand.NewPCG(1, uint64(w)))
					for i := range 40 {
						if puts.Add(1) == 200 {
							close(files.gate)
						}
						if err := c.Put(Key{Path: fmt.Sprint("new", w, i)}, Meta{FetchStart: at(2)}, make([]byte, r.IntN(12_000))); err != nil {
							t.Error(err)
						}
					}
				})
			}
			writers.Wait()
			log.wait(t, "cache volume loaded")
			if weights.worst > limit {
				t.Errorf("%d bytes on disk at the worst, the limit is %d", weights.worst, limit)
			}
			if s := c.Stats().Volumes[0]; s.Bytes != weights.sum || s.Bytes < limit*8/10 {
				t.Errorf("%d bytes counted, %d weighed, of %d", s.Bytes, weights.sum, limit)
			}
		})
	}
}

// A write to a full volume of which nothing is known yet waits for the load, and
// gives up when nothing comes of it or the cache is closed.
func TestWriteWaitsForTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		dir := t.TempDir()
		cfg := testConfig(dir)
		cfg.Memory, cfg.Volumes[0].MaxSize = 0, limit
		weights := newScale(dir)
		c, _ := openOn(t, cfg, roomy(), weights, time.Now)
		for i := range 300 {
			if err := c.Put(Key{Path: fmt.Sprint("old", i)}, Meta{FetchStart: at(1)}, make([]byte, 3000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		files := gated{weights, "00", make(chan struct{})}
		c, err := open(cfg, roomy(), Options{Log: slogger(newMessages()), writeThrough: true, upkeepEvery: time.Hour}, files)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		began := time.Now()
		err = c.Put(Key{Path: "early"}, Meta{FetchStart: at(2)}, make([]byte, 100_000))
		if took := time.Since(began); !errors.Is(err, ErrUnavailable) || took != roomWait {
			t.Errorf("%v after %v, want an error after %v", err, took, roomWait)
		}
		put := make(chan error)
		go func() { put <- c.Put(Key{Path: "early"}, Meta{FetchStart: at(2)}, make([]byte, 100_000)) }()
		synctest.Wait()
		close(files.gate)
		if err := <-put; err != nil {
			t.Errorf("after the load: %v", err)
		}
		if weights.worst > limit {
			t.Errorf("%d bytes at the worst", weights.worst)
		}
	})
}

// A volume that is over its limit takes new entries for old ones, and does not grow.
func TestOverTheLimitOneGoesForEachThatComes(t *testing.T) {
	weights := newScale(t.TempDir())
	cfg := testConfig(weights.dir)
	cfg.Memory = 0
	c, _ := openOn(t, cfg, roomy(), weights, time.Now)
	v := c.volumes[0]
	for i := range 200 {
		if err := c.Put(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	before := weights.sum
	v.mu.Lock()
	v.maxSize = before / 2
	v.mu.Unlock()
	weights.worst = 0
	for i := range 20 {
		if err := c.Put(Key{Path: fmt.Sprint("new", i)}, Meta{FetchStart: at(1)}, make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	if weights.worst > before || weights.sum < before*9/10 {
		t.Errorf("%d bytes, %d at the worst, want about the %d from before", weights.sum, weights.worst, before)
	}
	v.shrink(t.Context())
	if weights.sum > before/2 || weights.sum < before*4/10 {
		t.Errorf("shrunk to %d, want just under %d", weights.sum, before/2)
	}
}

// An eviction lets others in after a batch, and ends with the cache.
func TestEvictionComesInBatches(t *testing.T) {
	files := &faulty{}
	cfg := testConfig(t.TempDir())
	c, _ := openOn(t, cfg, roomy(), files, time.Now)
	v := c.volumes[0]
	for i := range 200 {
		if err := c.Put(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	bytes, err := v.evictBatch(func(_, _ int64) bool { return true })
	if n := v.evictions.Load(); err != nil || n != evictBatch || bytes != evictBatch*blockSize {
		t.Errorf("a batch of %d files, %d bytes, %v", n, bytes, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var removed atomic.Int64
	files.break_(func(op, _ string) error {
		if op == "remove" && removed.Add(1) == 20 {
			cancel()
		}
		return nil
	})
	v.evict(ctx, 1<<40, 1000, nil)
	if n := removed.Load(); n < 20 || n > 20+evictBatch {
		t.Errorf("%d files went, 20 until the end was asked for", n)
	}
	// Somebody else made room: enough is asked now and then, and believed.
	files.break_(nil)
	for i := range 2 * measureAgain {
		if err := c.Put(Key{Path: fmt.Sprint("more", i)}, Meta{FetchStart: at(1)}, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	before := v.evictions.Load()
	v.evict(t.Context(), 1<<40, 1<<40, func() bool { return true })
	if n := v.evictions.Load() - before; n < measureAgain || n > measureAgain+evictBatch {
		t.Errorf("%d files went, want to be asked after %d", n, measureAgain)
	}
}

// The note says at most what the files take, is seldom written, and is missed by nobody.
func TestNoteAboutTheSize(t *testing.T) {
	const limit = 8 << 20
	dir := t.TempDir()
	cfg := testConfig(dir)
	cfg.Volumes[0].MaxSize = limit
	files := &faulty{notes: true}
	var notes atomic.Int64
	files.break_(func(op, name string) error {
		if op == "rename" && filepath.Base(name) == "size" {
			notes.Add(1)
		}
		return nil
	})
	noted := func() int64 {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, "size"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	clk := newClock()
	c, _ := openOn(t, cfg, roomy(), files, clk.Now)
	v := c.volumes[0]
	for i := range 2300 {
		if err := c.Put(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, make([]byte, 3000)); err != nil {
			t.Fatal(err)
		}
		if s := v.stats(); noted() < s.Bytes {
			t.Fatalf("the note says %d, the files take %d", noted(), s.Bytes)
		}
	}
	if n := notes.Load(); n > 110 || noted() != limit {
		t.Errorf("%d notes until it was full, the last says %d", n, noted())
	}
	v.evict(t.Context(), limit/2, 0, nil)
	v.minutely(clk.advance(time.Minute))
	if n, s := noted(), v.stats().Bytes; n < s || n > s+v.ceilingStep() {
		t.Errorf("the note says %d after the files went down to %d", n, s)
	}
	files.break_(func(op, name string) error {
		if strings.HasSuffix(name, "size.note") || filepath.Base(name) == "size" {
			return syscall.EMFILE
		}
		return nil
	})
	for i := range 1000 {
		if err := c.Put(Key{Path: fmt.Sprint("unnoted", i)}, Meta{FetchStart: at(1)}, make([]byte, 3000)); err != nil {
			t.Fatal(err)
		}
	}
	files.break_(nil)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n, s := noted(), v.stats().Bytes; n != s {
		t.Errorf("the note says %d at the end, the files take %d", n, s)
	}
	// Whatever stands in it, all files are found, and the guess ends with the load.
	for _, text := range []string{"", "nonsense", "-5\n", "99999999999999999999\n", "9000000000000000000\n", strings.Repeat("1", 100)} {
		if err := os.WriteFile(filepath.Join(dir, "size"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _ := openOn(t, cfg, roomy(), files, clk.Now)
		v := c.volumes[0]
		v.mu.Lock()
		unseen, used, bytes := v.unseen, v.used(), v.index.bytes
		v.mu.Unlock()
		if unseen != 0 || used != bytes {
			t.Errorf("after %q: %d unseen, %d used, %d bytes", text, unseen, used, bytes)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Lists of names that have become long count; their first block does not.
func TestListingsCount(t *testing.T) {
	files := &long{}
	c, _ := openOn(t, testConfig(t.TempDir()), roomy(), files, time.Now)
	v := c.volumes[0]
	for i := range 2000 {
		if err := c.Put(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	v.measure(t.Context())
	before := v.stats().Bytes
	if before < 2000*blockSize {
		t.Fatalf("%d bytes", before)
	}
	v.mu.Lock()
	v.weighedAt = 0
	v.mu.Unlock()
	files.more.Store(1 << 20)
	v.measure(t.Context())
	if got := v.stats().Bytes - before; got < 255<<20 || got > 256<<20 {
		t.Errorf("%d more bytes, want a MiB for each of 256 folders", got)
	}
}
