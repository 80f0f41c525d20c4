package proxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karui/internal/origintest"
)

func TestPingOnTheWire(t *testing.T) {
	r := newRig(t, withSettings(func(s *Settings) { s.Edge.Secrets = []string{"s"} }))
	r.origin.SetDefault(func(origintest.Request) origintest.Answer { return jpegAnswer(photo(t, 64, 1)) })
	for !r.proxy.Well() {
		runtime.Gosched()
	}
	good := map[string]string{"Content-Type": "image/jpeg", "Cache-Control": "no-store", "X-Karui": ""}
	for _, lines := range [][]string{nil, {"Host: www.example.com"}, {"X-Routing: nobody"}} {
		r.want(r.get("/.karui/ping.jpg", lines...), 200, []byte("\xff\xd8\xff ping"), good)
	}
	r.want(r.get("/ping.jpg?x=1", "Host: karui.example.com"), 200, []byte("\xff\xd8\xff ping"), good)
	r.want(r.do(http.MethodHead, "/ping.jpg"), 200, []byte{}, good)
	// A site's own ping.jpg is the site's.
	r.want(r.get("/ping.jpg", "Host: www.example.com"), 503, nil, unavailable("secret"))
	r.want(r.get("/ping.jpg", "X-Routing: shop", "X-Karui-Key: s"), 200, nil, map[string]string{"X-Karui": "original"})
	r.want(r.do(http.MethodPost, "/.karui/ping.jpg"), 405, nil, nil)
	if n := r.origin.Count(""); n != 1 {
		t.Errorf("%d requests reached the origin, want the site's own alone", n)
	}
}

// startTestPing starts a pinger inside a bubble, where time passes by itself.
func startTestPing(t *testing.T, pings func(context.Context) ([]byte, error)) *pinger {
	g := startPing(&fake{pings: pings}, newMetrics(prometheus.NewRegistry()).pings, slog.New(slog.DiscardHandler))
	t.Cleanup(g.close)
	return g
}

func TestPingIsWellWhileConversionsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		g := startTestPing(t, func(context.Context) ([]byte, error) {
			n.Add(1)
			time.Sleep(2900 * time.Millisecond)
			return []byte("jpeg"), nil
		})
		if g.well() {
			t.Error("well before the first conversion")
		}
		time.Sleep(10 * time.Second)
		for range 600 {
			time.Sleep(time.Second)
			if !g.well() {
				t.Fatal("not well, although every conversion works")
			}
			g.mu.Lock()
			age := time.Since(g.at)
			g.mu.Unlock()
			if age > time.Minute {
				t.Fatalf("the answer is %v old", age)
			}
		}
		if n.Load() < 10 {
			t.Errorf("%d conversions in ten minutes", n.Load())
		}
	})
}

func TestPingFailsAfterTwoFailuresInARow(t *testing.T) {
	for name, fails := range map[string]func(context.Context) ([]byte, error){
		"error": func(context.Context) ([]byte, error) { return nil, errors.New("no worker") },
		"panic": func(context.Context) ([]byte, error) { panic("bug") },
		"hangs": func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
		"too slow": func(context.Context) ([]byte, error) {
			time.Sleep(3100 * time.Millisecond)
			return []byte("jpeg"), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				failing := false
				set := func(b bool) { mu.Lock(); defer mu.Unlock(); failing = b }
				g := startTestPing(t, func(ctx context.Context) ([]byte, error) {
					mu.Lock()
					now := failing
					mu.Unlock()
					if now {
						return fails(ctx)
					}
					return []byte("jpeg"), nil
				})
				synctest.Wait()
				if !g.well() {
					t.Fatal("not well at first")
				}
				set(true)
				time.Sleep(pingPause + 4*time.Second)
				if !g.well() {
					t.Error("one failure is not enough")
				}
				time.Sleep(pingPause + 4*time.Second)
				if g.well() {
					t.Error("still well after two failures in a row")
				}
				set(false)
				time.Sleep(pingPause + 4*time.Second)
				if !g.well() {
					t.Error("not well again")
				}
			})
		})
	}
}

func TestDrain(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 300, 1)
	stall := origintest.NewGate()
	answer := jpegAnswer(jpg)
	answer.Stall, answer.StallAt = stall, 5000
	r.origin.Set("/slow.jpg", answer)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	r.warm("/a.jpg")
	resp, body, _ := r.raw("GET /slow.jpg HTTP/1.1\r\nHost: a\r\n" + takesWebP + "\r\n\r\n")
	if resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}

	drained := make(chan error, 1)
	go func() { drained <- r.proxy.Drain(context.Background()) }()
	for !r.proxy.draining() {
		runtime.Gosched()
	}
	if r.proxy.Well() {
		t.Error("well while it drains")
	}
	want := unavailable("drain")
	for range 20 {
		a := r.get("/a.jpg", takesWebP)
		r.want(a, 503, nil, want)
		if !a.Close {
			t.Error("the connection stays open during a drain")
		}
		r.want(r.get("/.karui/ping.jpg"), 503, nil, want)
		r.want(r.get("/a.css"), 503, nil, want)
	}
	select {
	case err := <-drained:
		t.Fatalf("drained (%v) while an answer was under way", err)
	default:
	}
	stall.Open()
	got := make([]byte, len(jpg))
	if _, err := readFull(body, got); err != nil || !bytes.Equal(got, jpg) {
		t.Errorf("the answer under way was broken: %v", err)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	// What the answer began was finished, too.
	if e, ok := r.proxy.find(r.proxy.set.Load().router.fallback.fetch(targetOf("/slow.jpg"), nil).form("webp")); !ok {
		t.Error("the variant of the answer under way was not stored")
	} else {
		closeEntry(e.Entry)
	}
}

func TestDrainEndsInTime(t *testing.T) {
	r := newRig(t)
	silent := origintest.NewGate()
	t.Cleanup(silent.Open)
	r.origin.Set("/a.jpg", origintest.Answer{Hold: silent})
	var all sync.WaitGroup
	all.Go(func() { r.want(r.get("/a.jpg", takesWebP), 503, nil, unavailable("drain")) })
	r.origin.Await("/a.jpg", 1, limit)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.proxy.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain: %v", err)
	}
	r.proxy.Close()
	all.Wait()
}

func TestReload(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	r.warm("/a.jpg")
	next := r.settings
	next.Edge.Secrets = []string{"s"}
	r.proxy.Reload(next)
	r.want(r.get("/a.jpg", takesWebP), 503, nil, unavailable("secret"))
	r.want(r.get("/a.jpg", takesWebP, "X-Karui-Key: s"), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
}

func TestMetrics(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	r.warm("/a.jpg")
	r.get("/a.jpg", takesWebP)
	r.get("/a.jpg", "X-Routing: "+strings.Repeat("evil", 100))
	r.get("/nowhere.jpg", takesWebP)
	r.server.Close()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
				if len(l.GetValue()) > 40 || strings.Contains(l.GetValue(), "/") {
					t.Errorf("label %s of %s comes from outside", l.GetValue(), family.GetName())
				}
			}
			got[name] = m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"karui_requests_total miss shop": 1, "karui_requests_total hit shop": 1, "karui_requests_total 503_route ": 1,
		"karui_requests_total bypass shop": 1, "karui_saved_bytes_total shop": float64(len(jpg) - len(webp(jpg))),
		"karui_origin_fetches_total 2xx shop": 1, "karui_origin_fetches_total 4xx shop": 1, "karui_conversions_total converted webp shop": 1,
		"karui_variants_sent_total webp shop": 1,
	} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
}
