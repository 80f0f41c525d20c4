package acceptance

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What browsers send for an image, and what one sends that knows no lighter format.
const (
	takesWebP = "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
	takesAny  = "Accept: image/*,*/*;q=0.8"
)

// request is one request to be sent to the byte.
type request struct {
	method, target, host string
	fields               []string
	body                 string
	// raw is sent instead of all the above.
	raw string
	// loose leaves out the checks that every answer has to pass.
	loose bool
}

func (r request) bytes() []byte {
	if r.raw != "" {
		return []byte(r.raw)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.verb(), r.target, r.host)
	for _, field := range r.fields {
		b.WriteString(field + "\r\n")
	}
	if r.body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	b.WriteString("\r\n" + r.body)
	return b.Bytes()
}

func (r request) verb() string {
	if r.raw != "" {
		verb, _, _ := strings.Cut(r.raw, " ")
		return verb
	}
	if r.method == "" {
		return http.MethodGet
	}
	return r.method
}

func (r request) field(name string) string {
	for _, field := range r.fields {
		if n, value, _ := strings.Cut(field, ":"); strings.EqualFold(n, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// reply is one answer as it arrived.
type reply struct {
	request request
	status  int
	// head is the exact head, header the same parsed.
	head   string
	header http.Header
	length int64 // as declared, -1 if not
	// last says that the connection ends with this answer.
	last bool
	body []byte
	// err says that the answer was not whole: cut off, or none at all.
	err error
}

func (r *reply) karui() string { return r.header.Get("X-Karui") }

func (r *reply) String() string {
	if r.head == "" {
		return fmt.Sprintf("no answer (%v)", r.err)
	}
	return fmt.Sprintf("%s[%d bytes, %v]", strings.ReplaceAll(r.head, "\r\n", "\n"), len(r.body), r.err)
}

func (r *reply) webp() bool {
	return len(r.body) > 12 && string(r.body[:4]) == "RIFF" && string(r.body[8:12]) == "WEBP"
}

// maxAge is the max-age that the answer states, -1 if none.
func (r *reply) maxAge() int {
	for part := range strings.SplitSeq(r.header.Get("Cache-Control"), ",") {
		var seconds int
		if _, err := fmt.Sscanf(strings.TrimSpace(part), "max-age=%d", &seconds); err == nil {
			return seconds
		}
	}
	return -1
}

// connection is one connection of a viewer.
type connection struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

// dial opens a connection that ends with the test.
func (k *instance) dial() *connection {
	k.t.Helper()
	c, err := k.tryDial()
	if err != nil {
		k.t.Fatalf("connect: %v", err)
	}
	k.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (k *instance) tryDial() (*connection, error) {
	conn, err := net.DialTimeout("tcp4", k.addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, t: k.t, r: newReader(conn)}, nil
}

// do sends a request and reads its answer whole.
func (c *connection) do(q request) *reply {
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	if _, err := c.Write(q.bytes()); err != nil {
		return &reply{request: q, header: http.Header{}, err: fmt.Errorf("send: %w", err)}
	}
	a := c.readHead(q)
	c.readBody(a)
	return a
}

// readHead reads an answer up to its body.
func (c *connection) readHead(q request) *reply {
	a := &reply{request: q, header: http.Header{}, length: -1}
	for {
		line, err := c.r.ReadString('\n')
		a.head += line
		if err != nil {
			a.err = fmt.Errorf("read head: %w", err)
			return a
		}
		if line == "\r\n" {
			break
		}
	}
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(a.head)), &http.Request{Method: http.MethodHead})
	if err != nil {
		a.err = fmt.Errorf("parse head: %w", err)
		return a
	}
	a.status, a.header = response.StatusCode, response.Header
	a.length, a.last = response.ContentLength, response.Close
	return a
}

// readBody reads the body that belongs to a head.
func (c *connection) readBody(a *reply) {
	if a.err != nil || a.head == "" {
		return
	}
	// The head is parsed once more together with the body, so that the framing is net/http's judgement and not ours.
	joined := bufio.NewReader(io.MultiReader(strings.NewReader(a.head), c.r))
	response, err := http.ReadResponse(joined, &http.Request{Method: a.request.verb()})
	if err != nil {
		a.err = err
		return
	}
	if response.ContentLength > 0 && a.request.verb() != http.MethodHead {
		// Without read-ahead, so that the next answer on the connection stays where it is.
		a.body = make([]byte, response.ContentLength)
		n, err := io.ReadFull(c.r, a.body)
		a.body = a.body[:n]
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		a.err = err
		return
	}
	if a.status == http.StatusNotModified || a.status == http.StatusNoContent || a.request.verb() == http.MethodHead || response.ContentLength == 0 {
		return
	}
	a.body, a.err = io.ReadAll(response.Body)
	c.r = joined
}

// do sends one request on a connection of its own and checks what every answer has to keep.
func (k *instance) do(q request) *reply {
	k.t.Helper()
	a := k.try(q)
	if a.head == "" {
		k.t.Fatalf("%s %s: no answer: %v", q.verb(), q.target, a.err)
	}
	return a
}

// try is do for a request that may go without an answer.
func (k *instance) try(q request) *reply {
	k.t.Helper()
	if q.host == "" {
		q.host = "www.example.com"
	}
	c, err := k.tryDial()
	if err != nil {
		return &reply{request: q, header: http.Header{}, err: err}
	}
	defer func() { _ = c.Close() }()
	a := c.do(q)
	if a.head != "" && !q.loose {
		for _, problem := range breaches(q, a) {
			k.t.Errorf("%s %s: %s\n%v", q.verb(), q.target, problem, a)
		}
	}
	return a
}

// get asks for a target with these header fields.
func (k *instance) get(target string, fields ...string) *reply {
	k.t.Helper()
	return k.do(request{target: target, fields: fields})
}

// settle asks until the answer is the one that is kept.
func (k *instance) settle(target string, fields ...string) *reply {
	k.t.Helper()
	var last *reply
	if !became(settleLimit, func() bool {
		last = k.get(target, fields...)
		return last.karui() == "hit" || last.karui() == "original"
	}) {
		k.t.Fatalf("%s never settled: %v", target, last)
	}
	return last
}

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 32<<10) }
