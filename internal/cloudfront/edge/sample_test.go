package edge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"karui/internal/cloudfront"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSampleStandsWithRealListeners goes the way of the demonstration: two servers
// and one call.
func TestSampleStandsWithRealListeners(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Routing") != "shop" || r.Host != sampleProxy {
			http.Error(w, "wrong way", http.StatusTeapot)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=60")
		w.Header().Set("Vary", "Accept")
		fmt.Fprintf(w, "karui %s", r.Header.Get("Accept"))
	}))
	defer proxy.Close()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "origin %s", r.URL.Path)
	}))
	defer origin.Close()
	events := make(chan Event, 100)
	s, err := StartSample(SampleOptions{
		Proxy: strings.TrimPrefix(proxy.URL, "http://"), Origin: strings.TrimPrefix(origin.URL, "http://"),
		Header: []cloudfront.Header{{Name: "X-Routing", Value: "shop"}},
		Edge:   Options{Observer: func(v Event) { events <- v }},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path, accept string) (string, string) {
		t.Helper()
		r, _ := http.NewRequest(http.MethodGet, s.URL+path, nil)
		r.Header.Set("Accept", accept)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body), resp.Header.Get("X-Cache")
	}
	for i, c := range []struct{ path, accept, body, cache, member string }{
		{"/a.jpg", "image/avif,image/webp,*/*;q=0.8", "karui image/avif,image/webp", "Miss from cloudfront", "karui"},
		{"/a.jpg", "image/webp , image/avif", "karui image/avif,image/webp", "Hit from cloudfront", "karui"},
		{"/a.jpg", "*/*", "karui */*", "Miss from cloudfront", "karui"},
		{"/page.html", "text/html", "origin /page.html", "Miss from cloudfront", "origin"},
	} {
		body, cache := get(c.path, c.accept)
		if body != c.body || cache != c.cache {
			t.Errorf("request %d: %q, %q; want %q, %q", i, body, cache, c.body, c.cache)
		}
		if v := <-events; v.Member != c.member || v.Status != 200 {
			t.Errorf("request %d: event %+v", i, v)
		}
	}
	proxy.Close()
	body, _ := get("/b.jpg", "image/webp")
	if body != "origin /b.jpg" {
		t.Errorf("with a dead proxy: %q", body)
	}
	if v := <-events; v.FailedOver != FailRefused || v.Member != SampleOriginID {
		t.Errorf("event %+v", v)
	}
	if got := s.Order(); len(got) != 2 || got[0] != SampleProxyID {
		t.Errorf("order %v", got)
	}
}
