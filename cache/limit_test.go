package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// scale weighs all files of a volume while they are written, renamed and removed.
type scale struct {
	osFiles
	dir        string
	mu         sync.Mutex
	files      map[string]int64
	sum, worst int64
}

func newScale(dir string) *scale { return &scale{dir: dir, files: map[string]int64{}} }

func (s *scale) set(name string, bytes int64) {
	s.sum += bytes - s.files[name]
	s.files[name] = bytes
	s.worst = max(s.worst, s.sum)
}

func (s *scale) Open(name string, flag int) (file, error) {
	f, err := s.osFiles.Open(name, flag)
	if err != nil || flag&os.O_CREATE == 0 || strings.HasSuffix(name, ".note") { // which is no entry
		return f, err
	}
	return &weighed{File: f.(*os.File), on: s, name: name}, nil
}

func (s *scale) Rename(from, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.osFiles.Rename(from, to)
	if err == nil {
		bytes := s.files[from]
		s.set(from, 0)
		s.set(to, bytes)
	}
	return err
}

func (s *scale) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.osFiles.Remove(name)
	if err == nil {
		s.set(name, 0)
	}
	return err
}

type weighed struct {
	*os.File
	on    *scale
	name  string
	bytes int64
}

func (w *weighed) Write(b []byte) (int, error) {
	n, err := w.File.Write(b)
	w.bytes += int64(n)
	w.on.mu.Lock()
	defer w.on.mu.Unlock()
	w.on.set(w.name, roundUp(w.bytes))
	return n, err
}

// The cap holds at every instant, files being written included, whatever many
// writers do at once.
func TestCapHolds(t *testing.T) {
	const limit = 3 << 20
	dir := t.TempDir()
	cfg := testConfig(dir)
	cfg.Volumes[0].MaxSize = limit
	weights := newScale(dir)
	c, _ := openOn(t, cfg, roomy(), weights, time.Now)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range 150 {
				key := Key{Path: fmt.Sprint(r.IntN(400))}
				err := c.Put(key, Meta{FetchStart: at(i)}, make([]byte, r.IntN(200_000)))
				if err != nil && !errors.Is(err, ErrSuperseded) {
					t.Error(err)
				}
				if e, ok := c.Get(Key{Path: fmt.Sprint(r.IntN(400))}); ok {
					_ = e.Close()
				}
			}
		})
	}
	all.Wait()
	s := c.Stats().Volumes[0]
	if weights.worst > limit {
		t.Errorf("%d bytes on disk at the worst, the limit is %d", weights.worst, limit)
	}
	if s.Bytes > limit || s.Bytes < limit*8/10 || s.Evictions == 0 {
		t.Errorf("%+v, want nearly %d bytes and evictions", s, limit)
	}
	if s.Bytes != weights.sum {
		t.Errorf("%d bytes counted, %d weighed", s.Bytes, weights.sum)
	}
	var real int64
	for _, name := range filesIn(t, dir) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		real += onDisk(info)
	}
	if real > limit {
		t.Errorf("%d bytes of blocks, the limit is %d", real, limit)
	}
	err := c.PutFrom(Key{Path: "huge"}, Meta{FetchStart: at(1)}, limit, zeros{})
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("an entry as large as the volume: %v", err)
	}
}

// What was used last stays, also across a restart.
func TestLeastRecentlyUsedGoes(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Volumes[0].MaxSize = 20 * blockSize
	clk := &clock{now: time.Now()} // a new file has the real time of use
	c, _ := openOn(t, cfg, roomy(), osFiles{}, clk.Now)
	key := func(i int) Key { return Key{Path: fmt.Sprint(i)} }
	there := func(i int) bool {
		e, ok := c.Get(key(i))
		if ok {
			_ = e.Close()
		}
		return ok
	}
	put := func(i int) {
		t.Helper()
		clk.advance(time.Minute)
		if err := c.Put(key(i), Meta{FetchStart: at(1)}, make([]byte, 3000)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 15 {
		put(i)
	}
	clk.advance(3 * time.Hour)
	for i := range 5 { // from memory
		if !there(i) {
			t.Fatalf("%d is gone", i)
		}
	}
	settle(c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	clk.advance(3 * time.Hour)
	cfg.Memory = 0
	c, _ = openOn(t, cfg, roomy(), osFiles{}, clk.Now)
	for i := 100; i < 114; i++ {
		put(i)
	}
	left := 0
	for i := range 15 {
		if there(i) {
			left++
			if i >= 5 {
				t.Errorf("%d stayed, though it was used less recently than 0 to 4", i)
			}
		}
	}
	if left == 0 {
		t.Error("nothing stayed of what was used last")
	}
}

// disk.high and disk.low, for bytes and for inodes, whoever fills the disk.
func TestDiskLimits(t *testing.T) {
	for _, inodes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			files := &faulty{}
			var others int64 // what somebody else uses
			var c *Cache
			count := func() (usage, error) {
				var own VolumeStats
				if c != nil {
					own = c.volumes[0].stats()
				}
				files.mu.Lock()
				defer files.mu.Unlock()
				if inodes {
					return usage{bytesUsed: 1, bytesFree: 99, filesUsed: others + own.Files, filesFree: 100 - others - own.Files}, nil
				}
				used := others*blockSize + own.Bytes
				return usage{bytesUsed: used, bytesFree: 100*blockSize - used}, nil
			}
			files.used = func() (usage, error) { return usage{}, nil }
			c, _ = openWith(t, testConfig(t.TempDir()), DiskConfig{High: 90, Low: 80, Stress: 95}, files, Options{Now: time.Now})
			defer c.Close()
			files.mu.Lock()
			files.used = count
			files.mu.Unlock()
			for i := range 50 {
				if err := c.Put(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: time.Now()}, []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			pass := func(n int64) VolumeStats {
				files.mu.Lock()
				others = n
				files.mu.Unlock()
				<-time.After(2*upkeepEvery + time.Millisecond) // of the bubble's clock
				return c.Stats().Volumes[0]
			}
			if s := pass(35); s.Files != 50 || s.Evictions != 0 || s.UsedPercent != 85 {
				t.Errorf("under disk.high: %+v", s)
			}
			if s := pass(41); s.Files != 39 || s.UsedPercent != 80 {
				t.Errorf("over disk.high: %+v, want 39 files left at 80 %%", s)
			}
			if s := pass(99); s.Files != 0 || s.State != StateOK {
				t.Errorf("somebody else fills the disk: %+v", s)
			}
		})
	}
}

// A volume that is larger than its max_size at the start shrinks.
func TestSmallerLimitAfterRestart(t *testing.T) {
	cfg := testConfig(t.TempDir())
	c, _ := openOn(t, cfg, roomy(), osFiles{}, time.Now)
	for i := range 50 {
		if err := c.Put(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.Volumes[0].MaxSize = 200_000
	c, _ = openOn(t, cfg, roomy(), osFiles{}, time.Now) // what is over goes after the load
	if s := c.Stats().Volumes[0]; s.Bytes > 200_000 || s.Files < 10 {
		t.Errorf("%+v, want just under 200,000 bytes", s)
	}
}

// An entry that has expired is a miss and goes.
func TestExpiry(t *testing.T) {
	for _, memory := range []int{0, 8 << 20} {
		clk := newClock()
		cfg := testConfig(t.TempDir())
		cfg.Memory = 0
		if memory > 0 {
			cfg.Memory = 8 << 20
		}
		c, _ := openOn(t, cfg, roomy(), osFiles{}, clk.Now)
		key := Key{Path: "/a"}
		meta := Meta{FetchStart: at(0), Expires: at(60)}
		if err := c.Put(key, meta, []byte("a")); err != nil {
			t.Fatal(err)
		}
		settle(c)
		clk.advance(59 * time.Second)
		check(t, c, key, meta, []byte("a"))
		clk.advance(time.Second)
		if _, ok := c.Get(key); ok {
			t.Error("hit after it expired")
		}
		settle(c)
		s := c.Stats()
		if v := s.Volumes[0]; v.Files != 0 || v.Broken != 0 || s.Misses != 1 {
			t.Errorf("%+v", s)
		}
		if _, err := os.Stat(filepath.Dir(c.volumes[0].name(key.hash()))); errors.Is(err, fs.ErrNotExist) {
			t.Error("the folder went with the file")
		}
	}
}
