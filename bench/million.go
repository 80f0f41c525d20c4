package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"karui/cache"
	"karui/internal/units"
)

// million is a cache with very many files.
type million struct {
	b      *bench
	folder string
	// sample is what karui itself stored for one image: each file is a copy under another path.
	key  cache.Key
	meta cache.Meta
	body []byte
}

// millionTable shows what a cache with very many small files costs: the start, memory, evictions, the cap.
func millionTable(ctx context.Context, b *bench) error {
	m := &million{b: b, folder: filepath.Join(b.dir, "million")}
	defer os.RemoveAll(m.folder) // it takes a while, and is wanted whatever became of the rest
	if err := m.learn(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{m.fill, m.weigh, m.starts, m.latencies, m.purge, m.caps} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// learn has karui store one small image, and takes out what it stored.
func (m *million) learn(ctx context.Context) error {
	const path = "/sample.jpg"
	var picture bytes.Buffer
	if err := jpeg.Encode(&picture, image.NewGray(image.Rect(0, 0, 64, 64)), nil); err != nil {
		return fmt.Errorf("draw an image: %w", err)
	}
	m.b.origin.put(path, func(w http.ResponseWriter, _ *http.Request) { sendImage(w, "image/jpeg", picture.Bytes()) })
	folder := filepath.Join(m.b.dir, "sample")
	karui, err := startKarui(ctx, m.b, "karui", karuiOptions{memory: "16MiB", wait: "0s", folder: folder})
	if err != nil {
		return err
	}
	client := newClient(1)
	_, _, err = fetchAs(ctx, client, karui.url+path, takesJPEG)
	client.CloseIdleConnections()
	karui.stop()
	if err != nil {
		return err
	}
	c, err := m.open(0, folder, 1<<40)
	if err != nil {
		return err
	}
	defer c.Close()
	m.key = cache.Key{Site: "shop", Path: path, Form: "original"}
	e, ok := c.Get(m.key)
	if !ok {
		return errors.New("karui has not stored its original where this program looks for it")
	}
	defer e.Close()
	m.meta, m.body = e.Meta, picture.Bytes()
	return nil
}

func (m *million) open(memory units.Size, folder string, most int64) (*cache.Cache, error) {
	v := cache.DefaultVolume()
	v.Path, v.MaxSize = folder, units.Size(most)
	cfg := cache.DefaultConfig()
	cfg.Memory, cfg.Volumes = memory, []cache.VolumeConfig{v}
	// The disk of the machine is not what is measured.
	return cache.Open(cfg, cache.DiskConfig{High: 99.9, Low: 99.8, Stress: 100}, cache.Options{Log: slog.New(slog.DiscardHandler)})
}

func (m *million) keyOf(i int) cache.Key {
	k := m.key
	k.Path = m.path(i)
	return k
}

func (m *million) path(i int) string { return fmt.Sprintf("/products/%d/front-view-%d.jpg", i/100, i) }

// sized is the body with a tail that nobody looks at: 300 bytes to 3 KiB.
func (m *million) sized(r *rand.Rand) []byte {
	return append(bytes.Clone(m.body), make([]byte, r.IntN(2500))...)
}

// put waits while the queue is full: the disk sets the pace.
func (m *million) put(ctx context.Context, c *cache.Cache, key cache.Key, body []byte) error {
	for {
		err := c.Put(key, m.meta, body)
		if !errors.Is(err, cache.ErrUnavailable) {
			return err
		}
		if err := c.Flush(ctx); err != nil {
			return err
		}
	}
}

func (m *million) fill(ctx context.Context) error {
	c, err := m.open(0, m.folder, 1<<40)
	if err != nil {
		return err
	}
	defer c.Close()
	began := time.Now()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range m.b.files {
		if err := m.put(ctx, c, m.keyOf(i), m.sized(r)); err != nil {
			return fmt.Errorf("fill the cache: %w", err)
		}
		if i%(m.b.files/5) == 0 {
			m.b.say("%d files after %.0f s", i, time.Since(began).Seconds())
		}
	}
	if err := c.Flush(ctx); err != nil {
		return err
	}
	s := c.Stats().Volumes[0]
	took := time.Since(began)
	t := newTable("The cache", "files", "MiB on disk, with the folders", "s to fill it by Put", "files a second")
	t.row(s.Files, s.Bytes>>20, fmt.Sprintf("%.0f", took.Seconds()), fmt.Sprintf("%.0f", float64(m.b.files)/took.Seconds()))
	t.print(m.b)
	return nil
}

// loaded waits until the index is whole.
func loaded(ctx context.Context, c *cache.Cache) error {
	for {
		all := true
		for _, v := range c.Stats().Volumes {
			all = all && v.Loaded
		}
		if all {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func heapNow() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// weigh looks at the heap with and without the cache, when it is loaded and when every file has been read.
func (m *million) weigh(ctx context.Context) error {
	before := heapNow()
	began := time.Now()
	c, err := m.open(0, m.folder, 1<<40)
	if err != nil {
		return err
	}
	defer c.Close()
	opened := time.Since(began)
	if err := loaded(ctx, c); err != nil {
		return err
	}
	took := time.Since(began)
	after := heapNow()
	n := min(m.b.files, 200_000)
	for i := range n {
		e, ok := c.Get(m.keyOf(i))
		if !ok {
			return fmt.Errorf("file %d is a miss", i)
		}
		_ = e.Close()
	}
	read := heapNow()
	t := newTable("Memory of the cache (heap, cache.memory 0)", "", "bytes a file", "/ 120")
	each := float64(after-before) / float64(m.b.files)
	t.row("index whole", fmt.Sprintf("%.1f", each), fmt.Sprintf("%.2f", each/120))
	each = float64(read-before) / float64(m.b.files)
	t.row(fmt.Sprintf("%d of them read", n), fmt.Sprintf("%.1f", each), fmt.Sprintf("%.2f", each/120))
	t.print(m.b)
	m.b.say("opened in %s, loaded in %s", opened.Round(time.Microsecond), took.Round(time.Millisecond))
	runtime.KeepAlive(c)
	return nil
}

// starts runs the program itself on the folder.
func (m *million) starts(ctx context.Context) error {
	if err := m.quickStarts(ctx); err != nil {
		return err
	}
	empty, err := startKarui(ctx, m.b, "karui", karuiOptions{memory: "64MiB", wait: "0s"})
	if err != nil {
		return err
	}
	bare, err := memoryOfOne(empty.roots[0])
	empty.stop()
	if err != nil {
		return err
	}
	t := newTable(fmt.Sprintf("Start of karui serve on %d files, %d hits a second from the moment on at which it is ready", m.b.files, hitRate),
		"after", "ready ms", "index whole after s", "CPU-s until then", "hits until then", "p50 ms", "p99 ms", "slowest ms",
		"with the index: p50 ms", "p99 ms", "slowest ms", "fetches", "MiB more than empty", "bytes a file")
	for _, kill := range []bool{false, true} {
		after := "a clean end"
		if kill {
			after = "SIGKILL"
		}
		if err := m.start(ctx, t, after, bare); err != nil {
			return err
		}
	}
	t.print(m.b)
	return nil
}

// startRounds is how often a start is repeated.
const startRounds = 5

// quickStarts looks how long it takes until the program is ready, in turns: with an empty cache, after a clean end,
// and after a kill.
func (m *million) quickStarts(ctx context.Context) error {
	var empty, clean, killed []float64
	for round := range startRounds {
		m.b.say("start, round %d of %d", round+1, startRounds)
		for _, one := range []struct {
			into   *[]float64
			folder string
			kill   bool // at the end: the row of the next one
		}{{&empty, "", false}, {&clean, m.folder, true}, {&killed, m.folder, false}} {
			karui, err := startKarui(ctx, m.b, "karui", karuiOptions{memory: "64MiB", wait: "0s", folder: one.folder})
			if err != nil {
				return err
			}
			*one.into = append(*one.into, milliseconds(karui.start))
			if one.kill {
				err = karui.kill()
			}
			karui.stop()
			if err != nil {
				return err
			}
		}
	}
	t := newTable(fmt.Sprintf("From the start of the process to /readyz 200, ms, %d rounds", startRounds), "cache", "ms", "/ empty")
	t.row("empty", spread(empty, "%.0f"), 1)
	t.row(fmt.Sprintf("%d files, after a clean end", m.b.files), spread(clean, "%.0f"), spread(ratios(clean, empty), "%.2f"))
	t.row(fmt.Sprintf("%d files, after SIGKILL", m.b.files), spread(killed, "%.0f"), spread(ratios(killed, empty), "%.2f"))
	t.print(m.b)
	return nil
}

// start is one row. It leaves the program killed.
func (m *million) start(ctx context.Context, t report, after string, bare int64) error {
	karui, err := startKarui(ctx, m.b, "karui", karuiOptions{memory: "64MiB", wait: "0s", folder: m.folder, talks: true})
	if err != nil {
		return err
	}
	defer karui.stop()
	asked := m.b.origin.asked.Load()
	began := time.Now()
	whole := time.Duration(0)
	cpu := time.Duration(0)
	during, err := m.hits(ctx, karui, func() bool {
		said, err := os.ReadFile(karui.words)
		if err == nil && strings.Contains(string(said), "cache volume loaded") {
			whole = karui.start + time.Since(began)
			cpu, _ = cpuOf(karui.roots) // 0 is seen to be none
			return true
		}
		return time.Since(began) > 5*time.Minute
	})
	if err != nil {
		return err
	}
	end := time.Now().Add(hitTime)
	then, err := m.hits(ctx, karui, func() bool { return time.Now().After(end) })
	if err != nil {
		return err
	}
	memory, err := memoryOfOne(karui.roots[0])
	if err != nil {
		return err
	}
	t.row(after, fmt.Sprintf("%.0f", milliseconds(karui.start)), fmt.Sprintf("%.1f", whole.Seconds()), fmt.Sprintf("%.1f", cpu.Seconds()), during.Requests,
		ms(during.Latencies.P50), ms(during.Latencies.P99), ms(during.Latencies.Max), ms(then.Latencies.P50), ms(then.Latencies.P99), ms(then.Latencies.Max),
		m.b.origin.asked.Load()-asked, (memory-bare)>>20, fmt.Sprintf("%.0f", float64(memory-bare)/float64(m.b.files)))
	return karui.kill()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", milliseconds(d)) }

// kill ends it as a crash would.
func (s *server) kill() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", s.name, err)
	}
	s.ended <- <-s.ended // stop waits for it as well
	return nil
}

// hits asks for random files of the cache until enough says so.
func (m *million) hits(ctx context.Context, karui *server, enough func() bool) (*vegeta.Metrics, error) {
	attacker := vegeta.NewAttacker(vegeta.KeepAlive(true), vegeta.Timeout(time.Minute))
	target := func(t *vegeta.Target) error {
		t.Method, t.URL, t.Header = http.MethodGet, karui.url+m.path(rand.IntN(m.b.files)), http.Header{"Accept": {takesJPEG}}
		return nil
	}
	look := time.Now()
	var all vegeta.Metrics
	for r := range attacker.Attack(target, vegeta.Rate{Freq: hitRate, Per: time.Second}, 10*time.Minute, "") {
		all.Add(r)
		if time.Since(look) > 50*time.Millisecond {
			look = time.Now()
			if ctx.Err() != nil || enough() {
				attacker.Stop()
			}
		}
	}
	all.Close()
	if all.Success < 1 {
		return nil, fmt.Errorf("hits: %.4f succeeded: %s", all.Success, strings.Join(all.Errors, ", "))
	}
	return &all, ctx.Err()
}

// fetchAs gets a picture.
func fetchAs(ctx context.Context, client *http.Client, url, accept string) (kind string, body []byte, err error) {
	r, err := request(ctx, url, accept)
	if err != nil {
		return "", nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", nil, fmt.Errorf("get %s: %w", url, err)
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(answer.Body); err != nil {
		return "", nil, fmt.Errorf("get %s: %w", url, err)
	}
	if answer.StatusCode != http.StatusOK {
		return "", nil, errors.New("get " + url + ": status " + strconv.Itoa(answer.StatusCode))
	}
	return answer.Header.Get("Content-Type"), b.Bytes(), nil
}
