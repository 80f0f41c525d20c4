package probe_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	double "karui/internal/cloudfront"
	"karui/watchdog/event"
	"karui/watchdog/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func picture(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 16, 16)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb is a JPEG header that promises 65,535 x 65,535 pixels.
func bomb(t testing.TB) []byte {
	b := bytes.Clone(picture(t))
	i := bytes.Index(b, []byte{0xFF, 0xC0})
	binary.BigEndian.PutUint16(b[i+5:], 65535)
	binary.BigEndian.PutUint16(b[i+7:], 65535)
	return b
}

func serve(status int, contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}
}

func TestPing(t *testing.T) {
	good := picture(t)
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		kind    string
		text    string
	}{
		"good":            {serve(200, "image/jpeg", good), "", "200, JPEG of"},
		"parameters":      {serve(200, "image/jpeg; charset=x", good), "", "200"},
		"503":             {serve(503, "text/plain", nil), event.FailStatus, "status 503 Service Unavailable"},
		"404":             {serve(404, "image/jpeg", good), event.FailStatus, "404"},
		"206":             {serve(206, "image/jpeg", good), event.FailStatus, "206"},
		"redirect":        {http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP, event.FailStatus, "302"},
		"html":            {serve(200, "text/html", good), event.FailBody, `"text/html"`},
		"no type":         {serve(200, "", good), event.FailBody, "not an image"},
		"no JPEG":         {serve(200, "image/jpeg", []byte("<html>")), event.FailBody, "no JPEG"},
		"WebP":            {serve(200, "image/webp", []byte("RIFF....WEBPVP8 ")), event.FailBody, "no JPEG"},
		"empty":           {serve(200, "image/jpeg", nil), event.FailBody, "no JPEG"},
		"half":            {serve(200, "image/jpeg", good[:len(good)/2]), event.FailBody, "no JPEG"},
		"bomb":            {serve(200, "image/jpeg", bomb(t)), event.FailBody, "more than a ping can have"},
		"too long":        {serve(200, "image/jpeg", make([]byte, 2<<20)), event.FailBody, "more than 1048576 bytes"},
		"control in type": {serve(200, "a\tb", good), event.FailBody, "not an image"},
		"reason": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Karui-Reason", "drain")
			w.WriteHeader(503)
		}, event.FailStatus, "(drain)"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/jpeg")
			w.Header().Set("Content-Length", strconv.Itoa(len(good)))
			_, _ = w.Write(good[:100])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, event.FailBody, "cut off after 100 bytes"},
		"closed": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, event.FailConnect, "closed before an answer came"},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(c, "SSH-2.0-OpenSSH\r\n\r\n")
			c.Close()
		}, event.FailConnect, "could be understood"},
		"hangs":        {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, event.FailTimeout, "connected, but no answer within"},
		"body hangs":   {bodyHangs, event.FailTimeout, "did not end in time"},
		"endless head": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<18)) }, event.FailConnect, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			timeout := 10 * time.Second
			if strings.Contains(name, "hangs") {
				timeout = 100 * time.Millisecond
			}
			p := probe.New(probe.Options{}).Ping(t.Context(), server.URL+"/ping.jpg", nil, timeout)
			if p.Kind != test.kind || p.OK != (test.kind == "") || !strings.Contains(p.Text, test.text) || p.Text == "" {
				t.Errorf("%+v", p)
			}
			if strings.ContainsAny(p.Text, "\r\n\t") || strings.Contains(p.Text, server.URL) {
				t.Errorf("text: %q", p.Text)
			}
		})
	}
}

func bodyHangs(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "image/jpeg")
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestNoConnection(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(serve(200, "image/jpeg", picture(t)))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	roots := secure.Client().Transport.(*http.Transport).TLSClientConfig
	for name, test := range map[string]struct {
		target string
		tls    *tls.Config
		kind   string
		text   string
	}{
		"refused":           {closed.URL, nil, event.FailConnect, "connection refused"},
		"no TLS":            {"https" + strings.TrimPrefix(plain.URL, "http"), nil, event.FailTLS, "TLS handshake"},
		"unknown signer":    {secure.URL, nil, event.FailTLS, "certificate is not accepted"},
		"good":              {secure.URL, roots, "", "200"},
		"handshake hangs":   {"https://" + mute.Addr().String(), nil, event.FailTimeout, "no TLS handshake within"},
		"accepts, mute":     {"http://" + mute.Addr().String(), nil, event.FailTimeout, "no answer within"},
		"no such name":      {"http://karui.invalid/", nil, event.FailDNS, "karui.invalid"},
		"not an address":    {"http://[::1/", nil, event.FailConnect, "not an address"},
		"wrong certificate": {"https://localhost:" + port(secure.URL), roots, event.FailTLS, "certificate is not accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := 10 * time.Second
			if test.kind == event.FailTimeout {
				timeout = 100 * time.Millisecond
			}
			p := probe.New(probe.Options{TLS: test.tls}).Ping(t.Context(), test.target, nil, timeout)
			if p.Kind != test.kind || !strings.Contains(p.Text, test.text) {
				t.Errorf("%+v", p)
			}
		})
	}
}

func port(url string) string { return url[strings.LastIndexByte(url, ':')+1:] }

func TestEachPingHasAConnectionOfItsOwn(t *testing.T) {
	var connections, redirected atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			redirected.Add(1)
		}
		if r.Host != "other.example.com" || r.Header.Get("X-Routing") != "shop" || r.Header.Get("User-Agent") != probe.UserAgent {
			t.Errorf("%s %v", r.Host, r.Header)
		}
		w.Header().Set("Content-Type", "image/jpeg")
		_, _ = w.Write(picture(t))
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	p := probe.New(probe.Options{})
	for range 3 {
		if one := p.Ping(t.Context(), server.URL, []probe.Header{{"Host", "other.example.com"}, {"X-Routing", "shop"}}, 10*time.Second); !one.OK {
			t.Errorf("%+v", one)
		}
	}
	if connections.Load() != 3 || redirected.Load() != 0 {
		t.Errorf("%d connections", connections.Load())
	}
}

func TestOriginAndControls(t *testing.T) {
	p := probe.New(probe.Options{})
	for status, lives := range map[int]bool{200: true, 301: true, 403: true, 404: true, 499: true, 500: false, 503: false} {
		server := httptest.NewServer(serve(status, "text/html", make([]byte, 4<<20)))
		if one := p.Alive(t.Context(), server.URL, probe.Patience{Timeout: 10 * time.Second}); one.OK != lives || lives != (one.Kind == "") {
			t.Errorf("%d: %+v", status, one)
		}
		if one := p.Answers(t.Context(), server.URL, 10*time.Second); !one.OK {
			t.Errorf("%d: %+v", status, one)
		}
		if err := p.Beat(t.Context(), server.URL+"/secret", 10*time.Second); (err == nil) != (status == 200) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
	}
}

func TestQueriesAreNotShown(t *testing.T) {
	server := httptest.NewServer(serve(503, "", nil))
	defer server.Close()
	if p := probe.New(probe.Options{}).Ping(t.Context(), server.URL+"/ping.jpg?key=hush", nil, 10*time.Second); p.URL != server.URL+"/ping.jpg?..." {
		t.Error(p.URL)
	}
}

// bubble runs f in simulated time with a server.
func bubble(t *testing.T, h http.HandlerFunc, f func(p *probe.Prober)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		pipe := double.NewPipe()
		server := &http.Server{Handler: h}
		var wait sync.WaitGroup
		wait.Go(func() { _ = server.Serve(pipe) })
		f(probe.New(probe.Options{Dial: pipe.Dial}))
		server.Close()
		wait.Wait()
	})
}

func TestRounds(t *testing.T) {
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	var asked atomic.Int32
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		spacing time.Duration
		timeout time.Duration
		n       int
		took    time.Duration
	}{
		"first is good":              {serve(200, "image/jpeg", picture(t)), 6 * time.Second, 5 * time.Second, 1, 0},
		"all fail at once":           {serve(503, "", nil), 6 * time.Second, 5 * time.Second, 5, 24 * time.Second},
		"all hang":                   {hangs, 6 * time.Second, 5 * time.Second, 5, 29 * time.Second},
		"timeout longer than spaced": {hangs, time.Second, 5 * time.Second, 5, 25 * time.Second},
		"third is good": {func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) < 3 {
				w.WriteHeader(503)
				return
			}
			serve(200, "image/jpeg", picture(t))(w, r)
		}, 6 * time.Second, 5 * time.Second, 3, 12 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, test.handler, func(p *probe.Prober) {
				start := time.Now()
				probes, err := p.Round(context.Background(), "http://karui/ping.jpg", nil, 5, test.spacing, test.timeout)
				if took := time.Since(start); err != nil || len(probes) != test.n || took != test.took {
					t.Errorf("%d in %s, %v", len(probes), took, err)
				}
				for i, one := range probes {
					if one.OK != (i == test.n-1 && strings.Contains(name, "good")) {
						t.Errorf("%d: %+v", i, one)
					}
				}
			})
		})
	}
}

func TestARoundEndsWithItsContext(t *testing.T) {
	bubble(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(p *probe.Prober) {
		for _, after := range []time.Duration{time.Second, 5500 * time.Millisecond} { // in a ping, between two
			ctx, cancel := context.WithTimeout(context.Background(), after)
			start := time.Now()
			probes, err := p.Round(ctx, "http://karui/ping.jpg", nil, 5, 6*time.Second, 5*time.Second)
			cancel()
			if err == nil || time.Since(start) != after || len(probes) > 1 {
				t.Errorf("%v after %s with %d", err, time.Since(start), len(probes))
			}
		}
	})
}

func TestControlsAreShared(t *testing.T) {
	var asked atomic.Int32
	bubble(t, func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}, func(p *probe.Prober) {
		c := probe.NewControls(p)
		addresses := []string{"http://a/", "http://b/"}
		var wait sync.WaitGroup
		for range 1000 {
			wait.Go(func() {
				probes, err := c.Ask(context.Background(), addresses, 5*time.Second)
				if err != nil || len(probes) != 2 || !probe.AllSilent(probes) {
					t.Errorf("%v %v", probes, err)
				}
			})
		}
		wait.Wait()
		if n := asked.Load(); n != 2 {
			t.Errorf("%d requests for 1,000 sites", n)
		}
		if _, err := c.Ask(context.Background(), addresses, 5*time.Second); err != nil || asked.Load() != 4 {
			t.Errorf("an old look was shared: %d, %v", asked.Load(), err)
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := c.Ask(gone, addresses, time.Second); err == nil {
			t.Error("no error for a context that has ended")
		}
	})
	if probe.AllSilent(nil) {
		t.Error("none at all is not silence")
	}
}

func FuzzPingBody(f *testing.F) {
	f.Add(picture(f))
	f.Add(bomb(f))
	f.Add(picture(f)[:100])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		server := httptest.NewServer(serve(200, "image/jpeg", body))
		defer server.Close()
		p := probe.New(probe.Options{}).Ping(t.Context(), server.URL, nil, 5*time.Second)
		if p.OK == (p.Kind != "") || p.Text == "" {
			t.Errorf("%+v", p)
		}
	})
}

// One request that fails is no silence, and asking again has its limits.
func TestAliveAsksAgain(t *testing.T) {
	patience := probe.Patience{Tries: 3, Pause: time.Second, Timeout: 5 * time.Second, Within: time.Minute}
	for _, c := range []struct {
		name   string
		bad    int // requests that get a 503 before it lives
		within time.Duration
		asked  int
		lives  bool
	}{
		{"at once", 0, time.Minute, 1, true},
		{"one lost", 1, time.Minute, 2, true},
		{"two lost", 2, time.Minute, 3, true},
		{"silent", 9, time.Minute, 3, false},
		{"time for two tries", 9, 6500 * time.Millisecond, 2, false},
		{"no time at all", 9, -time.Second, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked atomic.Int32
			bubble(t, func(w http.ResponseWriter, _ *http.Request) {
				if int(asked.Add(1)) <= c.bad {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}, func(p *probe.Prober) {
				how := patience
				how.Within = c.within
				one := p.Alive(context.Background(), "http://origin.example.com/", how)
				if one.OK != c.lives || int(asked.Load()) != c.asked || one.Took != time.Duration(c.asked-1)*time.Second {
					t.Errorf("asked %d times: %+v", asked.Load(), one)
				}
				if tries := fmt.Sprintf("last of %d tries", c.asked); strings.Contains(one.Text, tries) != (!c.lives && c.asked > 1) {
					t.Errorf("%+v", one)
				}
			})
		})
	}
}

func TestAliveEndsWithItsCaller(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}, func(p *probe.Prober) {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		p.Alive(ctx, "http://origin.example.com/", probe.Patience{Tries: 3, Pause: time.Minute, Timeout: time.Second, Within: time.Hour})
		if time.Since(start) != 500*time.Millisecond {
			t.Errorf("it took %s", time.Since(start))
		}
	})
}
