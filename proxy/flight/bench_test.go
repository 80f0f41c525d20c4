package flight

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"karui/proxy/origin"
)

// The time from the origin's first byte to each viewer's first byte, over real
// connections. The aim is at most 3 ms for every viewer.
func BenchmarkFirstByte(b *testing.B) {
	for _, viewers := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(viewers, " viewers"), func(b *testing.B) {
			var asked chan struct{}
			var send chan struct{}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "2048")
				close(asked)
				<-send
				_, _ = w.Write(make([]byte, 1024))
				_ = http.NewResponseController(w).Flush()
				_, _ = w.Write(make([]byte, 1024))
			}))
			defer s.Close()
			p, url := newFront(b, s.URL, Options{})
			tr := &http.Transport{MaxIdleConnsPerHost: viewers}
			defer tr.CloseIdleConnections()
			c := &http.Client{Transport: tr}
			var all []time.Duration
			for i := 0; b.Loop(); i++ {
				asked, send = make(chan struct{}), make(chan struct{})
				p.joined.Store(0)
				took := make([]time.Duration, viewers)
				var start time.Time
				var wg sync.WaitGroup
				for v := range viewers {
					wg.Go(func() {
						resp, err := c.Get(fmt.Sprint(url, "/", i))
						if err == nil {
							_, err = io.ReadFull(resp.Body, make([]byte, 1))
							took[v] = time.Since(start)
							_, _ = io.Copy(io.Discard, resp.Body)
							_ = resp.Body.Close()
						}
						if err != nil {
							b.Error(err)
						}
					})
				}
				<-asked
				for p.joined.Load() < int64(viewers) {
					runtime.Gosched()
				}
				start = time.Now()
				close(send)
				wg.Wait()
				all = append(all, took...)
			}
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(all[len(all)-1].Microseconds()), "max-µs")
		})
	}
}

// One 50 MB body from memory to viewers in this process, spool alone.
func BenchmarkSpool(b *testing.B) {
	const size = 50 << 20
	for _, declared := range []bool{true, false} {
		for _, where := range []string{"memory", "file"} {
			for _, viewers := range []int{1, 100} {
				b.Run(fmt.Sprintf("declared=%v/%s/%d viewers", declared, where, viewers), func(b *testing.B) {
					o := Options{BodyMemory: size + 1, Dir: b.TempDir()}
					if where == "file" {
						o.BodyMemory = 1 << 20
					}
					g := newGroup(b, o)
					b.SetBytes(int64(size) * int64(viewers))
					b.ReportAllocs()
					for b.Loop() {
						var wg sync.WaitGroup
						first := make(chan struct{})
						fetch := endlessBody(size, declared)
						req := Request{Shareable: shareable, Fetch: func(ctx context.Context) (*origin.Response, error) {
							<-first
							return fetch(ctx)
						}}
						for range viewers {
							h := g.Join(b.Context(), "k", req)
							wg.Go(func() {
								if n, err := h.WriteTo(io.Discard); err != nil || n != size {
									b.Error(n, err)
								}
								_ = h.Close()
							})
						}
						close(first)
						wg.Wait()
						for g.Stats().Flights > 0 {
							runtime.Gosched()
						}
					}
				})
			}
		}
	}
}

// The same over HTTP on both sides: origin, client, flight, server, viewers.
func BenchmarkHTTP(b *testing.B) {
	const size = 50 << 20
	data := noise(size)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = w.Write(data)
	}))
	defer s.Close()
	for _, viewers := range []int{0, 1, 100} {
		name := fmt.Sprint(viewers, " viewers")
		url := s.URL
		if viewers == 0 {
			name, viewers = "straight from the origin", 1
		} else {
			_, url = newFront(b, s.URL, Options{BodyMemory: 64 << 20})
		}
		b.Run(name, func(b *testing.B) {
			tr := &http.Transport{MaxIdleConnsPerHost: viewers, ReadBufferSize: 64 << 10}
			defer tr.CloseIdleConnections()
			c := &http.Client{Transport: tr}
			b.SetBytes(size * int64(viewers))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				var wg sync.WaitGroup
				for range viewers {
					wg.Go(func() {
						resp, err := c.Get(fmt.Sprint(url, "/", i))
						if err != nil {
							b.Error(err)
							return
						}
						if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != size {
							b.Error(n, err)
						}
						_ = resp.Body.Close()
					})
				}
				wg.Wait()
			}
		})
	}
}

// What one flight with one viewer costs besides its body.
func BenchmarkFlight(b *testing.B) {
	for _, size := range []int{0, 50 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size>>10, " KiB"), func(b *testing.B) {
			data := noise(size)
			g := newGroup(b, Options{})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				h := g.Join(b.Context(), fmt.Sprint(i), Request{Fetch: body(data, true), Shareable: shareable})
				if _, err := h.WriteTo(io.Discard); err != nil {
					b.Fatal(err)
				}
				_ = h.Close()
			}
		})
	}
}
