package cache

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
)

func benchOpen(b *testing.B, cfg Config) *Cache {
	return mustOpen(b, cfg, roomy(), Options{Log: slog.New(slog.DiscardHandler)})
}

func benchFlush(b *testing.B, c *Cache) {
	b.Helper()
	if err := c.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func benchKey(i int) Key {
	return Key{Site: "shop", Path: "/images/products/" + strconv.Itoa(i) + "/front.jpg", Form: "webp"}
}

func benchMeta() Meta {
	return Meta{FetchStart: base, Expires: base.AddDate(100, 0, 0), Attributes: make([]byte, 300)}
}

func BenchmarkGetMemory(b *testing.B) {
	cfg := testConfig(b.TempDir())
	cfg.Memory = 256 << 20
	c := benchOpen(b, cfg)
	const n = 1000
	for i := range n {
		if err := c.Put(benchKey(i), benchMeta(), make([]byte, 50_000)); err != nil {
			b.Fatal(err)
		}
	}
	benchFlush(b, c)
	settle(c)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for i := rand.IntN(n); p.Next(); i++ {
			e, ok := c.Get(benchKey(i % n))
			if !ok {
				b.Error("miss")
				return
			}
			_ = e.Close()
		}
	})
	if s := c.Stats(); s.HitsDisk > s.HitsMemory/10 {
		b.Errorf("%d from memory, %d from disk", s.HitsMemory, s.HitsDisk)
	}
}

// benchDisk is a cache without memory whose files are verified already.
func benchDisk(b *testing.B, n int) *Cache {
	cfg := testConfig(b.TempDir())
	cfg.Memory = 0
	c := benchOpen(b, cfg)
	for i := range n {
		if err := c.Put(benchKey(i), benchMeta(), make([]byte, 50_000)); err != nil {
			b.Fatal(err)
		}
	}
	benchFlush(b, c)
	for i := range n {
		e, ok := c.Get(benchKey(i))
		if !ok {
			b.Fatal("miss")
		}
		_ = e.Close()
	}
	return c
}

// The file found, opened and checked, from the page cache; the body not sent.
func BenchmarkGetDisk(b *testing.B) {
	const n = 1000
	c := benchDisk(b, n)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e, ok := c.Get(benchKey(i % n))
		if !ok {
			b.Fatal("miss")
		}
		_ = e.Close()
	}
}

// The same and the body by sendfile to a socket; the reader at the other end is in
// this process too.
func BenchmarkGetDiskSend(b *testing.B) {
	const n = 1000
	c := benchDisk(b, n)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, conn, make([]byte, 1<<20))
			_ = conn.Close()
		}
	})
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(50_000)
	for i := 0; b.Loop(); i++ {
		e, ok := c.Get(benchKey(i % n))
		if !ok {
			b.Fatal("miss")
		}
		if _, err := e.WriteTo(conn); err != nil {
			b.Fatal(err)
		}
		_ = e.Close()
	}
	_ = conn.Close()
	reader.Wait()
	_ = l.Close()
}

func BenchmarkPut50k(b *testing.B) {
	cfg := testConfig(b.TempDir())
	cfg.Volumes[0].MaxSize = 500 << 20
	c := benchOpen(b, cfg)
	body := make([]byte, 50_000)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for i := 0; b.Loop(); i++ {
		err := c.Put(benchKey(i), benchMeta(), body)
		if errors.Is(err, ErrUnavailable) { // the disk sets the pace
			err = c.Flush(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	benchFlush(b, c)
}

func BenchmarkUpdate(b *testing.B) {
	c := benchOpen(b, testConfig(b.TempDir()))
	if err := c.Put(benchKey(0), benchMeta(), make([]byte, 5_000_000)); err != nil {
		b.Fatal(err)
	}
	benchFlush(b, c)
	e, ok := c.Get(benchKey(0))
	if !ok {
		b.Fatal("miss")
	}
	_ = e.Close()
	meta := benchMeta()
	b.ReportAllocs()
	for b.Loop() {
		meta.FetchStart = meta.FetchStart.Add(1)
		if err := c.Update(e, meta); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Memory of the index: B/file.
func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{100_000, 300_000, 1_000_000, 1_300_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				x := newIndex()
				for i := range n {
					h := benchKey(i).hash()
					x.put(record{hash: h, blocks: 100})
				}
				b.ReportMetric(float64(heap()-before)/float64(n), "B/file")
				runtime.KeepAlive(x)
			}
		})
	}
}

// A start on many files: how long Open takes, the first answers while the index is
// being filled, the whole load, and the memory for it. KARUI_BENCH_FILES sets how
// many (default 100,000; a million takes 4 GB of disk and some minutes to make).
func BenchmarkStart(b *testing.B) {
	n := 100_000
	if s := os.Getenv("KARUI_BENCH_FILES"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	cfg := testConfig(b.TempDir())
	cfg.Memory = 0
	cfg.Volumes[0].MaxSize = 1 << 40
	c := benchOpen(b, cfg)
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
	fill(b, c.volumes[0], n)
	for b.Loop() {
		before := heap()
		start := time.Now()
		log := newMessages()
		c, err := Open(cfg, roomy(), Options{Log: slogger(log)})
		if err != nil {
			b.Fatal(err)
		}
		opened := time.Since(start)
		var worst time.Duration
		for i := range 1000 {
			t := time.Now()
			e, ok := c.Get(benchKey(i * (n / 1000)))
			if !ok {
				b.Fatal("miss while loading")
			}
			_ = e.Close()
			worst = max(worst, time.Since(t))
		}
		answered := time.Since(start)
		log.wait(b, "cache volume loaded")
		loaded := time.Since(start)
		b.ReportMetric(float64(heap()-before)/float64(n), "B/file")
		b.ReportMetric(opened.Seconds()*1e3, "ms-open")
		b.ReportMetric(answered.Seconds()*1e3, "ms-1000-answers")
		b.ReportMetric(worst.Seconds()*1e3, "ms-worst-answer")
		b.ReportMetric(loaded.Seconds()*1e3, "ms-load")
		if got := c.Stats().Volumes[0].Files; got != int64(n) {
			b.Fatalf("%d files", got)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// fill writes n small entries the short way.
func fill(b *testing.B, v *volume, n int) {
	for i := range folders {
		if err := os.MkdirAll(filepath.Join(v.path, "entries", fmt.Sprintf("%02x", i)), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	body := make([]byte, 1000)
	sum := xxhash.Sum64(body)
	for i := range n {
		key := benchKey(i)
		file := append(encodeHead(key, benchMeta(), int64(len(body)), sum), body...)
		if err := os.WriteFile(v.name(key.hash()), file, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}
