package origintest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Framing says how the end of a body is told.
type Framing int

const (
	// Length declares the length in Content-Length.
	Length Framing = iota
	// Chunked sends chunks of up to 16 KiB.
	Chunked
	// Close says nothing and ends the connection after the body, as HTTP/1.0 did.
	Close
)

// Field is one header field, sent as it is written.
type Field struct{ Name, Value string }

// Answer is what the origin sends for one request. The zero value is an empty 200.
type Answer struct {
	// Status is 200 where it is 0; Reason and Proto have their usual values where empty.
	Status int
	Reason string
	Proto  string
	// Header is sent in this order. The framing fields are added to it.
	Header []Field
	Body   []byte
	// Size repeats Body until so many bytes were sent, for bodies too large to hold; 0 means Body once.
	Size    int64
	Framing Framing
	// Declare is the Content-Length to claim instead of the true one; 0 means the truth.
	Declare int64
	// Cut ends the connection after so many bytes of the body; Reset does it by a reset instead of an orderly end.
	Cut   *int64
	Reset bool
	// Hold waits before the first byte, Stall after StallAt bytes of the body.
	Hold    *Gate
	Stall   *Gate
	StallAt int64
	// Pace sends one byte of the body at a time with so long a pause between two.
	Pace time.Duration
	// Validate answers 304 without a body where the request's If-None-Match names the ETag in
	// Header, or, without an ETag on either side, its If-Modified-Since equals Last-Modified.
	Validate bool
	// Raw is sent instead of everything above, and the connection ends.
	Raw []byte
}

// Gate holds answers back until it is opened.
type Gate struct {
	once sync.Once
	ch   chan struct{}
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{ch: make(chan struct{})} }

// Open lets everything through from now on; it may be called more than once.
func (g *Gate) Open() { g.once.Do(func() { close(g.ch) }) }

// Image is an answer with a body of that type.
func Image(contentType string, body []byte, fields ...Field) Answer {
	return Answer{Header: append([]Field{{"Content-Type", contentType}}, fields...), Body: body}
}

// Text is an answer with a status, a type and a short body.
func Text(status int, contentType, body string, fields ...Field) Answer {
	a := Image(contentType, []byte(body), fields...)
	a.Status = status
	return a
}

// With returns the answer with further header fields.
func (a Answer) With(name, value string) Answer {
	a.Header = append(append([]Field(nil), a.Header...), Field{name, value})
	return a
}

// CutAt returns the answer cut off after n bytes of its body.
func (a Answer) CutAt(n int64, reset bool) Answer {
	a.Cut, a.Reset = &n, reset
	return a
}

func (a Answer) get(name string) string {
	for _, f := range a.Header {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// unchanged reports whether the request already holds what the answer would bring.
func (a Answer) unchanged(request Request) bool {
	if !a.Validate {
		return false
	}
	tag := a.get("ETag")
	if wanted := request.Header.Get("If-None-Match"); wanted != "" && tag != "" {
		for one := range strings.SplitSeq(wanted, ",") {
			if strings.TrimPrefix(strings.TrimSpace(one), "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
		return false
	}
	since := request.Header.Get("If-Modified-Since")
	return since != "" && since == a.get("Last-Modified")
}

// head renders the status line and the fields.
func (a Answer) head(notModified bool) []byte {
	status, proto := a.Status, a.Proto
	if status == 0 {
		status = http.StatusOK
	}
	if notModified {
		status = http.StatusNotModified
	}
	if proto == "" {
		proto = "HTTP/1.1"
	}
	reason := a.Reason
	if reason == "" {
		reason = http.StatusText(status)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %d %s\r\n", proto, status, reason)
	for _, f := range a.Header {
		if notModified && strings.HasPrefix(strings.ToLower(f.Name), "content-") {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	switch {
	case notModified || status == http.StatusNoContent:
	case a.Framing == Length && a.Declare != 0:
		b.WriteString("Content-Length: " + strconv.FormatInt(a.Declare, 10) + "\r\n")
	case a.Framing == Length:
		b.WriteString("Content-Length: " + strconv.FormatInt(a.size(), 10) + "\r\n")
	case a.Framing == Chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case a.Framing == Close:
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

func (a Answer) size() int64 {
	if a.Size > 0 {
		return a.Size
	}
	return int64(len(a.Body))
}

// send writes the answer and reports whether the connection may carry another one.
func (o *Origin) send(conn, raw net.Conn, request Request, a Answer) bool {
	if !o.pass(a.Hold) {
		return false
	}
	if a.Raw != nil {
		_, _ = conn.Write(a.Raw)
		return false
	}
	w := bufio.NewWriterSize(conn, 64<<10)
	notModified := a.unchanged(request)
	_, _ = w.Write(a.head(notModified))
	bodyless := notModified || request.Method == http.MethodHead || a.Status == http.StatusNoContent
	if bodyless {
		return w.Flush() == nil && a.Framing != Close
	}
	out := io.Writer(w)
	var chunks *chunkWriter
	if a.Framing == Chunked {
		chunks = &chunkWriter{w: w}
		out = chunks
	}
	cut, err := o.body(out, w, a)
	if cut {
		_ = w.Flush()
		if a.Reset {
			reset(raw)
		}
		return false
	}
	if chunks != nil && err == nil {
		_, err = w.WriteString("0\r\n\r\n")
	}
	if flushed := w.Flush(); err == nil {
		err = flushed
	}
	lied := a.Declare != 0 && a.Declare != a.size()
	return err == nil && a.Framing != Close && !lied && !strings.EqualFold(a.get("Connection"), "close")
}

// body writes the body and reports whether it was cut off on purpose.
func (o *Origin) body(out io.Writer, w *bufio.Writer, a Answer) (cut bool, err error) {
	const step = 16 << 10
	total := a.size()
	for at := int64(0); ; {
		if a.Cut != nil && at >= *a.Cut {
			return true, nil
		}
		if a.Stall != nil && at == a.StallAt {
			if err := w.Flush(); err != nil {
				return false, err
			}
			if !o.pass(a.Stall) {
				return true, nil
			}
		}
		if at >= total {
			return false, nil
		}
		offset := at % int64(len(a.Body))
		n := min(int64(step), total-at, int64(len(a.Body))-offset)
		if a.Pace > 0 {
			n = 1
		}
		if a.Cut != nil {
			n = min(n, *a.Cut-at)
		}
		if a.Stall != nil && at < a.StallAt {
			n = min(n, a.StallAt-at)
		}
		if _, err := out.Write(a.Body[offset : offset+n]); err != nil {
			return false, err
		}
		at += n
		if a.Pace > 0 {
			if err := w.Flush(); err != nil {
				return false, err
			}
			if !o.pause(a.Pace) {
				return true, nil
			}
		}
	}
}

// pass waits for the gate and reports whether the origin still lives.
func (o *Origin) pass(gate *Gate) bool {
	if gate == nil {
		return true
	}
	select {
	case <-gate.ch:
		return true
	case <-o.done:
		return false
	}
}

func (o *Origin) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.done:
		return false
	}
}

type chunkWriter struct{ w *bufio.Writer }

func (c *chunkWriter) Write(p []byte) (int, error) {
	if _, err := fmt.Fprintf(c.w, "%x\r\n", len(p)); err != nil {
		return 0, err
	}
	if _, err := c.w.Write(p); err != nil {
		return 0, err
	}
	_, err := c.w.WriteString("\r\n")
	return len(p), err
}
