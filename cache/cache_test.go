package cache

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"karui/internal/units"
)

// base is the time that tests count from.
var base = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return base.Add(time.Duration(seconds) * time.Second) }

func testConfig(dir string) Config {
	cfg := DefaultConfig()
	cfg.Memory = 8 << 20
	cfg.Volumes = []VolumeConfig{{Path: dir, MaxSize: 1 << 30, Weight: 1, ClassWeight: 1}}
	return cfg
}

func mustOpen(t testing.TB, cfg Config, disk DiskConfig, opts Options) *Cache {
	t.Helper()
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	c, err := Open(cfg, disk, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func roomy() DiskConfig { return DiskConfig{High: 100, Low: units.Percent(99), Stress: 100} }

func body(t testing.TB, e *Entry) []byte {
	t.Helper()
	var w bytes.Buffer
	if n, err := e.WriteTo(&w); err != nil || n != e.Size() {
		t.Fatalf("WriteTo: %d bytes of %d, %v", n, e.Size(), err)
	}
	b, err := io.ReadAll(e.Reader())
	if err != nil || !bytes.Equal(b, w.Bytes()) {
		t.Fatalf("Reader gives %d bytes, %v; WriteTo gave %d", len(b), err, w.Len())
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	key := Key{Site: "shop", Path: "/a%2Fb\xff.jpg", Rest: "v=2", Form: "webp"}
	meta := Meta{FetchStart: at(1), Expires: at(1000), Attributes: []byte(`{"type":"image/webp"}`)}
	large := bytes.Repeat([]byte("0123456789"), 1<<16)
	for name, put := range map[string]func(*Cache, []byte) error{
		"Put":     func(c *Cache, b []byte) error { return c.Put(key, meta, b) },
		"PutFrom": func(c *Cache, b []byte) error { return c.PutFrom(key, meta, int64(len(b)), bytes.NewReader(b)) },
	} {
		for _, want := range [][]byte{nil, []byte("x"), []byte("hello"), large} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				opts := Options{Now: func() time.Time { return base }}
				c := mustOpen(t, testConfig(dir), roomy(), opts)
				if _, ok := c.Get(key); ok {
					t.Fatal("hit in an empty cache")
				}
				if err := put(c, want); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					check(t, c, key, meta, want)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				check(t, mustOpen(t, testConfig(dir), roomy(), opts), key, meta, want)
			})
		}
	}
}

func check(t testing.TB, c *Cache, key Key, meta Meta, want []byte) {
	t.Helper()
	e, ok := c.Get(key)
	if !ok {
		t.Fatalf("miss for %v", key)
	}
	defer e.Close()
	if e.Key != key || !e.Meta.FetchStart.Equal(meta.FetchStart) || !e.Meta.Expires.Equal(meta.Expires) ||
		!bytes.Equal(e.Meta.Attributes, meta.Attributes) || e.Size() != int64(len(want)) {
		t.Fatalf("got %v %+v, %d bytes; want %v %+v, %d bytes", e.Key, e.Meta, e.Size(), key, meta, len(want))
	}
	if !bytes.Equal(body(t, e), want) {
		t.Fatalf("other bytes under %v", key)
	}
}

func TestOrderOfFetches(t *testing.T) {
	c := mustOpen(t, testConfig(t.TempDir()), roomy(), Options{Now: func() time.Time { return base }})
	key := Key{Site: "shop", Path: "/a.jpg", Form: "original"}
	put := func(seconds int, b string) error { return c.Put(key, Meta{FetchStart: at(seconds)}, []byte(b)) }
	if err := put(10, "ten"); err != nil {
		t.Fatal(err)
	}
	if err := put(9, "nine"); !errors.Is(err, ErrSuperseded) {
		t.Fatalf("older Put: %v", err)
	}
	ten, _ := c.Get(key)
	defer ten.Close()
	if err := put(11, "eleven"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(ten, Meta{FetchStart: at(12)}); !errors.Is(err, ErrSuperseded) {
		t.Fatalf("Update of a replaced body: %v", err)
	}
	if string(body(t, ten)) != "ten" {
		t.Fatal("an open entry changed")
	}
	eleven, _ := c.Get(key)
	defer eleven.Close()
	if err := c.Update(eleven, Meta{FetchStart: at(10)}); !errors.Is(err, ErrSuperseded) {
		t.Fatalf("older Update: %v", err)
	}
	for i := range 5 {
		meta := Meta{FetchStart: at(12 + i), Attributes: []byte(strings.Repeat("a", 5*i))}
		if err := c.Update(eleven, meta); err != nil {
			t.Fatal(err)
		}
		check(t, c, key, meta, []byte("eleven"))
	}
	if err := c.Delete(key, at(15)); err != nil {
		t.Fatal(err)
	}
	check(t, c, key, Meta{FetchStart: at(16), Attributes: []byte(strings.Repeat("a", 20))}, []byte("eleven"))
	if err := c.Delete(key, at(16)); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Get(key); ok {
		t.Fatal("hit after Delete")
	}
	if err := c.Update(eleven, Meta{FetchStart: at(17)}); !errors.Is(err, ErrGone) {
		t.Fatalf("Update after Delete: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	mustOpen(t, testConfig(dir), roomy(), Options{})
	if _, err := Open(testConfig(dir), roomy(), Options{}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("second Open of a folder: %v", err)
	}
	twice := testConfig(t.TempDir())
	twice.Volumes = append(twice.Volumes, twice.Volumes[0])
	if _, err := Open(twice, roomy(), Options{}); !errors.Is(err, ErrLocked) {
		t.Fatalf("the same folder twice: %v", err)
	}
	twice.Volumes = twice.Volumes[:1] // the first was given free again
	mustOpen(t, twice, roomy(), Options{})
	none := testConfig(t.TempDir())
	none.Volumes = nil
	if _, err := Open(none, roomy(), Options{}); err == nil || !strings.Contains(err.Error(), "cache.volumes") {
		t.Fatalf("no volume: %v", err)
	}
	shared := testConfig(t.TempDir())
	shared.Shared.URL = "s3://bucket/prefix"
	if _, err := Open(shared, roomy(), Options{}); err == nil || !strings.Contains(err.Error(), "cache.shared.url") {
		t.Fatalf("shared: %v", err)
	}
}

// fromFile is a connection that can take a file by itself, as a *net.TCPConn can.
type fromFile struct {
	t    *testing.T
	got  []byte
	used bool
}

func (f *fromFile) Write(p []byte) (int, error) {
	f.got = append(f.got, p...)
	return len(p), nil
}

func (f *fromFile) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		f.t.Fatalf("given a %T, sendfile wants an *io.LimitedReader", r)
	}
	if _, ok := limited.R.(*os.File); !ok {
		f.t.Fatalf("given a %T, sendfile wants an *os.File", limited.R)
	}
	f.used = true
	b, err := io.ReadAll(r)
	f.got = append(f.got, b...)
	return int64(len(b)), err
}

// A body on disk is handed over in the form that the net package sends by sendfile.
func TestSendfile(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Memory = 0
	c := mustOpen(t, cfg, roomy(), Options{})
	want := bytes.Repeat([]byte("0123456789"), 5000)
	if err := c.Put(Key{}, Meta{FetchStart: at(1), Attributes: []byte("attributes")}, want); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(t.Context()); err != nil { // until then it is in memory
		t.Fatal(err)
	}
	e, ok := c.Get(Key{})
	if !ok {
		t.Fatal("miss")
	}
	defer e.Close()
	w := &fromFile{t: t}
	for range 2 { // from the beginning each time
		w.got = nil
		if n, err := e.WriteTo(w); err != nil || n != e.Size() || !w.used || !bytes.Equal(w.got, want) {
			t.Fatalf("%d bytes of %d, %v, as a file %v", n, e.Size(), err, w.used)
		}
	}
	f, offset, ok := e.File()
	if !ok {
		t.Fatal("no file")
	}
	b := make([]byte, 10)
	if _, err := f.ReadAt(b, offset+30); err != nil || string(b) != "0123456789" {
		t.Errorf("File gives %q, %v", b, err)
	}
}
