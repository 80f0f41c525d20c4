package origin

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestBodies(t *testing.T) {
	for _, tc := range []struct {
		name, wire string
		length     int64
		framing    Framing
		body       string
		kind       Kind // of the body's error
	}{
		{"length", "Content-Length: 5\r\n\r\nhello", 5, Length, "hello", 0},
		{"the same length twice", "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 5, Length, "hello", 0},
		{"empty", "Content-Length: 0\r\n\r\n", 0, Length, "", 0},
		{"chunked", "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", -1, Chunked, "hello", 0},
		{"chunked with trailers", "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n", -1, Chunked, "hello", 0},
		{"until close", "\r\nhello", -1, UntilClose, "hello", 0},
		{"shorter than declared", "Content-Length: 9\r\n\r\nhello", 9, Length, "hello", KindReset},
		{"nothing of what was declared", "Content-Length: 9\r\n\r\n", 9, Length, "", KindReset},
		{"no last chunk", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", -1, Chunked, "hello", KindReset},
		{"cut in a chunk", "Transfer-Encoding: chunked\r\n\r\n9\r\nhello", -1, Chunked, "hello", KindReset},
		{"cut after a chunk's size", "Transfer-Encoding: chunked\r\n\r\n9\r\n", -1, Chunked, "", KindReset},
		{"no chunk where one should be", "Transfer-Encoding: chunked\r\n\r\nhello\r\n", -1, Chunked, "", KindProtocol},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newClient(t, say(t, "HTTP/1.1 200 OK\r\n"+tc.wire))
			resp, body, err := get(t, c, "/")
			if resp == nil {
				t.Fatal(err)
			}
			if resp.Length != tc.length || resp.Framing != tc.framing || body != tc.body {
				t.Errorf("got length %d, %s, %q", resp.Length, resp.Framing, body)
			}
			wantKind(t, err, tc.kind)
			if tc.kind == KindReset && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v is not io.ErrUnexpectedEOF", err)
			}
			if errors.Is(err, io.EOF) {
				t.Errorf("%v looks like a regular end", err)
			}
		})
	}
}

func TestAnswersWithoutBody(t *testing.T) {
	for _, tc := range []struct {
		method, wire string
		status       int
		length       int64
	}{
		{"HEAD", "200 OK\r\nContent-Length: 5\r\n\r\n", 200, 5},
		{"HEAD", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, -1},
		{"HEAD", "200 OK\r\n\r\n", 200, -1},
		{"GET", "204 No Content\r\n\r\n", 204, 0},
		{"GET", "304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\n", 304, 0},
		{"GET", "304 Not Modified\r\n\r\n", 304, 0},
	} {
		var conns atomic.Int32
		url := rawServer(t, func(_ string, c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 "+tc.wire) })
		c := newClient(t, url)
		count(c, &conns)
		for range 3 {
			resp, err := c.Do(t.Context(), Request{Method: tc.method, Target: "/"})
			if err != nil {
				t.Errorf("%s %q: %v", tc.method, tc.wire, err)
				continue
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || len(body) != 0 || resp.Status != tc.status || resp.Length != tc.length || resp.Framing != Length {
				t.Errorf("%s %q: %d, length %d, %s, %q, %v", tc.method, tc.wire, resp.Status, resp.Length, resp.Framing, body, err)
			}
			_ = resp.Body.Close()
		}
		if conns.Load() != 1 {
			t.Errorf("%s %q: %d connections", tc.method, tc.wire, conns.Load())
		}
	}
}

func count(c *Client, n *atomic.Int32) {
	dial := c.dial.dial
	c.dial.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		n.Add(1)
		return dial(ctx, network, addr)
	}
}

func TestEarlyAnswersAreSkipped(t *testing.T) {
	c := newClient(t, say(t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok"))
	resp, body, err := get(t, c, "/")
	if err != nil || resp.Status != 200 || body != "ok" || resp.Header.Get("X-A") != "b" || resp.Header.Get("Link") != "" {
		t.Errorf("got %v, %q, %v", resp, body, err)
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for name, wire := range map[string]string{
		"noise":                    "SSH-2.0-OpenSSH_9.2\r\n\r\n",
		"conflicting lengths":      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"length in a list":         "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello",
		"negative length":          "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
		"length that is no number": "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
		"unknown coding":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
		"another protocol":         "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"status 999":               "HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n",
		"status 600":               "HTTP/1.1 600 No\r\nContent-Length: 0\r\n\r\n",
		"status 42":                "HTTP/1.1 42 No\r\nContent-Length: 0\r\n\r\n",
		"large head":               "HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 2*headerBytes) + "\r\n\r\n",
		"endless hints":            strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </"+strings.Repeat("a", 1000)+">\r\n\r\n", 200),
		"HTTP/2 unasked":           "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := get(t, newClient(t, say(t, wire)), "/")
			wantKind(t, err, KindProtocol)
			if len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + l.Addr().String()
	_ = l.Close()
	_, _, err = get(t, newClient(t, refused), "/")
	wantKind(t, err, KindConnect)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the cause is lost: %v", err)
	}

	_, _, err = get(t, newClient(t, say(t, "")), "/")
	wantKind(t, err, KindReset)
	if errors.Is(err, io.EOF) {
		t.Errorf("%v looks like a regular end", err)
	}

	reset := rawServer(t, func(_ string, c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	})
	_, _, err = get(t, newClient(t, reset), "/")
	wantKind(t, err, KindReset)

	resetLater := rawServer(t, func(_ string, c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	})
	_, _, err = get(t, newClient(t, resetLater), "/")
	wantKind(t, err, KindReset)

	c := newClient(t, "http://origin.example")
	c.dial.dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "origin.example", IsNotFound: true}}
	}
	_, _, err = get(t, c, "/")
	wantKind(t, err, KindDNS)
}

func TestErrorsTellNoSecrets(t *testing.T) {
	secret := func(o *Options) { o.Place.Headers = []Header{{"Authorization", "hunter2"}} }
	for _, c := range []*Client{
		newClient(t, say(t, ""), secret),
		newClient(t, say(t, "garbage hunter2"), secret),
		newClient(t, say(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: hunter2\r\n\r\n"), secret),
		newClient(t, say(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: hunter2\r\n\r\n"), secret),
		newClient(t, "http://127.0.0.1:1", secret),
		newClient(t, "https"+strings.TrimPrefix(say(t, "x"), "http"), secret, func(o *Options) { o.Config.Connect = 100 * time.Millisecond }),
	} {
		_, _, err := get(t, c, "/a.jpg?token=hunter2")
		if err == nil {
			t.Fatal("no error")
		}
		if text := err.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, "a.jpg") || !strings.Contains(text, `"tokyo"`) {
			t.Errorf("got %q", text)
		}
	}
}

func TestHeadersOfOneConnectionStayThere(t *testing.T) {
	heads := make(chan string, 1)
	url := rawServer(t, func(head string, c net.Conn) {
		heads <- head
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: x\r\nUpgrade: h3\r\nTrailer: X-T\r\n"+
			"X-End: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n")
		_ = c.Close()
	})
	c := newClient(t, url, func(o *Options) {
		o.Strip = []string{"x-routing", "X-Karui-Key"}
		o.Place.Headers = []Header{{"referer", "https://www.example.com/"}, {"X-Fixed", "1"}, {"X-Fixed", "2"}}
	})
	own := http.Header{
		"Connection": {"keep-alive, X-Viewer-Hop", "Upgrade"}, "X-Viewer-Hop": {"1"}, "Keep-Alive": {"1"}, "Te": {"trailers"}, "Upgrade": {"h2c"},
		"Proxy-Connection": {"x"}, "Proxy-Authorization": {"x"}, "Transfer-Encoding": {"chunked"}, "Trailer": {"x"}, "Expect": {"100-continue"},
		"X-Routing": {"shop"}, "X-Karui-Key": {"k"}, "Host": {"evil.example"}, "Content-Length": {"99"},
		"Referer": {"https://evil.example/"}, "X-Fixed": {"0"}, "Accept-Encoding": {"identity"}, "X-Many": {"a", "b"},
	}
	before := fmt.Sprint(own)
	resp, err := c.Do(t.Context(), Request{Method: "GET", Target: "/", Header: own})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	got := strings.Split(strings.TrimSuffix(<-heads, "\r\n"), "\r\n")
	slices.Sort(got)
	want := []string{
		"Accept-Encoding: identity", "GET / HTTP/1.1", "Host: " + strings.TrimPrefix(url, "http://"),
		"Referer: https://www.example.com/", "X-Fixed: 1", "X-Fixed: 2", "X-Many: a", "X-Many: b",
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent %q\nwant %q", got, want)
	}
	if fmt.Sprint(own) != before {
		t.Error("the caller's headers were changed")
	}
	if h := resp.Header; len(h) != 3 || h.Get("X-End") != "2" || len(h["Set-Cookie"]) != 2 || h.Get("Content-Length") != "0" {
		t.Errorf("got %v", h)
	}
}

func TestFixedHeadersThatCannotBe(t *testing.T) {
	for _, h := range []Header{{"Host", "a"}, {"connection", "close"}, {"content-length", "1"}, {"", "x"}, {"a b", "x"}, {"a", "x\ny"}} {
		if _, err := New(Options{Config: testConfig(), Place: PlaceConfig{URLs: []string{"http://a"}, Headers: []Header{h}}}); err == nil {
			t.Errorf("%v was taken", h)
		}
	}
}

func TestNothingIsFollowedUnpackedOrRemembered(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("hello"))
	_ = z.Close()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Accept-Encoding")+r.Header.Get("Cookie"))
		if r.URL.Path == "/from" {
			w.Header().Set("Set-Cookie", "a=1")
			http.Redirect(w, r, "/to", http.StatusFound)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	defer s.Close()
	c := newClient(t, s.URL)
	resp, _, err := get(t, c, "/from")
	if err != nil || resp.Status != 302 || resp.Header.Get("Location") != "/to" {
		t.Errorf("got %v, %v", resp, err)
	}
	resp, body, err := get(t, c, "/packed")
	if err != nil || body != packed.String() || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("got %v, %q, %v", resp, body, err)
	}
	if !slices.Equal(asked, []string{"/from ", "/packed "}) {
		t.Errorf("asked %q", asked)
	}
}

func TestRequestBodiesAreStreamed(t *testing.T) {
	first := make(chan string, 2)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 5)
		_, _ = io.ReadFull(r.Body, buf)
		first <- fmt.Sprint(string(buf), " ", r.ContentLength)
		_, _ = io.Copy(w, r.Body)
	}))
	defer s.Close()
	c := newClient(t, s.URL)
	for _, length := range []int64{10, -1} {
		r, w := io.Pipe()
		go func() {
			_, _ = io.WriteString(w, "hello")
			if got := <-first; got != fmt.Sprint("hello ", length) { // arrived before the rest was there
				t.Errorf("got %q", got)
			}
			_, _ = io.WriteString(w, "world")
			_ = w.Close()
		}()
		resp, err := c.Do(t.Context(), Request{Method: "OPTIONS", Target: "/", Body: r, Length: length})
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "world" {
			t.Errorf("got %q, %v", body, err)
		}
		_ = resp.Body.Close()
	}
}

func TestConnectionsOfAbandonedBodies(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 4 << 10
		if r.URL.Path == "/large" {
			n = 1 << 20
		}
		w.Header().Set("Content-Length", fmt.Sprint(n))
		_, _ = w.Write(make([]byte, n))
	}))
	defer s.Close()
	for target, want := range map[string]int32{"/small": 1, "/large": 5} {
		var conns atomic.Int32
		c := newClient(t, s.URL)
		count(c, &conns)
		for range 5 {
			resp, err := c.Do(t.Context(), Request{Method: "GET", Target: target})
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := resp.Body.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) && target == "/large" {
				t.Errorf("%s: read after close: %v", target, err)
			}
			_ = resp.Body.Close()
		}
		if got := conns.Load(); got != want {
			t.Errorf("%s: %d connections, want %d", target, got, want)
		}
	}
}

func TestAbandonedBodyThatHangsIsLeftSoon(t *testing.T) {
	url := rawServer(t, func(_ string, c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
	})
	resp, err := newClient(t, url).Do(t.Context(), Request{Method: "GET", Target: "/"})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_ = resp.Body.Close()
	if took := time.Since(start); took > 10*time.Second { // of 30 s that its reads have
		t.Errorf("took %s", took)
	}
}

func TestCloseInterruptsARead(t *testing.T) {
	url := rawServer(t, func(_ string, c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
	})
	resp, err := newClient(t, url).Do(t.Context(), Request{Method: "GET", Target: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		_, err := resp.Body.Read(make([]byte, 1))
		result <- err
	}()
	_ = resp.Body.Close()
	if err := <-result; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestKeptConnectionsAreBounded(t *testing.T) {
	const viewers = 2 * keptConnections
	var together sync.WaitGroup
	together.Add(viewers)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		together.Done()
		together.Wait()
	}))
	var open atomic.Int32
	closed := make(chan struct{}, viewers)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
			closed <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	c := newClient(t, s.URL)
	var wg sync.WaitGroup
	for range viewers {
		wg.Go(func() { _, _, _ = get(t, c, "/") })
	}
	wg.Wait()
	for range viewers - keptConnections {
		<-closed
	}
	if n := open.Load(); n != keptConnections {
		t.Errorf("%d connections are kept, want %d", n, keptConnections)
	}
	c.Close()
	for range keptConnections {
		<-closed
	}
}

// Case 25: an origin that accepts and never answers.
func TestFiveThousandHangingRequestsTakeLittleMemory(t *testing.T) {
	const n = 5000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 2*n+500 {
		t.Skipf("the limit of open files is %d, this needs %d", limit.Cur, 2*n+500)
	}
	var asked sync.WaitGroup
	asked.Add(n)
	url := rawServer(t, func(string, net.Conn) { asked.Done() })
	place := DefaultPlace()
	place.Name, place.URLs = "tokyo", []string{url}
	c, err := NewPlaces(PlacesOptions{Site: "shop", Config: testConfig(), Retry: DefaultRetryConfig(), Places: []PlaceConfig{place}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	before := memory()
	var wg sync.WaitGroup
	var bad atomic.Int32
	for range n {
		wg.Go(func() {
			if _, err := c.Do(ctx, Request{Method: "GET", Target: "/a.jpg"}); KindOf(err) != KindCancelled {
				bad.Add(1)
			}
		})
	}
	asked.Wait()
	each := (memory() - before) / n
	if under := c.Status().Places[0].UnderWay; under != n {
		t.Errorf("%d are said to be under way", under)
	}
	cancel()
	wg.Wait()
	if bad.Load() != 0 {
		t.Errorf("%d requests did not end as cancelled", bad.Load())
	}
	t.Logf("%d bytes for each hanging request, the test's server included", each)
	if each > 128<<10 {
		t.Errorf("each takes %d bytes", each)
	}
}

// memory is what the process holds in heap and stacks.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
