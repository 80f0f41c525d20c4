package cache

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

func failing(err error, ops ...string) func(op, name string) error {
	return func(op, _ string) error {
		if slices.Contains(ops, op) {
			return err
		}
		return nil
	}
}

// Whatever fails while an entry is written: the caller hears of it, what was
// stored before stays readable, nothing half-written is left, and the next Put of
// a well disk works.
func TestFailedPut(t *testing.T) {
	key := Key{Site: "shop", Path: "/a.jpg"}
	for _, op := range []string{"create", "write", "writeat", "close", "rename"} {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.EIO, syscall.EROFS, syscall.EACCES} {
			t.Run(op+" "+errno.Error(), func(t *testing.T) {
				cfg := testConfig(t.TempDir())
				files := &faulty{}
				clk := newClock()
				c, log := openOn(t, cfg, roomy(), files, clk.Now)
				old, newer := bytes.Repeat([]byte("old"), 70_000), bytes.Repeat([]byte("new"), 70_000)
				meta := Meta{FetchStart: at(1)}
				if err := c.PutFrom(key, meta, int64(len(old)), bytes.NewReader(old)); err != nil {
					t.Fatal(err)
				}
				check(t, c, key, meta, old)

				files.break_(failing(errno, op))
				put := func() error {
					return c.PutFrom(key, Meta{FetchStart: at(2)}, int64(len(newer)), bytes.NewReader(newer))
				}
				if err := put(); !errors.Is(err, errno) {
					t.Fatalf("the error is %v, want %v in it", err, errno)
				}
				if left := filesIn(t, filepath.Join(cfg.Volumes[0].Path, "tmp")); len(left) != 0 {
					t.Errorf("left over: %v", left)
				}
				want := map[syscall.Errno]State{syscall.EIO: StateOut, syscall.EROFS: StateReadOnly, syscall.EACCES: StateReadOnly}[errno]
				if want == "" {
					want = StateOK
				}
				s := c.Stats().Volumes[0]
				if s.State != want || s.WriteErrors == 0 || s.Puts != 1 {
					t.Errorf("%+v, want state %s and a write error", s, want)
				}
				if want != StateOut {
					check(t, c, key, meta, old)
				}
				if want != StateOK {
					log.wait(t, "volume fails")
					if err := put(); !errors.Is(err, ErrUnavailable) || !errors.Is(err, errno) {
						t.Errorf("Put meanwhile: %v", err)
					}
					c.volumes[0].retry(clk.advance(time.Minute)) // still broken, in most cases
				}
				files.break_(nil)
				c.volumes[0].retry(clk.advance(time.Minute))
				check(t, c, key, meta, old)
				if err := put(); err != nil {
					t.Fatal(err)
				}
				check(t, c, key, Meta{FetchStart: at(2)}, newer)
				c.volumes[0].mu.Lock()
				defer c.volumes[0].mu.Unlock()
				if c.volumes[0].reserved != 0 {
					t.Errorf("%d bytes are still reserved", c.volumes[0].reserved)
				}
			})
		}
	}
}

// A disk that cannot be read is a miss, takes the volume out, and is no reason to
// wait; it returns by itself.
func TestFailedRead(t *testing.T) {
	for _, memory := range []int{0, 8 << 20} {
		for _, op := range []string{"open", "read"} {
			cfg := testConfig(t.TempDir())
			cfg.Memory = 0
			files := &faulty{}
			clk := newClock()
			c, _ := openOn(t, cfg, roomy(), files, clk.Now)
			bad, good := Key{Path: "/bad"}, Key{Path: "/good"}
			meta := Meta{FetchStart: at(1)}
			for _, k := range []Key{bad, good} {
				if err := c.Put(k, meta, []byte(k.Path)); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			cfg.Memory = 8 << 20
			var log *messages
			c, log = openOn(t, cfg, roomy(), files, clk.Now)
			if memory > 0 { // what is in memory is answered, whatever the disk does
				check(t, c, good, meta, []byte("/good"))
				settle(c)
			}
			sick := c.volumes[0].name(bad.hash())
			files.break_(func(o, name string) error {
				if o == op && name == sick {
					return syscall.EIO
				}
				return nil
			})
			if _, ok := c.Get(bad); ok {
				t.Fatal("hit on a file that cannot be read")
			}
			log.wait(t, "volume fails")
			settle(c)
			if memory > 0 {
				check(t, c, good, meta, []byte("/good"))
			} else if _, ok := c.Get(good); ok {
				t.Error("a volume that is out was read")
			}
			if err := c.Put(good, Meta{FetchStart: at(2)}, nil); !errors.Is(err, ErrUnavailable) {
				t.Errorf("Put: %v", err)
			}
			c.volumes[0].retry(clk.advance(time.Minute))
			log.wait(t, "works again")
			log.wait(t, "cache volume loaded")
			check(t, c, good, meta, []byte("/good"))
			if _, ok := c.Get(bad); ok || c.Stats().Volumes[0].State != StateOK {
				t.Error("the sick file was read again")
			}
			files.break_(nil)
			c.volumes[0].tendGraves(clk.Now())
			if _, err := os.Stat(sick); !os.IsNotExist(err) {
				t.Errorf("the sick file is still there: %v", err)
			}
			if err := c.Put(bad, meta, []byte("again")); err != nil {
				t.Fatal(err)
			}
			check(t, c, bad, meta, []byte("again"))
		}
	}
}

// A disk that fails under an open entry ends the answer with an error, never with
// wrong bytes, and is noticed.
func TestFailedReadOfAnOpenEntry(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Memory = 0
	files := &faulty{}
	c, _ := openOn(t, cfg, roomy(), files, newClock().Now)
	key := Key{Path: "/a"}
	if err := c.Put(key, Meta{FetchStart: at(1)}, bytes.Repeat([]byte("x"), 100_000)); err != nil {
		t.Fatal(err)
	}
	e, ok := c.Get(key)
	if !ok {
		t.Fatal("miss")
	}
	defer e.Close()
	files.break_(failing(syscall.EIO, "read"))
	var w bytes.Buffer
	if n, err := e.WriteTo(&w); !errors.Is(err, syscall.EIO) || n != 0 {
		t.Errorf("WriteTo: %d, %v", n, err)
	}
	if s := c.Stats().Volumes[0]; s.State != StateOut || s.ReadErrors == 0 {
		t.Errorf("%+v, want the volume out", s)
	}
}

// A body whose source fails is not stored, and the disk is not blamed.
func TestFailedSource(t *testing.T) {
	c, _ := openOn(t, testConfig(t.TempDir()), roomy(), osFiles{}, newClock().Now)
	key := Key{Path: "/a"}
	cut := errors.New("origin cut off")
	for _, size := range []int64{100, 1 << 20} {
		for name, source := range map[string]io.Reader{
			"error": io.MultiReader(strings.NewReader("some"), iotest.ErrReader(cut)),
			"EIO":   io.MultiReader(strings.NewReader("some"), iotest.ErrReader(syscall.EIO)),
			"short": strings.NewReader("some"),
		} {
			err := c.PutFrom(key, Meta{FetchStart: at(1)}, size, source)
			if err == nil || name == "error" && !errors.Is(err, cut) || name == "short" && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s of %d: %v", name, size, err)
			}
		}
	}
	if _, ok := c.Get(key); ok {
		t.Error("something was stored")
	}
	if s := c.Stats().Volumes[0]; s.State != StateOK || s.WriteErrors != 0 || s.Files != 0 {
		t.Errorf("%+v", s)
	}
	if left := filesIn(t, c.volumes[0].path); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

// An update that fails half-way leaves the entry as it was.
func TestFailedUpdate(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Memory = 0
	files := &faulty{}
	c, log := openOn(t, cfg, roomy(), files, newClock().Now)
	key := Key{Path: "/a"}
	meta := Meta{FetchStart: at(1), Attributes: []byte("attributes")}
	if err := c.Put(key, meta, []byte("a")); err != nil {
		t.Fatal(err)
	}
	e, _ := c.Get(key)
	defer e.Close()
	files.break_(failing(syscall.EIO, "writeat"))
	if err := c.Update(e, Meta{FetchStart: at(2), Attributes: []byte("others")}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Update: %v", err)
	}
	files.break_(nil)
	c.volumes[0].retry(base.Add(time.Hour))
	log.wait(t, "works again")
	check(t, c, key, meta, []byte("a"))
}

// A deleted entry whose file cannot be removed is a miss all the same, and goes
// when the disk lets it go; a later Put is not taken away with it.
func TestFailedDelete(t *testing.T) {
	for _, putAgain := range []bool{false, true} {
		cfg := testConfig(t.TempDir())
		files := &faulty{}
		clk := newClock()
		c, log := openOn(t, cfg, roomy(), files, clk.Now)
		key := Key{Path: "/a"}
		if err := c.Put(key, Meta{FetchStart: at(1)}, []byte("a")); err != nil {
			t.Fatal(err)
		}
		files.break_(failing(syscall.EROFS, "remove", "create", "rename"))
		if err := c.Delete(key, at(1)); !errors.Is(err, syscall.EROFS) {
			t.Fatalf("Delete: %v", err)
		}
		miss := func() {
			t.Helper()
			if _, ok := c.Get(key); ok {
				t.Fatal("hit on a deleted entry")
			}
		}
		miss()
		c.volumes[0].reload() // not by way of a fresh look at the disk either
		miss()
		log.wait(t, "cache volume loaded")
		miss()
		files.break_(nil)
		c.volumes[0].retry(clk.advance(time.Minute))
		log.wait(t, "works again")
		log.wait(t, "cache volume loaded")
		miss()
		if putAgain {
			if err := c.Put(key, Meta{FetchStart: at(2)}, []byte("b")); err != nil {
				t.Fatal(err)
			}
		}
		c.volumes[0].tendGraves(clk.Now())
		if putAgain {
			check(t, c, key, Meta{FetchStart: at(2)}, []byte("b"))
		} else {
			miss()
			if left := filesIn(t, cfg.Volumes[0].Path); len(left) != 0 {
				t.Errorf("left over: %v", left)
			}
		}
	}
}

// An eviction that the disk refuses does not lose count of the file.
func TestFailedEviction(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Volumes[0].MaxSize = 10 * blockSize
	files := &faulty{}
	c, _ := openOn(t, cfg, roomy(), files, newClock().Now)
	put := func(i int) error {
		return c.Put(Key{Path: string(rune('a' + i))}, Meta{FetchStart: at(1)}, make([]byte, 3000))
	}
	for i := range 9 {
		if err := put(i); err != nil {
			t.Fatal(err)
		}
	}
	before := c.Stats().Volumes[0]
	files.break_(failing(syscall.EBUSY, "remove"))
	if err := errors.Join(put(10), put(11)); !errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("Put without room: %v", err)
	}
	if after := c.Stats().Volumes[0]; after.Files < before.Files || after.Bytes > after.MaxBytes {
		t.Errorf("%+v, before %+v", after, before)
	}
	files.break_(nil)
	if err := put(12); err != nil {
		t.Fatal(err)
	}
}

// Lost write-backs come to light by the sync, and cost every file its verification.
func TestFailedSync(t *testing.T) {
	files := &faulty{}
	clk := newClock()
	c, log := openOn(t, testConfig(t.TempDir()), roomy(), files, clk.Now)
	key := Key{Path: "/a"}
	large := bytes.Repeat([]byte("x"), 1<<20)
	if err := c.Put(key, Meta{FetchStart: at(1)}, large); err != nil {
		t.Fatal(err)
	}
	check(t, c, key, Meta{FetchStart: at(1)}, large)
	// The file as it would be read back: other bytes, and nothing that tells.
	name := c.volumes[0].name(key.hash())
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 4096), 500_000); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), os.Chtimes(name, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	files.break_(failing(syscall.ENOSPC, "syncfs"))
	c.volumes[0].minutely(clk.Now())
	settle(c)
	if s := c.Stats().Volumes[0].State; s != StateOut {
		t.Fatalf("state %s after a failed sync", s)
	}
	files.break_(nil)
	c.volumes[0].retry(clk.advance(time.Minute))
	log.wait(t, "works again")
	if _, ok := c.Get(key); ok {
		t.Error("hit on a file whose bytes were lost")
	}
}

// A disk that is broken at the start is waited for; a folder that cannot be is told.
func TestBrokenAtTheStart(t *testing.T) {
	dir := t.TempDir()
	files := &faulty{fail: failing(syscall.EIO, "mkdir")}
	clk := newClock()
	log := newMessages()
	c, err := open(testConfig(dir), roomy(), Options{Log: slogger(log), Now: clk.Now, upkeepEvery: time.Hour}, files)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	key := Key{Path: "/a"}
	if _, ok := c.Get(key); ok || c.Stats().Volumes[0].State != StateOut {
		t.Errorf("hit %v, %+v", ok, c.Stats())
	}
	if err := c.Put(key, Meta{FetchStart: at(1)}, nil); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Put: %v", err)
	}
	if err := c.Delete(key, at(1)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Delete: %v", err)
	}
	files.break_(nil)
	c.volumes[0].retry(clk.advance(time.Minute))
	log.wait(t, "works again")
	log.wait(t, "cache volume loaded")
	if err := c.Put(key, Meta{FetchStart: at(2)}, []byte("a")); err != nil {
		t.Fatal(err)
	}
	check(t, c, key, Meta{FetchStart: at(2)}, []byte("a"))

	blocked := testConfig(filepath.Join(dir, "lock")) // a file
	if _, err := Open(blocked, roomy(), Options{}); err == nil || !strings.Contains(err.Error(), blocked.Volumes[0].Path) {
		t.Errorf("a file for a folder: %v", err)
	}
}

// Somebody empties or replaces the folder under the running process.
func TestFolderRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	clk := newClock()
	c, log := openOn(t, testConfig(dir), roomy(), osFiles{}, clk.Now)
	key := Key{Path: "/a"}
	large := bytes.Repeat([]byte("x"), 1<<20)
	put := func(seconds int) {
		t.Helper()
		if err := c.Put(key, Meta{FetchStart: at(seconds)}, large); err != nil {
			t.Fatal(err)
		}
		check(t, c, key, Meta{FetchStart: at(seconds)}, large)
	}
	put(1)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Get(key); ok {
		t.Error("hit without a file")
	}
	put(2)
	c.volumes[0].minutely(clk.Now()) // notices that the lock is gone
	if s := c.Stats().Volumes[0].State; s != StateOut {
		t.Fatalf("state %s", s)
	}
	c.volumes[0].retry(clk.advance(time.Minute))
	log.wait(t, "works again")
	check(t, c, key, Meta{FetchStart: at(2)}, large)
	if _, err := Open(testConfig(dir), roomy(), Options{Log: slogger(newMessages())}); !errors.Is(err, ErrLocked) {
		t.Errorf("the folder is not locked any more: %v", err)
	}
}
