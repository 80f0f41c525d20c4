package proxy

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/origintest"
)

// startPool starts real workers.
func startPool(tb testing.TB) *convert.Pool {
	tb.Helper()
	config := convert.DefaultConfig()
	config.QueueWait = limit // a busy machine changes the time that a test takes, and not its outcome
	pool, err := convert.New(config, convert.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// corpus gives the files of one folder of the shared corpus that have convertible names.
func corpus(tb testing.TB, folder string) map[string][]byte {
	tb.Helper()
	dir := filepath.Join("..", "..", "shared", "corpus", folder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Skipf("the corpus is not here: %v", err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		path := "/" + e.Name()
		if e.IsDir() || !(&site{}).convertible(path) || strings.ContainsAny(path, " #?%") {
			continue
		}
		body, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		files[path] = body
	}
	return files
}

// Every file of the corpus is answered with a variant that is smaller and of a
// format the viewer takes, or byte for byte as it is.
func TestRealChain(t *testing.T) {
	pool := startPool(t)
	r := newRig(t, withConverter(pool))
	files := map[string][]byte{}
	for _, folder := range []string{"hard", "broken", "graphics"} {
		n := 0
		for path, body := range corpus(t, folder) {
			if n++; n > 25 || len(body) > 1<<20 {
				continue
			}
			files["/"+folder+path] = body
			r.origin.Set("/"+folder+path, origintest.Image("application/octet-stream", body))
		}
	}
	variants := 0
	for path, body := range files {
		first := r.get(path, takesWebP)
		r.want(first, 200, body, nil)
		r.idle()
		second := r.get(path, takesWebP)
		switch second.Header.Get("X-Karui") {
		case "hit":
			variants++
			info := header.Sniff(second.body)
			if info != header.WebP || second.Header.Get("Content-Type") != "image/webp" || len(second.body) >= len(body) {
				t.Errorf("%s: %v of %d bytes, the original has %d", path, info, len(second.body), len(body))
			}
		default:
			r.want(second, 200, body, nil)
		}
		r.want(r.get(path, takesJPEG), 200, body, nil)
	}
	if variants == 0 {
		t.Error("nothing was converted")
	}
	t.Logf("%d files, %d variants", len(files), variants)
}

func TestRealStampede(t *testing.T) {
	const viewers = 300
	r := newRig(t, withConverter(startPool(t)), waiting(limit))
	jpg := photo(t, 500, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	var all sync.WaitGroup
	for range viewers {
		all.Go(func() {
			a := r.get("/a.jpg", takesWebP)
			if a.StatusCode != 200 || a.err != nil || header.Sniff(a.body) != header.WebP && !bytes.Equal(a.body, jpg) {
				t.Errorf("status %d, %d bytes, %v", a.StatusCode, len(a.body), a.err)
			}
		})
	}
	all.Wait()
	r.idle()
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
	r.want(r.get("/a.jpg", takesWebP), 200, nil, map[string]string{"X-Karui": "hit"})
}

func TestRealPing(t *testing.T) {
	r := newRig(t, withConverter(startPool(t)))
	for !r.proxy.Well() {
		runtime.Gosched()
	}
	if a := r.get("/ping.jpg"); a.StatusCode != 200 || header.Sniff(a.body) != header.JPEG {
		t.Errorf("status %d, %d bytes", a.StatusCode, len(a.body))
	}
}
