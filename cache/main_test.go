package cache

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashEnv); dir != "" {
		crashChild(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// messages is a log that a test can wait for.
type messages struct {
	mu    sync.Mutex
	seen  []slog.Record
	added chan struct{}
}

func newMessages() *messages { return &messages{added: make(chan struct{})} }

func (m *messages) Enabled(context.Context, slog.Level) bool { return true }
func (m *messages) WithAttrs([]slog.Attr) slog.Handler       { return m }
func (m *messages) WithGroup(string) slog.Handler            { return m }

func (m *messages) Handle(_ context.Context, r slog.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, r)
	close(m.added)
	m.added = make(chan struct{})
	return nil
}

// wait takes the first message that contains text out of the log, once it is there.
func (m *messages) wait(t testing.TB, text string) slog.Record {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		m.mu.Lock()
		for i, r := range m.seen {
			if strings.Contains(r.Message, text) {
				m.seen = append(m.seen[:i:i], m.seen[i+1:]...)
				m.mu.Unlock()
				return r
			}
		}
		added := m.added
		m.mu.Unlock()
		select {
		case <-added:
		case <-limit:
			t.Fatalf("no log message %q", text)
		}
	}
}

// clock stands still until it is told otherwise.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: base} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// settle waits until the chores that were asked for so far are done.
func settle(c *Cache) {
	for _, v := range c.volumes {
		done := make(chan struct{})
		v.chores <- chore{what: choreNothing, done: done}
		<-done
	}
	if c.memory.tier != nil {
		c.memory.tier.Wait()
	}
}

// openOn opens a cache on a file system of the test's, and waits until it is loaded.
func openOn(t testing.TB, cfg Config, disk DiskConfig, files fileSystem, now func() time.Time) (*Cache, *messages) {
	t.Helper()
	return openWith(t, cfg, disk, files, Options{Now: now, upkeepEvery: time.Hour})
}

func openWith(t testing.TB, cfg Config, disk DiskConfig, files fileSystem, opts Options) (*Cache, *messages) {
	t.Helper()
	log := newMessages()
	opts.Log = slogger(log)
	opts.writeThrough = true
	c, err := open(cfg, disk, opts, files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	for range cfg.Volumes {
		log.wait(t, "cache volume loaded")
	}
	return c, log
}

// faulty is a file system with an accident for every call. Zero, it has none.
type faulty struct {
	osFiles
	mu   sync.Mutex
	fail func(op, name string) error
	// notes has the note about the size meet accidents too; it comes before other calls
	// that tests wait for.
	notes bool
	used  func() (usage, error)
}

func (f *faulty) break_(fail func(op, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func (f *faulty) check(op, name string) error {
	f.mu.Lock()
	fail := f.fail
	f.mu.Unlock()
	if fail == nil || !f.notes && (strings.HasSuffix(name, "/size") || strings.HasSuffix(name, "-size.note")) {
		return nil
	}
	if err := fail(op, name); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func (f *faulty) Open(name string, flag int) (file, error) {
	op := "open"
	if flag&os.O_CREATE != 0 {
		op = "create"
	}
	if err := f.check(op, name); err != nil {
		return nil, err
	}
	real, err := f.osFiles.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: real.(*os.File), of: f}, nil
}

func (f *faulty) Rename(from, to string) error {
	if err := f.check("rename", to); err != nil {
		return err
	}
	return f.osFiles.Rename(from, to)
}

func (f *faulty) Remove(name string) error {
	if err := f.check("remove", name); err != nil {
		return err
	}
	return f.osFiles.Remove(name)
}

func (f *faulty) RemoveAll(name string) error {
	if err := f.check("remove", name); err != nil {
		return err
	}
	return f.osFiles.RemoveAll(name)
}

func (f *faulty) MkdirAll(name string) error {
	if err := f.check("mkdir", name); err != nil {
		return err
	}
	return f.osFiles.MkdirAll(name)
}

func (f *faulty) Lstat(name string) (fs.FileInfo, error) {
	if err := f.check("lstat", name); err != nil {
		return nil, err
	}
	return f.osFiles.Lstat(name)
}

func (f *faulty) Names(dir string, visit func(string) bool) error {
	if err := f.check("names", dir); err != nil {
		return err
	}
	return f.osFiles.Names(dir, visit)
}

func (f *faulty) SetAccess(name string, at time.Time) error {
	if err := f.check("access", name); err != nil {
		return err
	}
	return f.osFiles.SetAccess(name, at)
}

func (f *faulty) Sync(of *os.File) error {
	// Not the real one: it would write out everything that this machine is doing.
	return f.check("syncfs", of.Name())
}

func (f *faulty) Usage(dir string) (usage, error) {
	if err := f.check("statfs", dir); err != nil {
		return usage{}, err
	}
	f.mu.Lock()
	used := f.used
	f.mu.Unlock()
	if used != nil {
		return used()
	}
	return f.osFiles.Usage(dir)
}

type faultyFile struct {
	*os.File
	of *faulty
}

func (f *faultyFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.of.check("read", f.Name()); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, off)
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if err := f.of.check("write", f.Name()); err != nil {
		n, _ := f.File.Write(b[:len(b)/2]) // as a disk does that fills up on the way
		return n, err
	}
	return f.File.Write(b)
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.of.check("writeat", f.Name()); err != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], off)
		return n, err
	}
	return f.File.WriteAt(b, off)
}

func (f *faultyFile) Sync() error {
	if err := f.of.check("sync", f.Name()); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Close() error {
	err := f.of.check("close", f.Name())
	if cerr := f.File.Close(); err == nil {
		err = cerr
	}
	return err
}

// filesIn lists the files under dir, without those that belong to the folder as a whole.
func filesIn(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !slices.Contains([]string{"lock", "format", "members", "purges", "size"}, d.Name()) && filepath.Base(filepath.Dir(path)) != "owed" {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func slogger(m *messages) *slog.Logger { return slog.New(m) }
