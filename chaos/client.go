package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// answerLimit is how long an answer may take before it counts as none: all
// timeouts of the edge together and as much again, on a busy machine.
const answerLimit = 90 * time.Second

// maxBody bounds what is read of an answer, over the largest original.
const maxBody = 64 << 20

// request is what a client asks the edge for.
type request struct {
	method string
	// path has no query; target has.
	path, target string
	accept       string
	// takes are the media types among the lighter ones that accept names.
	takes []string
	// tags are the entity tags that the client asks with, part the Range and
	// ifRange the tag that goes with it.
	tags    []string
	part    string
	ifRange string
	// slow is how long the client pauses after each piece of the body.
	slow time.Duration
	// direct is whether it goes to karui itself, as one of the edge.
	direct bool
	// missing is whether there is no such file, private whether the answer is one visitor's.
	missing, private bool
}

// header is what the request says besides its target.
func (q request) header() http.Header {
	h := http.Header{"User-Agent": {"karui-chaos"}}
	if q.direct {
		h.Set("X-Karui-Key", secret)
		h.Set("X-Routing", siteID)
	}
	if q.accept != "" {
		h.Set("Accept", q.accept)
	}
	if len(q.tags) > 0 {
		h.Set("If-None-Match", strings.Join(q.tags, ", "))
	}
	if q.part != "" {
		h.Set("Range", q.part)
	}
	if q.ifRange != "" {
		h.Set("If-Range", q.ifRange)
	}
	return h
}

// answer is what came back.
type answer struct {
	request request
	began   time.Time
	ended   time.Time
	status  int
	header  http.Header
	body    []byte
	// err says that it was not whole, or that there was none (then status is 0).
	err error
	// own is whether it is out of the client's own cache, where nobody can purge it.
	own bool
}

// client is one connection pool to the edge.
type client struct {
	base string
	http *http.Transport
}

func newClient(base string) *client {
	return &client{base: base, http: &http.Transport{
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, MaxIdleConnsPerHost: 4,
		// The bytes have to arrive as they were sent.
		DisableCompression: true,
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// do asks, and reads the answer to its end.
func (c *client) do(ctx context.Context, q request) *answer {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	a := &answer{request: q, began: time.Now(), header: http.Header{}}
	defer func() { a.ended = time.Now() }()
	r, err := http.NewRequestWithContext(ctx, q.method, c.base+q.target, nil)
	if err != nil {
		a.err = err
		return a
	}
	r.Header = q.header()
	response, err := c.http.RoundTrip(r)
	if err != nil {
		a.err = err
		return a
	}
	defer func() { _ = response.Body.Close() }()
	a.status, a.header = response.StatusCode, response.Header
	if response.ContentLength >= 0 {
		a.header.Set("Content-Length", response.Header.Get("Content-Length"))
	}
	var body io.Reader = io.LimitReader(response.Body, maxBody)
	if q.slow > 0 {
		body = &slowReader{ctx, body, q.slow}
	}
	a.body, a.err = io.ReadAll(body)
	return a
}

// slowReader pauses before each piece that it reads, as on a thin line.
type slowReader struct {
	ctx context.Context
	r   io.Reader
	d   time.Duration
}

// piece is what a slow client takes at once, in bytes.
const piece = 32 << 10

func (s *slowReader) Read(p []byte) (int, error) {
	if !pause(s.ctx, s.d) {
		return 0, s.ctx.Err()
	}
	return s.r.Read(p[:min(len(p), piece)])
}

// leaves asks and goes away before the answer is whole.
func (c *client) leaves(ctx context.Context, q request, after time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	_ = c.do(ctx, q)
}
