package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"karui/internal/logging"
	"karui/internal/origintest"
)

// discard is a viewer that costs nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkHit is what karui itself adds to a cached answer: everything but
// net/http and the network.
func BenchmarkHit(b *testing.B) {
	for name, accept := range map[string]string{"variant": takesWebP, "original": takesJPEG} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, withSettings(func(s *Settings) { s.AccessLog = false }))
			r.origin.Set("/photos/a.jpg", origintest.Image("image/jpeg", photo(b, 400, 1)))
			r.warm("/photos/a.jpg")
			req := httptest.NewRequest(http.MethodGet, "/photos/a.jpg", nil)
			req.Host = "www.example.com"
			req.Header.Set("Accept", accept[len("Accept: "):])
			req.Header.Set("User-Agent", "Amazon CloudFront")
			b.ReportAllocs()
			for b.Loop() {
				r.proxy.ServeHTTP(&discard{h: http.Header{}}, req)
			}
		})
	}
}

// BenchmarkHitLogged is BenchmarkHit with a line of the access log for each request,
// as the server writes it.
func BenchmarkHitLogged(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	queue := logging.NewQueue(null, logging.QueueSize)
	r := newRig(b, func(_ *rig, o *Options) { o.Access = logging.NewAccess(queue) })
	r.origin.Set("/photos/a.jpg", origintest.Image("image/jpeg", photo(b, 400, 1)))
	r.warm("/photos/a.jpg")
	req := httptest.NewRequest(http.MethodGet, "/photos/a.jpg", nil)
	req.Host = "www.example.com"
	req.Header.Set("Accept", takesWebP[len("Accept: "):])
	req.Header.Set("X-Amz-Cf-Id", strings.Repeat("x", 56))
	b.ReportAllocs()
	for b.Loop() {
		r.proxy.ServeHTTP(&discard{h: http.Header{}}, req)
	}
	if err := queue.Close(b.Context()); err != nil && b.Context().Err() == nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(queue.Dropped())/float64(b.N), "dropped/op")
	if err := null.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkHitOnTheWire is a whole cached answer on loopback, client included.
func BenchmarkHitOnTheWire(b *testing.B) {
	r := newRig(b, withSettings(func(s *Settings) { s.AccessLog = false }))
	r.origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(b, 300, 1)))
	r.warm("/a.jpg")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := r.client.Get(r.server.URL + "/a.jpg")
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}
