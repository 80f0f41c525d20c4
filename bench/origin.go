package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// origin is the site's own server. Paths are /CLASS/PHOTO/NUMBER.jpg for photographs, each number another file, and
// whatever was put.
type origin struct {
	url   string
	album album
	next  atomic.Int64
	mu    sync.Mutex
	fixed map[string]http.HandlerFunc
	asked atomic.Int64
	// delay is how long photographs are held back before the first byte.
	delay  atomic.Int64
	server *http.Server
	done   chan struct{}
}

func startOrigin(a album) (*origin, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start origin: %w", err)
	}
	o := &origin{
		url: "http://" + l.Addr().String(), album: a, fixed: map[string]http.HandlerFunc{}, done: make(chan struct{}),
	}
	o.server = &http.Server{Handler: o, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(o.done)
		_ = o.server.Serve(l) // ends by close, with nothing to say
	}()
	return o, nil
}

func (o *origin) close() {
	_ = o.server.Close() // whoever still asks gets nothing
	<-o.done
}

// fresh gives the path of a photograph that nobody asked for before.
func (o *origin) fresh(class string) string {
	n := o.next.Add(1)
	return fmt.Sprintf("/%s/%d/%d.jpg", class, n%int64(len(o.album[class])), n)
}

// put answers a path by a handler.
func (o *origin) put(path string, h http.HandlerFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fixed[path] = h
}

func (o *origin) handler(path string) http.HandlerFunc {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fixed[path]
}

// ServeHTTP implements http.Handler.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.asked.Add(1)
	if h := o.handler(r.URL.Path); h != nil {
		h(w, r)
		return
	}
	body, ok := o.photo(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if d := time.Duration(o.delay.Load()); d > 0 {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
			return
		}
	}
	sendImage(w, "image/jpeg", body)
}

func sendImage(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "public, max-age=86400")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // whoever left notices
}

func (o *origin) photo(path string) ([]byte, bool) {
	part := strings.Split(strings.TrimSuffix(path, ".jpg"), "/")
	if len(part) != 4 {
		return nil, false
	}
	i, err := strconv.Atoi(part[2])
	n, err2 := strconv.ParseInt(part[3], 10, 64)
	if photos := o.album[part[1]]; err == nil && err2 == nil && i >= 0 && i < len(photos) {
		return numbered(photos[i].body, n), true
	}
	return nil, false
}

// newClient makes a client with a pool of connections of its own.
func newClient(connections int) *http.Client {
	return &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{
			MaxIdleConns: connections, MaxIdleConnsPerHost: connections, DisableCompression: true,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		},
	}
}

// takesWebP and takesJPEG are what two kinds of viewers accept.
const (
	takesWebP = "image/webp,*/*;q=0.8"
	takesJPEG = "image/jpeg,*/*;q=0.8"
)

func request(ctx context.Context, url, accept string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Accept", accept)
	return r, nil
}
