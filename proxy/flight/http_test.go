package flight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"karui/proxy/origin"
)

// newClient fetches from url, with limits that a slow machine never meets.
func newClient(t testing.TB, url string) *origin.Client {
	t.Helper()
	c, err := origin.New(origin.Options{
		Config: origin.Config{Deadline: 30 * time.Second, Connect: 30 * time.Second, Idle: 30 * time.Second, Total: time.Minute},
		Place:  origin.PlaceConfig{URLs: []string{url}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// front is the least a proxy does with a flight: real viewers on real connections.
type front struct {
	group  *Group[string]
	client *origin.Client
	joined atomic.Int64
	alone  atomic.Int64
	task   func(context.Context, *Flight)
}

func (p *front) fetch(r *http.Request) Fetch {
	return func(ctx context.Context) (*origin.Response, error) {
		return p.client.Do(ctx, origin.Request{Method: http.MethodGet, Target: r.RequestURI, Header: http.Header{"Accept-Encoding": {"identity"}}})
	}
}

func (p *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := p.group.Join(r.Context(), r.RequestURI, Request{
		Fetch:     p.fetch(r),
		Shareable: func(h *origin.Head) bool { return h.Header.Get("Set-Cookie") == "" },
		Task:      p.task,
	})
	p.joined.Add(1)
	head, err := h.Head(r.Context())
	if errors.Is(err, ErrNotShared) {
		_ = h.Close()
		p.alone.Add(1)
		h = p.group.Alone(r.Context(), p.fetch(r))
		head, err = h.Head(r.Context())
	}
	defer func() { _ = h.Close() }()
	if err == nil {
		_, err = h.Prefix(r.Context(), 1)
	}
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, "503: %v", err) // for the test that did not expect it
		return
	}
	if head.Length >= 0 {
		w.Header().Set("Content-Length", fmt.Sprint(head.Length))
	}
	if c := head.Header.Get("Set-Cookie"); c != "" {
		w.Header().Set("Set-Cookie", c)
	}
	w.WriteHeader(head.Status)
	if _, err := h.WriteTo(w); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func newFront(t testing.TB, originURL string, o Options) (*front, string) {
	p := &front{client: newClient(t, originURL), group: newGroup(t, o)}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return p, s.URL
}

// viewer is a client with a connection of its own.
func viewer(t testing.TB) *http.Client {
	tr := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func fetchAll(c *http.Client, url string) (*http.Response, []byte, error) {
	resp, err := c.Get(url)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp, data, err
}

// Case 18: viewers at once on a cold image.
func TestThousandViewersOneRequestThousandWholeBodies(t *testing.T) {
	const viewers = 1000
	data := noise(200 << 10)
	var requests atomic.Int32
	go1 := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:1000])
		_ = http.NewResponseController(w).Flush()
		<-go1
		_, _ = w.Write(data[1000:])
	}))
	defer s.Close()
	p, url := newFront(t, s.URL, Options{})
	var tasks atomic.Int32
	p.task = func(ctx context.Context, f *Flight) {
		tasks.Add(1)
		if whole, err := f.Whole(ctx, 1<<20); err != nil || !bytes.Equal(whole, data) {
			t.Errorf("the task got %d bytes, %v", len(whole), err)
		}
		for p.joined.Load() < viewers {
			runtime.Gosched()
		}
	}
	c := viewer(t)
	var wg sync.WaitGroup
	var bad atomic.Int32
	for range viewers {
		wg.Go(func() {
			resp, got, err := fetchAll(c, url+"/a.jpg")
			if err != nil || resp.StatusCode != 200 || !bytes.Equal(got, data) {
				bad.Add(1)
				t.Logf("%d bytes, %v", len(got), err)
			}
		})
	}
	for p.joined.Load() < viewers/2 { // the others come while the rest arrives, or later
		runtime.Gosched()
	}
	close(go1)
	wg.Wait()
	if bad.Load() != 0 || requests.Load() != 1 || tasks.Load() != 1 {
		t.Errorf("%d bad answers, %d requests, %d tasks", bad.Load(), requests.Load(), tasks.Load())
	}
}

// The same on the wire: an origin that pauses after 1 KiB.
func TestPausedOriginHasReachedTheViewersSockets(t *testing.T) {
	data := noise(4 << 10)
	resume := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:1024])
		_ = http.NewResponseController(w).Flush()
		<-resume
		_, _ = w.Write(data[1024:])
	}))
	defer s.Close()
	_, url := newFront(t, s.URL, Options{})
	c := viewer(t)
	var bodies []io.ReadCloser
	for range 10 { // each one after the other, so nine are late
		resp, err := c.Get(url + "/a.jpg")
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 1024)
		if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, data[:1024]) {
			t.Fatal(err)
		}
		bodies = append(bodies, resp.Body)
	}
	close(resume)
	for _, b := range bodies {
		rest, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(rest, data[1024:]) {
			t.Errorf("%d bytes, %v", len(rest), err)
		}
		_ = b.Close()
	}
}

// Case 19: a viewer that leaves mid-way.
func TestViewersThatHangUpDoNotEndTheFetch(t *testing.T) {
	data := noise(4 << 10)
	resume := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(data[:1024]) // chunked
		_ = http.NewResponseController(w).Flush()
		<-resume
		_, _ = w.Write(data[1024:])
	}))
	defer s.Close()
	p, url := newFront(t, s.URL, Options{})
	got := make(chan []byte, 1)
	p.task = func(ctx context.Context, f *Flight) {
		whole, err := f.Whole(ctx, 1<<20)
		if err != nil {
			t.Error(err)
		}
		got <- whole
	}
	resp, err := viewer(t).Get(url + "/a.jpg")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	for p.group.Stats().Viewers > 0 {
		runtime.Gosched()
	}
	close(resume)
	if !bytes.Equal(<-got, data) {
		t.Error("the task did not get the whole body")
	}
}

func TestCookiesReachOnlyTheirViewer(t *testing.T) {
	var n atomic.Int32
	ready := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i := n.Add(1)
		<-ready
		w.Header().Set("Set-Cookie", fmt.Sprintf("id=%d", i))
		_, _ = fmt.Fprintf(w, "for %d", i)
	}))
	defer s.Close()
	p, url := newFront(t, s.URL, Options{})
	const viewers = 10
	seen := make(chan string, viewers)
	var wg sync.WaitGroup
	c := viewer(t)
	for range viewers {
		wg.Go(func() {
			resp, body, err := fetchAll(c, url+"/a.jpg")
			if err != nil || "id="+strings.TrimPrefix(string(body), "for ") != resp.Header.Get("Set-Cookie") {
				t.Errorf("got %q, %v", body, err)
			}
			seen <- string(body)
		})
	}
	for p.joined.Load() < viewers || n.Load() == 0 {
		runtime.Gosched()
	}
	if n.Load() != 1 {
		t.Errorf("%d requests before anything is known", n.Load())
	}
	close(ready)
	wg.Wait()
	close(seen)
	each := make(map[string]bool)
	for body := range seen {
		each[body] = true
	}
	if len(each) != viewers || p.alone.Load() != viewers-1 {
		t.Errorf("%d different answers, %d fetched for themselves", len(each), p.alone.Load())
	}
}

func TestCutOffOriginOnTheWire(t *testing.T) {
	for name, wire := range map[string]string{
		"before the first byte": "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n",
		"in a declared body":    "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + strings.Repeat("a", 1000),
		"in a chunked body":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" + strings.Repeat("a", 1000) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Read(make([]byte, 4096))
					_, _ = io.WriteString(c, wire)
					_ = c.Close()
				}
			}()
			defer func() { _ = l.Close(); <-done }()
			_, url := newFront(t, "http://"+l.Addr().String(), Options{})
			resp, got, err := fetchAll(viewer(t), url+"/a.jpg")
			if name == "before the first byte" {
				if err != nil || resp.StatusCode != 503 {
					t.Errorf("got %v, %v", resp, err)
				}
				return
			}
			if err == nil {
				t.Errorf("the viewer took %d bytes of 2000 for whole", len(got))
			}
		})
	}
}

// The origin's limits end a flight, and a viewer that reads nothing costs the
// others nothing: its connection is full, theirs are not.
func TestViewerThatReadsNothingOnTheWire(t *testing.T) {
	data := noise(16 << 20) // more than two sockets hold
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data)
	}))
	defer s.Close()
	_, url := newFront(t, s.URL, Options{})
	lazy, err := viewer(t).Get(url + "/a.jpg")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, got, err := fetchAll(viewer(t), url+"/a.jpg"); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	got, err := io.ReadAll(lazy.Body)
	_ = lazy.Body.Close()
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("the late reader got %d bytes, %v", len(got), err)
	}
}
