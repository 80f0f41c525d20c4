package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// long has folders with long lists.
type long struct {
	faulty
	more atomic.Int64
}

type longInfo struct {
	fs.FileInfo
	stat syscall.Stat_t
}

func (l longInfo) Sys() any { return &l.stat }

func (l *long) Lstat(name string) (fs.FileInfo, error) {
	info, err := l.faulty.Lstat(name)
	if err != nil || !info.IsDir() {
		return info, err
	}
	out := longInfo{FileInfo: info, stat: *info.Sys().(*syscall.Stat_t)}
	if more := l.more.Load(); more > 0 {
		out.stat.Blocks = (listingBlock + more) / 512
	}
	return out, nil
}

// gradual lets the load of a folder begin for each number of changes.
type gradual struct {
	faulty
	steps chan struct{}
}

func (s *gradual) Names(dir string, visit func(string) bool) error {
	if filepath.Base(filepath.Dir(dir)) == "entries" {
		<-s.steps
	}
	return s.faulty.Names(dir, visit)
}

// What is put, updated, deleted and read while many files are being loaded is as if
// they had been loaded before; what nobody touches is all there, foreign files as well.
func TestChangesDuringALoad(t *testing.T) {
	const (
		workers = 4
		each    = 1000
	)
	cfg := testConfig(t.TempDir())
	cfg.Memory = 0
	c, _ := openOn(t, cfg, roomy(), osFiles{}, time.Now)
	key := func(w, i int) Key { return Key{Path: fmt.Sprintf("/%d/%d", w, i)} }
	old := Meta{FetchStart: at(10), Attributes: []byte("old")}
	v := c.volumes[0]
	write := func(k Key, m Meta, b string) {
		t.Helper()
		if err := c.Put(k, m, []byte(b)); err != nil {
			t.Fatal(err)
		}
	}
	for w := range workers {
		for i := range each {
			write(key(w, i), old, "old")
		}
	}
	var foreign []string
	for i := range 100 { // among the others, and of every kind
		name := v.name(key(0, i).hash())
		foreign = append(foreign, name+".jpg", filepath.Join(filepath.Dir(name), fmt.Sprint("README", i)))
		if err := errors.Join(os.WriteFile(name+".jpg", []byte("x"), 0o600), os.Mkdir(foreign[len(foreign)-1], 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	files := &gradual{steps: make(chan struct{}, folders)}
	log := newMessages()
	c, err := open(cfg, roomy(), Options{Log: slogger(log), upkeepEvery: time.Hour}, files)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := make([][each]string, workers) // "" is nothing
	var all sync.WaitGroup
	var changes atomic.Int64
	for w := range workers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(5, uint64(w)))
			for i := range each {
				want[w][i] = "old"
			}
			for range each {
				if n := changes.Add(1); n%(workers*each/folders) == 0 {
					select {
					case files.steps <- struct{}{}:
					default: // all are on their way
					}
				}
				i := r.IntN(each)
				k := key(w, i)
				switch r.IntN(5) {
				case 0:
					if err := c.Put(k, Meta{FetchStart: at(20)}, []byte("new")); err != nil && want[w][i] != "" {
						t.Errorf("%v: %v", k, err)
					} else if err == nil {
						want[w][i] = "new"
					}
				case 1:
					if err := c.Delete(k, at(20)); err != nil {
						t.Errorf("%v: %v", k, err)
					}
					want[w][i] = ""
				case 2:
					e, ok := c.Get(k)
					if !ok {
						continue
					}
					_ = e.Close()
					if err := c.Update(e, Meta{FetchStart: at(20), Attributes: []byte("more")}); err != nil {
						t.Errorf("%v: %v", k, err)
					}
				default:
					e, ok := c.Get(k)
					if ok != (want[w][i] != "") {
						t.Errorf("%v: hit %v, want %q", k, ok, want[w][i])
					}
					if ok {
						if got := string(body(t, e)); got != want[w][i] {
							t.Errorf("%v: %q, want %q", k, got, want[w][i])
						}
						_ = e.Close()
					}
				}
			}
		})
	}
	all.Wait()
	close(files.steps)
	log.wait(t, "cache volume loaded")
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for w := range workers {
		for i, text := range want[w] {
			e, ok := c.Get(key(w, i))
			if ok != (text != "") {
				t.Errorf("%v: hit %v, want %q", key(w, i), ok, text)
			}
			if !ok {
				continue
			}
			n++
			if got := string(body(t, e)); got != text {
				t.Errorf("%v: %q, want %q", key(w, i), got, text)
			}
			_ = e.Close()
		}
	}
	if s := c.Stats().Volumes[0]; s.Files != int64(n) || s.Broken != 0 || s.ReadErrors != 0 || s.WriteErrors != 0 {
		t.Errorf("%+v, want %d files", s, n)
	}
	for _, name := range foreign {
		if _, err := os.Lstat(name); err != nil {
			t.Errorf("somebody else's file went: %v", err)
		}
	}
}

// All files in one volume, none in the other, which has nothing to wait for.
func TestManyFilesBesideAnEmptyVolume(t *testing.T) {
	f := newFarm(t, 1)
	for i := range 1000 {
		if err := f.c.Put(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(filepath.Dir(f.dirs[0]), "empty")
	f.dirs = append(f.dirs, dir)
	f.restart(func(c *Config) {
		c.Volumes = append(c.Volumes, VolumeConfig{Path: dir, MaxSize: 1 << 20, Weight: 1, ClassWeight: 1})
	})
	for i := range 1000 {
		check(t, f.c, Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, []byte("x"))
	}
	for i := range 1000 { // the small one evicts, the large one does not
		if err := f.c.Put(Key{Path: fmt.Sprint("new", i)}, Meta{FetchStart: at(1)}, make([]byte, 3000)); err != nil {
			t.Fatal(err)
		}
	}
	large, small := f.volume(0).stats(), f.volume(1).stats()
	if large.Evictions != 0 || small.Evictions == 0 || small.Bytes > 1<<20 || large.Files < 1300 {
		t.Errorf("%+v, %+v", large, small)
	}
}

// A file system that has space and no inodes.
func TestOutOfInodes(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small tmpfs needs root")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,nr_inodes=600"); err != nil {
		t.Skip("mounting a small tmpfs is not allowed here:", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	c, _ := openOn(t, testConfig(dir), DiskConfig{High: 95, Low: 80, Stress: 99}, osFiles{}, time.Now)
	defer c.Close()
	for i := range 1500 {
		k, m := Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}
		if err := c.Put(k, m, []byte("x")); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		check(t, c, k, m, []byte("x"))
	}
	if s := c.Stats().Volumes[0]; s.Evictions < 900 || s.State != StateOK {
		t.Errorf("%+v", s)
	}
	c.volumes[0].measure(t.Context())
	if s := c.Stats().Volumes[0]; s.UsedPercent > 80 || s.UsedPercent < 70 {
		t.Errorf("%+v, want it at disk.low by inodes", s)
	}
}
