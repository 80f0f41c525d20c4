package cache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// age turns every file of a volume into one of another format version.
func age(t *testing.T, dir string, version uint32) (files int) {
	t.Helper()
	for _, name := range filesIn(t, filepath.Join(dir, "entries")) {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(binary.LittleEndian.AppendUint32(nil, version), 8)
		if cerr := f.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		files++
	}
	return files
}

// A cache that another version of the program wrote: every entry is a miss from
// the first moment on, the cache takes new ones at once, and the old files go
// although nobody asks for them.
func TestCacheOfAnotherFormat(t *testing.T) {
	for _, version := range []uint32{formatVersion - 1, formatVersion + 1} {
		for _, marker := range []string{"", formatText(version), "nonsense"} {
			cfg := testConfig(t.TempDir())
			dir := cfg.Volumes[0].Path
			c, _ := openOn(t, cfg, roomy(), osFiles{}, newClock().Now)
			key := func(i int) Key { return Key{Path: fmt.Sprint(i)} }
			for i := range 300 {
				if err := c.Put(key(i), Meta{FetchStart: at(1)}, bytes.Repeat([]byte("x"), 10*i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if n := age(t, dir, version); n != 300 {
				t.Fatalf("%d files", n)
			}
			overwrite(t, filepath.Join(dir, "format"), []byte(marker))
			if marker == "" {
				if err := os.Remove(filepath.Join(dir, "format")); err != nil {
					t.Fatal(err)
				}
			}

			// The load is held up: what is there already must not be found on disk either.
			loading := make(chan struct{})
			files := &faulty{fail: func(op, name string) error {
				if op == "names" && strings.Contains(name, "/entries") {
					<-loading
				}
				return nil
			}}
			log := newMessages()
			c, err := open(cfg, roomy(), Options{Log: slogger(log), Now: newClock().Now}, files)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				if _, ok := c.Get(key(i)); ok {
					t.Fatalf("version %d is answered", version)
				}
			}
			if err := c.Put(key(0), Meta{FetchStart: at(1)}, []byte("new")); err != nil {
				t.Fatal(err)
			}
			check(t, c, key(0), Meta{FetchStart: at(1)}, []byte("new"))
			close(loading)
			log.wait(t, "of another format version have been removed")
			log.wait(t, "cache volume loaded")
			if s := c.Stats().Volumes[0]; s.Files != 1 || s.State != StateOK {
				t.Errorf("%+v, want the new one alone", s)
			}
			if left := filesIn(t, dir); len(left) != 1 {
				t.Errorf("%d files are left", len(left))
			}
			check(t, c, key(0), Meta{FetchStart: at(1)}, []byte("new"))
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}

			// The next load need not look into the files.
			var opened atomic.Int64
			c, _ = openOn(t, cfg, roomy(), &faulty{fail: func(op, name string) error {
				if op == "open" && filepath.Base(name) != "format" && filepath.Base(name) != "members" && filepath.Base(name) != "purges" {
					opened.Add(1)
				}
				return nil
			}}, newClock().Now)
			if n := opened.Load(); n != 0 {
				t.Errorf("%d files were opened to load the volume", n)
			}
			check(t, c, key(0), Meta{FetchStart: at(1)}, []byte("new"))
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Files of another version that are met without a note in the folder (an operator
// copied them in) are misses and go, too.
func TestFileOfAnotherFormat(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Memory = 0
	c, _ := openOn(t, cfg, roomy(), osFiles{}, newClock().Now)
	key := Key{Path: "/a"}
	if err := c.Put(key, Meta{FetchStart: at(1)}, []byte("old")); err != nil {
		t.Fatal(err)
	}
	age(t, cfg.Volumes[0].Path, formatVersion+7)
	if _, ok := c.Get(key); ok {
		t.Error("answered")
	}
	settle(c)
	if left := filesIn(t, cfg.Volumes[0].Path); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}
