package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"karui/proxy/flight"
	"karui/proxy/origin"
)

// copyBuffers hold what is on its way from the origin to one viewer.
type copyBuffers struct{ pool sync.Pool }

// copyBufferSize is what io.Copy uses.
const copyBufferSize = 32 << 10

func (b *copyBuffers) get() *[]byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, copyBufferSize)
	return &buf
}

func (b *copyBuffers) put(buf *[]byte) { b.pool.Put(buf) }

// passThrough asks the origin for this viewer alone and streams what it says:
// every end-to-end header both ways, ranges and conditions included. Only what
// is meant for karui, and not for the viewer, becomes a 503. A body, which none of
// the methods served has a use for, is not sent.
func (x *exchange) passThrough() {
	request := origin.Request{
		Method: x.r.Method,
		Target: x.target.Path + x.target.Query,
		Header: x.r.Header,
	}
	response, err := x.p.ask(x.r.Context(), x.site, request)
	if err != nil {
		x.unreachable(err)
		return
	}
	defer response.Body.Close()
	x.cameFrom(&response.Head, nil)
	x.stream(response)
}

// stream answers with what the origin said to this viewer alone.
func (x *exchange) stream(response *origin.Response) {
	if overloaded(response.Status) {
		x.unavailable(becauseOrigin)
		return
	}
	buf := x.p.buffers.get()
	defer x.p.buffers.put(buf)
	var n int
	var err error
	if x.r.Method != http.MethodHead {
		// A body that ends before its first byte is the origin's failure, and the
		// edge can still be told so.
		n, err = readSome(response.Body, *buf)
		if err != nil && n == 0 && !ended(err) {
			x.unreachable(err)
			return
		}
	}
	size := response.Length
	if response.Status == http.StatusNotModified {
		size = -1
	}
	x.send(reply{
		status: response.Status,
		header: asIsFields(response.Header, false),
		did:    didBypass, arriving: true,
		size: size,
		body: writes(func(w io.Writer) (int64, error) {
			return copyLive(w, *buf, n, err, response.Body)
		}),
	})
}

// copyLive sends the first n bytes of buf, after which the body's reader gave
// err, and then the rest of the body as it comes: what the origin has said so far
// is on its way to the viewer whenever the origin pauses.
func copyLive(w io.Writer, buf []byte, n int, err error, body io.Reader) (int64, error) {
	var sent int64
	for {
		if n > 0 {
			wrote, werr := w.Write(buf[:n])
			sent += int64(wrote)
			if werr != nil {
				return sent, werr
			}
			if f, ok := w.(interface{ Flush() error }); ok && n < len(buf) && err == nil {
				_ = f.Flush() // an error shows at the next write
			}
		}
		if ended(err) {
			return sent, nil
		}
		if err != nil {
			return sent, err
		}
		n, err = readSome(body, buf)
	}
}

// readSome reads until there is something.
func readSome(r io.Reader, buf []byte) (n int, err error) {
	for n == 0 && err == nil {
		n, err = r.Read(buf)
	}
	return n, err
}

// ended tells whether a body's reader gave the end of a whole body. An
// unexpected end may wrap io.EOF.
func ended(err error) bool {
	return errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// unreachable answers for an origin that gave no whole answer.
func (x *exchange) unreachable(err error) {
	if x.r.Context().Err() != nil {
		// The viewer left; nobody reads what is said here.
		x.did = didAbort
		panic(http.ErrAbortHandler)
	}
	if x.tries == 0 {
		x.cameFrom(nil, err)
	}
	var panicked *flight.PanicError
	switch {
	case errors.As(err, &panicked):
		x.p.log.Error("panic in a fetch", "panic", panicked.Value, "stack", string(panicked.Stack))
		x.unavailable(becausePanic)
	case errors.Is(err, flight.ErrClosed), x.p.draining() && origin.KindOf(err) == origin.KindCancelled:
		x.unavailable(becauseDrain)
	default:
		x.p.complain("origin failed", "site", x.site.config.ID, "path", x.target.Path, "error", err)
		x.unavailable(becauseOrigin)
	}
}

// overloaded tells whether a status is the origin's word to karui and not to the
// viewer. A 304 or 1xx that nobody asked for is told apart elsewhere.
func overloaded(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// ask sends one request to the site's origin and counts how it ended.
func (p *Proxy) ask(ctx context.Context, s *site, r origin.Request) (*origin.Response, error) {
	response, err := s.origin.Do(ctx, r)
	p.metrics.fetched(s.config.ID, response, err)
	return response, err
}
