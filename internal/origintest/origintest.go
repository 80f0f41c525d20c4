// Package origintest is an origin for tests that can misbehave in every way a
// site's own server is known to: it lies about lengths and types, cuts bodies
// off, hangs, dribbles and refuses.
//
// It speaks HTTP/1 on bare TCP, so that what arrives is recorded to the byte and
// what leaves is exactly what a test asked for; nothing is corrected on the way.
// Each origin listens on a loopback address of its own, so it can go away and
// come back under the same address while other tests run. It keeps every
// request in memory and is for tests only.
package origintest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxHead bounds the head of one request, in bytes.
const maxHead = 1 << 20

// Request is one request as it arrived.
type Request struct {
	// Line is the request line without its line end, Head the whole head with it.
	Line string
	Head []byte
	// Method and Target are parts of Line; Target is the raw path and query.
	Method, Target string
	Header         http.Header
	Body           []byte
	Time           time.Time
}

// Path is the raw target up to the query.
func (r Request) Path() string {
	path, _, _ := strings.Cut(r.Target, "?")
	return path
}

// Origin is a running server. Its methods may be called at any time from any goroutine.
type Origin struct {
	tb   testing.TB
	addr string
	tls  *tls.Config
	ca   []byte

	done chan struct{}
	wg   sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	dialled  int
	answers  map[string]func(Request) Answer
	fallback func(Request) Answer
	requests []Request
	arrived  chan struct{} // closed and replaced with every request
}

// New starts an origin that answers 404 until it is told better. It ends with the test.
func New(tb testing.TB) *Origin {
	tb.Helper()
	return start(tb, nil, nil)
}

func start(tb testing.TB, config *tls.Config, ca []byte) *Origin {
	tb.Helper()
	o := &Origin{
		tb:       tb,
		tls:      config,
		ca:       ca,
		done:     make(chan struct{}),
		conns:    map[net.Conn]bool{},
		answers:  map[string]func(Request) Answer{},
		fallback: func(Request) Answer { return Text(404, "text/plain", "no such file\n") },
		arrived:  make(chan struct{}),
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort(LoopbackIP(), "0"))
	if err != nil {
		tb.Fatalf("origintest: %v", err)
	}
	o.addr = listener.Addr().String()
	o.serve(listener)
	tb.Cleanup(o.close)
	return o
}

// LoopbackIP gives an address out of 127.0.0.0/8 that nothing else is likely to
// use, so that a port on it can be left and taken again.
func LoopbackIP() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// ClosedAddr gives an address on which nobody listens: a connection is refused.
func ClosedAddr() string { return net.JoinHostPort(LoopbackIP(), "9") }

// Addr is the host and port, URL the address to configure.
func (o *Origin) Addr() string { return o.addr }

// URL is the address to configure, without a slash at its end.
func (o *Origin) URL() string {
	if o.tls != nil {
		return "https://" + o.addr
	}
	return "http://" + o.addr
}

// Set gives the answer for a raw path (without query).
func (o *Origin) Set(path string, answer Answer) {
	o.SetFunc(path, func(Request) Answer { return answer })
}

// SetFunc computes the answer for a raw path (without query) from the request.
func (o *Origin) SetFunc(path string, answer func(Request) Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers[path] = answer
}

// SetDefault computes the answer for every path that has none of its own.
func (o *Origin) SetDefault(answer func(Request) Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fallback = answer
}

// Requests gives what arrived for a raw path, oldest first; "" means every path.
func (o *Origin) Requests(path string) []Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []Request
	for _, r := range o.requests {
		if path == "" || r.Path() == path {
			found = append(found, r)
		}
	}
	return found
}

// Count is the number of requests that arrived for a raw path; "" means every path.
func (o *Origin) Count(path string) int { return len(o.Requests(path)) }

// Connections is the number of connections accepted so far.
func (o *Origin) Connections() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dialled
}

// Await waits until at least n requests arrived for a raw path and reports
// whether they did within limit.
func (o *Origin) Await(path string, n int, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		o.mu.Lock()
		arrived := o.arrived
		o.mu.Unlock()
		if o.Count(path) >= n {
			return true
		}
		select {
		case <-arrived:
		case <-timer.C:
			return o.Count(path) >= n
		}
	}
}

// Refuse stops listening and drops every connection: new ones are refused.
func (o *Origin) Refuse() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listener != nil {
		_ = o.listener.Close()
		o.listener = nil
	}
	for conn := range o.conns {
		reset(conn)
	}
}

// Resume listens again on the same address.
func (o *Origin) Resume() {
	o.tb.Helper()
	listener, err := net.Listen("tcp4", o.addr)
	if err != nil {
		o.tb.Fatalf("origintest: resume: %v", err)
	}
	o.serve(listener)
}

func (o *Origin) serve(listener net.Listener) {
	o.mu.Lock()
	o.listener = listener
	o.mu.Unlock()
	o.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			o.mu.Lock()
			o.conns[conn] = true
			o.dialled++
			stale := o.listener != listener
			o.mu.Unlock()
			if stale {
				reset(conn)
			}
			o.wg.Go(func() { o.talk(conn) })
		}
	})
}

func (o *Origin) close() {
	close(o.done)
	o.Refuse()
	o.wg.Wait()
}

// talk answers the requests of one connection until an answer ends it.
func (o *Origin) talk(raw net.Conn) {
	conn := raw
	defer func() {
		_ = conn.Close()
		o.mu.Lock()
		delete(o.conns, raw)
		o.mu.Unlock()
	}()
	if o.tls != nil {
		conn = tls.Server(raw, o.tls)
	}
	r := bufio.NewReader(conn)
	for {
		request, err := readRequest(r)
		if err != nil {
			return
		}
		o.mu.Lock()
		answer, found := o.answers[request.Path()]
		if !found {
			answer = o.fallback
		}
		o.requests = append(o.requests, request)
		close(o.arrived)
		o.arrived = make(chan struct{})
		o.mu.Unlock()

		if !o.send(conn, raw, request, answer(request)) {
			return
		}
	}
}

// readRequest reads one request to its end, keeping the head as it came.
func readRequest(r *bufio.Reader) (Request, error) {
	var head bytes.Buffer
	for {
		line, err := r.ReadSlice('\n')
		head.Write(line)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return Request{}, err
		}
		if head.Len() > maxHead {
			return Request{}, errors.New("origintest: head too long")
		}
		if err == nil && len(bytes.TrimRight(line, "\r\n")) == 0 && head.Len() > 2 {
			break
		}
	}
	request := Request{Head: slices.Clone(head.Bytes()), Time: time.Now()}
	first, rest, _ := strings.Cut(head.String(), "\n")
	request.Line = strings.TrimRight(first, "\r")
	parts := strings.Split(request.Line, " ")
	if len(parts) != 3 {
		return Request{}, fmt.Errorf("origintest: request line %q", request.Line)
	}
	request.Method, request.Target = parts[0], parts[1]
	fields, err := textproto.NewReader(bufio.NewReader(strings.NewReader(rest))).ReadMIMEHeader()
	if err != nil {
		return Request{}, fmt.Errorf("origintest: read head: %w", err)
	}
	request.Header = http.Header(fields)
	switch {
	case request.Header.Get("Transfer-Encoding") != "":
		full, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(request.Head), r)))
		if err != nil {
			return Request{}, fmt.Errorf("origintest: read body: %w", err)
		}
		request.Body, err = io.ReadAll(full.Body)
		return request, err
	case request.Header.Get("Content-Length") != "":
		n, err := strconv.ParseInt(request.Header.Get("Content-Length"), 10, 64)
		if err != nil || n < 0 || n > maxHead {
			return Request{}, fmt.Errorf("origintest: length %q", request.Header.Get("Content-Length"))
		}
		request.Body = make([]byte, n)
		_, err = io.ReadFull(r, request.Body)
		return request, err
	}
	return request, nil
}

// reset makes the peer see a reset connection instead of an orderly end.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
