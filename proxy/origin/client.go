package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// What a client keeps and takes at most.
const (
	keptConnections = 64               // idle ones, per place
	keptFor         = 90 * time.Second // idle
	renewAfter      = 5 * time.Minute  // busy connections then make way for new ones, which follow the name
	headerBytes     = 64 << 10         // of an answer, 1xx answers included
	streamWindow    = 512 << 10        // unread bytes of one HTTP/2 body, so that a slow reader holds no more memory
)

// Options are what a Client is made from.
type Options struct {
	Config Config
	Place  PlaceConfig
	// Strip names headers that are never sent: the routing header and the edge's key.
	Strip []string
	// Now gives Head.Start; nil means time.Now. Limits are kept by timers.
	Now func() time.Time
	// AWS is for s3:// urls; nil means the environment's.
	AWS *AWS
	// Dial makes connections to the configured addresses; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client fetches from one address of a place, the first of its urls. It is safe
// for use by many goroutines.
type Client struct {
	name   string
	conf   Config
	point  endpoint
	bucket *bucket // of an s3:// url, else nil
	fixed  http.Header
	strip  []string
	now    func() time.Time
	dial   *dialer

	mu    sync.Mutex
	tr    *http.Transport
	since time.Time
}

// New checks the place and reads the certificate authorities; it dials nobody.
func New(o Options) (*Client, error) {
	name := o.Place.Name
	if len(o.Place.URLs) == 0 {
		return nil, fmt.Errorf("origin %q has no urls: name at least one", name)
	}
	c := &Client{name: name, conf: o.Config, strip: o.Strip, now: o.Now, fixed: make(http.Header)}
	if c.now == nil {
		c.now = time.Now
	}
	for i, raw := range o.Place.URLs {
		if err := c.address(i, raw, o); err != nil {
			return nil, fmt.Errorf("origin %q: urls[%d] %w", name, i, err)
		}
	}
	for i, h := range o.Place.Headers {
		if !httpguts.ValidHeaderFieldName(h.Name) || !httpguts.ValidHeaderFieldValue(h.Value) {
			return nil, fmt.Errorf("origin %q: headers[%d] %q is no valid header", name, i, h.Name)
		}
		if key := http.CanonicalHeaderKey(h.Name); slices.Contains(hopByHop, key) || key == "Host" || key == "Content-Length" {
			return nil, fmt.Errorf("origin %q: headers[%d] %s cannot be fixed; the Host header is set by `host`", name, i, key)
		}
		c.fixed.Add(h.Name, h.Value)
	}
	conf, err := trust(o.Config.CAFile, c.point.serverName())
	if err != nil {
		return nil, fmt.Errorf("origin %q: %w", name, err)
	}
	// The probes of TCP find a peer that vanished while its connection was kept.
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	c.dial = &dialer{limit: o.Config.Connect, tls: conf, dial: dial}
	c.tr, c.since = c.transport(), time.Now()
	return c, nil
}

// address reads one of the urls, and takes the first for itself.
func (c *Client) address(i int, raw string, o Options) error {
	if !strings.HasPrefix(raw, "s3://") {
		point, err := parseEndpoint(raw, o.Place.Host)
		if i == 0 {
			c.point = point
		}
		return err
	}
	b, err := newBucket(raw, o.Place, o.AWS)
	if err == nil && i == 0 {
		c.bucket, c.point = b, b.point
	}
	return err
}

func (c *Client) transport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		// Proxy stays nil: the environment has no say in where originals come from.
		DialContext:            c.dial.plain,
		DialTLSContext:         c.dial.secure,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    keptConnections,
		IdleConnTimeout:        keptFor,
		MaxResponseHeaderBytes: headerBytes,
		Protocols:              &protocols,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamWindow,
			// A connection that died silently would else take all its requests with it.
			SendPingTimeout: 5 * time.Second,
			PingTimeout:     2 * time.Second,
		},
	}
}

// current gives the transport of now. A connection that is never idle would stay
// with its address for ever, so a new transport takes over from time to time and
// the old one's connections end with their requests.
func (c *Client) current() *http.Transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.since) >= renewAfter {
		c.tr.CloseIdleConnections()
		c.tr, c.since = c.transport(), time.Now()
	}
	return c.tr
}

// Request is what to ask for.
type Request struct {
	Method string
	// Target is path and query as they are to reach the origin, byte for byte: it
	// begins with a slash (or is "*" for OPTIONS) and holds no spaces or control
	// bytes. The base path of the place's URL is put before it.
	Target string
	// Header is sent except for hop-by-hop headers, Options.Strip, Host and
	// Content-Length; the place's fixed headers replace those of the same name. It
	// is not changed. A shared fetch has Accept-Encoding: identity here.
	Header http.Header
	// Body is nil for none, else it is streamed, and closed if it is an io.Closer.
	Body io.Reader
	// Length is Body's length in bytes, or -1.
	Length int64
}

// Do asks the origin once and returns as soon as the head of the answer is there.
// It is asked a second time only when a kept connection is lost before an answer,
// as one does that the origin closed in the same moment.
// Any status is an answer; an error is always an *Error.
//
// origin.deadline covers Do and the first read of the body, so that what a viewer
// waits for as a whole stays within the edge's own limit; origin.idle covers each
// later read. origin.total counts the time spent in Do and in reads: a reader
// that takes its time is not the origin's fault. When ctx ends, Do and reads of
// the body end with KindCancelled.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	return c.do(ctx, r, allowance{first: c.conf.Deadline, late: errDeadline, total: c.conf.Total, replays: 1})
}

// do is Do within other limits of time.
func (c *Client) do(ctx context.Context, r Request, a allowance) (*Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	lim := newLimits(c.conf.Idle, a, cancel)
	start, since := c.now(), time.Now()
	req, err := c.request(ctx, r)
	if err != nil {
		closeBody(r.Body)
		lim.timer.Stop()
		failure := c.unsent(ctx, err)
		cancel(nil)
		return nil, failure
	}
	req = req.WithContext(httptrace.WithClientTrace(ctx, newReplays(a.replays, cancel)))
	resp, err := c.current().RoundTrip(req)
	if err != nil {
		lim.timer.Stop()
		failure := c.failure(ctx, err)
		cancel(nil)
		return nil, failure
	}
	var failure *Error
	if c.bucket != nil {
		failure = c.bucket.judge(resp)
	}
	lim.spent(since, false)
	var answer *Response
	if failure == nil {
		if answer, err = c.answer(resp, start); err != nil {
			failure = &Error{Kind: KindProtocol, Detail: err.Error(), cause: err}
		}
	}
	if failure != nil {
		failure.Place, failure.Tries = c.name, 1
		cancel(nil)
		_ = resp.Body.Close() // the connection is of no further use
		return nil, failure
	}
	left := answer.Length
	if resp.Body == http.NoBody || r.Method == http.MethodHead || resp.StatusCode == http.StatusNotModified {
		left = 0
	}
	answer.Body = &body{client: c, ctx: ctx, cancel: cancel, limits: lim, inner: resp.Body, left: left, final: answer.Framing == UntilClose}
	return answer, nil
}

// unsent tells why a request was not sent. Only signing waits for anybody.
func (c *Client) unsent(ctx context.Context, err error) *Error {
	if _, signing := errors.AsType[*credentialsError](err); signing {
		return c.failure(ctx, err)
	}
	return &Error{Kind: KindRequest, Place: c.name, Detail: err.Error(), cause: err}
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	if c.bucket != nil {
		return c.bucket.request(ctx, r, c.fixed)
	}
	if !httpguts.ValidHeaderFieldName(r.Method) || r.Method == http.MethodConnect {
		return nil, errors.New("the method cannot be sent")
	}
	u, err := c.point.url(r.Method, r.Target)
	if err != nil {
		return nil, err
	}
	h := c.outgoing(r.Header)
	h.Del("Host")
	h.Del("Content-Length")
	h.Del("Expect")
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			return nil, errors.New("a header cannot be sent")
		}
	}
	req := (&http.Request{Method: r.Method, URL: u, Host: c.point.host, Header: h}).WithContext(ctx)
	if r.Body == nil || r.Length == 0 {
		closeBody(r.Body)
		return req, nil
	}
	req.ContentLength = max(r.Length, -1)
	if rc, ok := r.Body.(io.ReadCloser); ok {
		req.Body = rc
	} else {
		req.Body = io.NopCloser(r.Body)
	}
	return req, nil
}

func closeBody(r io.Reader) {
	if c, ok := r.(io.Closer); ok {
		_ = c.Close() // a request's body has nothing to say once it is not sent
	}
}

// answer checks the head and takes the connection's own headers away.
func (c *Client) answer(resp *http.Response, start time.Time) (*Response, error) {
	if resp.StatusCode < 200 || resp.StatusCode > 599 {
		return nil, fmt.Errorf("status %d is no answer", resp.StatusCode)
	}
	// net/http checks this for HTTP/1 alone.
	if lengths := resp.Header["Content-Length"]; len(lengths) > 1 && slices.ContainsFunc(lengths, func(v string) bool {
		return strings.TrimSpace(v) != strings.TrimSpace(lengths[0])
	}) {
		return nil, errors.New("conflicting Content-Length headers")
	}
	framing := UntilClose
	switch {
	case resp.ContentLength >= 0, resp.Body == http.NoBody:
		framing = Length
	case len(resp.TransferEncoding) > 0, resp.ProtoMajor >= 2:
		framing = Chunked
	}
	endToEnd(resp.Header)
	return &Response{Head: Head{
		Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength, Framing: framing, Start: start, Place: c.name, Tries: 1,
	}}, nil
}

// Close closes the connections that are kept. Requests under way finish, and
// their connections are closed after them.
func (c *Client) Close() { c.current().CloseIdleConnections() }
