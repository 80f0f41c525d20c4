package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"karui/convert/header"
	"karui/internal/origintest"
	"karui/proxy/flight"
)

func TestColdStampede(t *testing.T) {
	const viewers = 1000
	r := newRig(t, waiting(limit))
	jpg := photo(t, 300, 1)
	hold := origintest.NewGate()
	answer := jpegAnswer(jpg)
	answer.Hold = hold
	r.origin.Set("/a.jpg", answer)
	open := r.fake.gate()
	defer open()

	var all sync.WaitGroup
	wrong := make(chan string, viewers)
	for i := range viewers {
		accept, want := takesWebP, webp(jpg)
		if i%4 == 0 {
			accept, want = takesJPEG, jpg
		}
		all.Go(func() {
			a := r.get("/a.jpg", accept)
			if a.StatusCode != 200 || a.err != nil || !bytes.Equal(a.body, want) {
				wrong <- fmt.Sprintf("viewer %d: status %d, %d bytes, %s, %v", i, a.StatusCode, len(a.body), a.Header.Get("X-Karui"), a.err)
			}
		})
	}
	r.origin.Await("/a.jpg", 1, limit)
	hold.Open()
	open()
	all.Wait()
	close(wrong)
	for w := range wrong {
		t.Error(w)
	}
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
	if n := r.fake.calls.Load(); n != 1 {
		t.Errorf("%d conversions, want one", n)
	}
}

// A viewer that looked into the cache before the entry was there, and joined
// after the flight had ended, must not cause a second request.
func TestLateViewerCausesNoSecondRequest(t *testing.T) {
	for _, lines := range [][]string{nil, {"Origin: https://a.example"}} {
		r := newRig(t)
		r.origin.Set("/a.jpg", jpegAnswer(photo(t, 64, 1)))
		viewer := http.Header{}
		if lines != nil {
			viewer.Set("Origin", "https://a.example")
		}
		set := r.proxy.set.Load()
		f := set.router.fallback.fetch(targetOf("/a.jpg"), viewer)
		f.named = true
		r.warm("/a.jpg", lines...)
		h := r.proxy.join(t.Context(), set, f, []header.Format{header.WebP})
		if _, err := h.Head(t.Context()); !errors.Is(err, flight.ErrStored) {
			t.Errorf("%v: Head: %v", lines, err)
		}
		_ = h.Close()
		r.idle()
		if n := r.origin.Count("/a.jpg"); n != 1 {
			t.Errorf("%v: the origin was asked %d times, want once", lines, n)
		}
	}
}

// Flights outlive their viewers; beyond the bound each viewer has one of its own.
func TestFlightsAreBounded(t *testing.T) {
	r := newRig(t, withSettings(func(s *Settings) { s.Limits.Connections = 1 }))
	jpg := photo(t, 64, 1)
	hold := origintest.NewGate()
	defer hold.Open()
	held := jpegAnswer(jpg)
	held.Hold = hold
	r.origin.Set("/held.jpg", held)
	r.origin.Set("/a.jpg", jpegAnswer(jpg, field("Cache-Control", "max-age=86400")))
	set := r.proxy.set.Load()
	f := set.router.fallback.fetch(targetOf("/held.jpg"), nil)
	_ = r.proxy.join(t.Context(), set, f, nil).Close()
	r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "bypass", "Cache-Control": "public, max-age=10"})
	if n := r.proxy.Flights().Flights; n != 1 {
		t.Errorf("%d flights, want the one that is held", n)
	}
}

func TestViewersWhoLeaveDoNotEndTheFetch(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 300, 1)
	stall := origintest.NewGate()
	answer := jpegAnswer(jpg)
	answer.Stall, answer.StallAt = stall, 5000
	r.origin.Set("/a.jpg", answer)
	_, _, conn := r.raw("GET /a.jpg HTTP/1.1\r\nHost: a\r\n" + takesWebP + "\r\n\r\n")
	_ = conn.Close()
	stall.Open()
	r.idle()
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
}

// What the origin has said so far is with every viewer while it pauses, also
// with those who come later.
func TestPausingOrigin(t *testing.T) {
	for _, path := range []string{"/a.jpg", "/a.css"} {
		r := newRig(t)
		jpg := photo(t, 300, 1)
		stall := origintest.NewGate()
		defer stall.Open()
		answer := jpegAnswer(jpg)
		answer.Stall, answer.StallAt = stall, 1024
		r.origin.Set(path, answer)
		for range 3 {
			_, body, _ := r.raw("GET " + path + " HTTP/1.1\r\nHost: a\r\n" + takesJPEG + "\r\n\r\n")
			got := make([]byte, 1024)
			if _, err := io.ReadFull(body, got); err != nil || !bytes.Equal(got, jpg[:1024]) {
				t.Errorf("%s: the first 1024 bytes did not come: %v", path, err)
			}
		}
		stall.Open()
		r.idle()
	}
}

func TestPrivateRequests(t *testing.T) {
	r := newRig(t, waiting(limit))
	jpg := photo(t, 64, 1)
	r.origin.SetFunc("/a.jpg", func(q origintest.Request) origintest.Answer {
		return jpegAnswer(jpg, field("X-Got", q.Header.Get("Cookie")+q.Header.Get("Authorization")),
			field("Last-Modified", "Tue, 03 Nov 2026 11:59:00 GMT"), field("Set-Cookie", "c=d"))
	})
	for _, line := range []string{"Cookie: a=b", "Authorization: Basic x"} {
		_, value, _ := strings.Cut(line, ": ")
		for range 2 {
			r.want(r.get("/a.jpg", takesWebP, line), 200, jpg, map[string]string{
				"X-Karui": "bypass", "X-Got": value, "Cache-Control": "", "Set-Cookie": "c=d", "Vary": "Accept", "Last-Modified": "*",
			})
		}
	}
	sent := r.origin.Requests("/a.jpg")
	if len(sent) != 4 {
		t.Errorf("the origin was asked %d times, want four times", len(sent))
	}
	if got := sent[0].Header.Get("Accept"); got == "" {
		t.Error("a private request lost its Accept")
	}
	if r.fake.calls.Load() != 0 {
		t.Error("a private answer was converted")
	}
}

func TestCookiesIgnored(t *testing.T) {
	r := newRig(t, withSite(func(s *SiteConfig) { s.Cookies = "ignore" }))
	r.origin.Set("/a.jpg", jpegAnswer(photo(t, 64, 1)))
	r.warm("/a.jpg", "Cookie: a=b")
	r.want(r.get("/a.jpg", takesWebP, "Cookie: c=d"), 200, nil, map[string]string{"X-Karui": "hit"})
	if got := r.origin.Requests("/a.jpg")[0].Header.Get("Cookie"); got != "" {
		t.Errorf("the shared fetch carries the cookie %q", got)
	}
	r.want(r.get("/a.jpg", takesWebP, "Authorization: Basic x"), 200, nil, map[string]string{"X-Karui": "bypass"})
}

func TestUnshareableAnswers(t *testing.T) {
	jpg := photo(t, 64, 1)
	for name, f := range map[string]origintest.Field{
		"cookie": field("Set-Cookie", "a=b"), "private": field("Cache-Control", "private"), "no-store": field("Cache-Control", "no-store"),
		"vary": field("Vary", "User-Agent"), "vary star": field("Vary", "*"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, waiting(limit))
			r.origin.Set("/a.jpg", jpegAnswer(jpg, f, field("ETag", `"v1"`)))
			for range 2 {
				a := r.get("/a.jpg", takesWebP)
				r.want(a, 200, jpg, map[string]string{"X-Karui": "bypass", "ETag": `"v1"`, "Content-Type": "image/jpeg"})
				if control := a.Header.Get("Cache-Control"); strings.Contains(control, "public") {
					t.Errorf("made public: %q", control)
				}
				if vary := a.Header.Get("Vary"); !strings.HasPrefix(vary, "Accept") && vary != "*" {
					t.Errorf("Vary: %q", vary)
				}
				r.idle()
			}
			if n := r.origin.Count("/a.jpg"); n != 2 {
				t.Errorf("the origin was asked %d times, want twice", n)
			}
			if r.fake.calls.Load() != 0 {
				t.Error("an answer that may not be shared was converted")
			}
		})
	}
}

// Each of those who waited for an answer that turns out not to be shareable gets
// one of its own.
func TestViewersOfAnUnshareableAnswerFetchForThemselves(t *testing.T) {
	const viewers = 8
	r := newRig(t)
	jpg := photo(t, 64, 1)
	hold := origintest.NewGate()
	var mu sync.Mutex
	n := 0
	r.origin.SetFunc("/a.jpg", func(origintest.Request) origintest.Answer {
		mu.Lock()
		defer mu.Unlock()
		n++
		a := jpegAnswer(jpg, field("Set-Cookie", fmt.Sprintf("id=%d", n)))
		if n == 1 {
			a.Hold = hold
		}
		return a
	})
	cookies := make(chan string, viewers)
	var all sync.WaitGroup
	for range viewers {
		all.Go(func() {
			a := r.get("/a.jpg", takesWebP)
			r.want(a, 200, jpg, nil)
			cookies <- a.Header.Get("Set-Cookie")
		})
	}
	r.origin.Await("/a.jpg", 1, limit)
	hold.Open()
	all.Wait()
	close(cookies)
	seen := map[string]bool{}
	for c := range cookies {
		if c == "" || seen[c] {
			t.Errorf("the cookie %q reached two viewers", c)
		}
		seen[c] = true
	}
}

func TestNotConvertedByTheOriginsWish(t *testing.T) {
	jpg := photo(t, 64, 1)
	for name, f := range map[string]origintest.Field{
		"no-transform": field("Cache-Control", "no-transform"), "encoded": field("Content-Encoding", "gzip"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, waiting(limit))
			r.origin.Set("/a.jpg", jpegAnswer(jpg, f))
			for range 2 {
				r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{
					"X-Karui": "original", "Cache-Control": "public, max-age=86400", "Content-Type": "image/jpeg",
				})
				r.idle()
			}
			if n := r.origin.Count("/a.jpg"); n != 1 {
				t.Errorf("the origin was asked %d times, want once", n)
			}
			if r.fake.calls.Load() != 0 {
				t.Error("it was converted")
			}
		})
	}
}

func TestTargetReachesTheOriginByteForByte(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.SetDefault(func(origintest.Request) origintest.Answer { return jpegAnswer(jpg) })
	for _, target := range []string{
		"/a%2Fb.jpg", "/a%20b.jpg", "/a+b.jpg", "/a%25b.jpg", "/%E7%8C%AB.jpg", "/\xe7\x8c\xab.jpg", "/\x94\x4c\x83\x5c.jpg", "//a//b.jpg",
		"/a;b.jpg", "/./a/../b.jpg", "/a.jpg?", "/a.jpg?v=2&w=a+b%20c", "/a.jpg?q=\xe7\x8c\xab", "/A.JPG?x=/../y", "/a%2ejpg",
		"/file%20name.css?x=%zz", "/*.css", "/a%2Fb/c.css",
	} {
		resp, body, _ := r.raw("GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if _, err := io.Copy(io.Discard, body); err != nil || resp.StatusCode != 200 {
			t.Errorf("%q: status %d, %v", target, resp.StatusCode, err)
		}
		all := r.origin.Requests("")
		if got := all[len(all)-1].Target; got != target {
			t.Errorf("%q reached the origin as %q", target, got)
		}
	}
}

func TestQueryInTheKey(t *testing.T) {
	jpg := photo(t, 64, 1)
	for name, test := range map[string]struct {
		query Query
		sent  []string
	}{
		"all":   {Query{All: true}, []string{"/a.jpg", "/a.jpg?v=1", "/a.jpg?v=2&x=1", "/a.jpg?x=2&v=2"}},
		"none":  {Query{}, []string{"/a.jpg"}},
		"names": {Query{Names: []string{"v"}}, []string{"/a.jpg", "/a.jpg?v=1", "/a.jpg?v=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, withSite(func(s *SiteConfig) { s.Query = test.query }))
			r.origin.Set("/a.jpg", jpegAnswer(jpg))
			for _, target := range []string{"/a.jpg", "/a.jpg?v=1", "/a.jpg?v=2&x=1", "/a.jpg?x=2&v=2"} {
				r.warm(target)
				r.want(r.get(target, takesWebP), 200, nil, map[string]string{"X-Karui": "hit"})
			}
			var sent []string
			for _, q := range r.origin.Requests("/a.jpg") {
				sent = append(sent, q.Target)
			}
			if fmt.Sprint(sent) != fmt.Sprint(test.sent) {
				t.Errorf("sent %q, want %q", sent, test.sent)
			}
		})
	}
}

func TestForwardedHeaders(t *testing.T) {
	r := newRig(t, withSite(func(s *SiteConfig) { s.ForwardHeaders = []string{"user-agent", "Referer", "Accept", "cookie"} }))
	jpg := photo(t, 64, 1)
	r.origin.SetFunc("/a.jpg", func(q origintest.Request) origintest.Answer {
		return jpegAnswer(jpg, field("Vary", "Referer"), field("Link", q.Header.Get("Referer")))
	})
	for _, from := range []string{"https://a.example/", "https://b.example/", "https://a.example/"} {
		r.warm("/a.jpg", "Referer: "+from, "X-Forwarded-For: 192.0.2.1", "X-Amz-Cf-Id: abc")
		r.want(r.get("/a.jpg", takesWebP, "Referer: "+from), 200, nil, map[string]string{"X-Karui": "hit", "Link": from})
	}
	sent := r.origin.Requests("/a.jpg")
	if len(sent) != 2 {
		t.Fatalf("the origin was asked %d times, want once for each Referer", len(sent))
	}
	h := sent[0].Header
	if h.Get("User-Agent") != "test" || h.Get("Referer") != "https://a.example/" {
		t.Errorf("not forwarded: %v", h)
	}
	for _, name := range []string{"X-Forwarded-For", "X-Amz-Cf-Id", "Accept", "Cookie", "X-Routing", KeyHeader} {
		if h.Get(name) != "" {
			t.Errorf("%s was forwarded", name)
		}
	}
}

// An original over convert.max_bytes is answered, stored and not converted.
func TestOversizedOriginal(t *testing.T) {
	jpg := photo(t, 400, 1)
	chunked := jpegAnswer(jpg)
	chunked.Framing = origintest.Chunked
	untilClose := jpegAnswer(jpg)
	untilClose.Framing = origintest.Close
	for name, answer := range map[string]origintest.Answer{"declared": jpegAnswer(jpg), "chunked": chunked, "until close": untilClose} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, waiting(limit), withSettings(func(s *Settings) { s.Convert.MaxBytes = 20_000 }))
			r.origin.Set("/a.jpg", answer)
			first := r.get("/a.jpg", takesWebP)
			r.want(first, 200, jpg, nil)
			r.idle()
			r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "original", "Cache-Control": "public, max-age=86400", "Content-Length": fmt.Sprint(len(jpg))})
			if n := r.origin.Count("/a.jpg"); n != 1 {
				t.Errorf("the origin was asked %d times, want once", n)
			}
			if r.fake.calls.Load() != 0 {
				t.Error("it was given to a converter")
			}
		})
	}
}
