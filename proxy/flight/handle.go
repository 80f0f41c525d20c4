package flight

import (
	"context"
	"io"
	"net/http"

	"karui/proxy/origin"
)

// writeMost is the most that WriteTo hands to one Write, in bytes: the steps in
// which a slow viewer is seen to move. Measured over loopback with 100 viewers,
// 256 KiB took two thirds of the time of 64 KiB, and 1 MiB no less.
const writeMost = 256 << 10

// Handle is one viewer of a flight. Close it, always. It is for one goroutine at
// a time. Read and WriteTo end when the context it was made with ends.
type Handle struct {
	ctx    context.Context // of the viewer: io.Reader has no place for it
	flight *Flight
	leader bool
	reader *reader // set before flight.ready is closed
	left   func()  // counts the viewer out
	closed bool
}

// Leader says whether this viewer's request is the one that is sent.
func (h *Handle) Leader() bool { return h.leader }

// Flight gives what the viewers share.
func (h *Handle) Flight() *Flight { return h.flight }

// State gives the leader's Request.State.
func (h *Handle) State() any { return h.flight.state }

// Head waits for the head of the answer. It fails with Fetch's error (an
// *origin.Error, usually), with ErrNotShared, with *PanicError, or with the reason
// why ctx or the viewer's own context ended.
func (h *Handle) Head(ctx context.Context) (*origin.Head, error) {
	f := h.flight
	if h.closed {
		return nil, ErrClosed
	}
	select {
	case <-f.ready:
	default:
		select {
		case <-f.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-h.ctx.Done():
			return nil, context.Cause(h.ctx)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.outcome == failed:
		return nil, f.err
	case f.outcome == alone && !h.leader:
		return nil, ErrNotShared
	}
	return f.head, nil
}

// Shared says whether the answer is everybody's; false before Head has returned one.
func (h *Handle) Shared() bool {
	h.flight.mu.Lock()
	defer h.flight.mu.Unlock()
	return h.flight.outcome == shared
}

// Prefix is Flight.Prefix for this viewer: the first bytes of the body, before
// anything was read. It works for an answer that is this viewer's alone, too;
// there, a ctx that ends while it waits ends the fetch.
func (h *Handle) Prefix(ctx context.Context, n int) ([]byte, error) {
	if _, err := h.Head(ctx); err != nil {
		return nil, err
	}
	if h.reader == nil {
		return h.flight.solo.ahead(ctx, n)
	}
	return h.flight.spool.prefix(ctx, n)
}

// Read implements io.Reader, from byte 0. It returns io.EOF only after the last
// byte of a body that is whole as far as its framing can tell.
func (h *Handle) Read(p []byte) (int, error) {
	if _, err := h.Head(h.ctx); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if h.reader == nil {
		return h.soloRead(p)
	}
	s := h.flight.spool
	for {
		data, wait, err := s.next(h.reader, func() []byte { return p }, len(p))
		if err != nil {
			return 0, err
		}
		if wait != nil {
			if err := h.wait(wait); err != nil {
				return 0, err
			}
			continue
		}
		n := copy(p, data) // onto itself if it came from the file
		s.advance(h.reader, n)
		return n, nil
	}
}

func (h *Handle) soloRead(p []byte) (int, error) {
	n, err := h.flight.solo.read(p)
	switch {
	case err == io.EOF: //nolint:errorlint // only the bare io.EOF is the regular end
		h.flight.land(nil)
	case err != nil:
		h.flight.land(err)
	}
	return n, err
}

func (h *Handle) wait(more <-chan struct{}) error {
	select {
	case <-more:
		return nil
	case <-h.ctx.Done():
		return context.Cause(h.ctx)
	}
}

// WriteTo implements io.WriterTo: it writes the rest of the body to w, without
// copying what lies in memory. Before it waits for the origin it flushes w if w is
// an http.ResponseWriter or has a method Flush() error, so that what has arrived
// reaches the viewer.
func (h *Handle) WriteTo(w io.Writer) (int64, error) {
	if _, err := h.Head(h.ctx); err != nil {
		return 0, err
	}
	flush := flusher(w)
	if h.reader == nil {
		return h.soloWrite(w, flush)
	}
	s := h.flight.spool
	var total int64
	var buf []byte
	lazy := func() []byte {
		if buf == nil {
			buf = make([]byte, fileBuffer)
		}
		return buf
	}
	unflushed := false
	for {
		data, wait, err := s.next(h.reader, lazy, writeMost)
		switch {
		case err == io.EOF: //nolint:errorlint // only the bare io.EOF is the regular end
			return total, nil
		case err != nil:
			return total, err
		case wait != nil:
			if unflushed {
				flush()
				unflushed = false
			}
			if err := h.wait(wait); err != nil {
				return total, err
			}
			continue
		}
		n, err := w.Write(data)
		total += int64(n)
		s.advance(h.reader, n)
		if err != nil {
			return total, err
		}
		if n < len(data) {
			return total, io.ErrShortWrite
		}
		unflushed = true
	}
}

func (h *Handle) soloWrite(w io.Writer, flush func()) (int64, error) {
	var total int64
	buf := make([]byte, fileBuffer)
	for {
		n, err := h.soloRead(buf)
		if n > 0 {
			m, writeErr := w.Write(buf[:n])
			total += int64(m)
			if writeErr != nil {
				return total, writeErr
			}
			// Whether the next read will wait cannot be told.
			flush()
		}
		switch {
		case err == io.EOF: //nolint:errorlint // only the bare io.EOF is the regular end
			return total, nil
		case err != nil:
			return total, err
		}
	}
}

// flusher gives how to push out what w buffers. An error shows at the next write.
func flusher(w io.Writer) func() {
	if rw, ok := w.(http.ResponseWriter); ok {
		c := http.NewResponseController(rw)
		return func() { _ = c.Flush() }
	}
	if f, ok := w.(interface{ Flush() error }); ok {
		return func() { _ = f.Flush() }
	}
	return func() {}
}

// Close takes the viewer out. A shared fetch goes on; one that is this viewer's
// alone ends. It returns nil.
func (h *Handle) Close() error {
	if h.closed {
		return nil
	}
	h.closed = true
	if h.left != nil {
		h.left()
	}
	f := h.flight
	f.mu.Lock()
	f.viewers--
	delete(f.waiting, h)
	if f.leader == h {
		f.leader = nil
	}
	var own *solo
	if h.leader {
		own = f.solo
	}
	f.mu.Unlock()
	switch {
	case h.reader != nil:
		f.spool.detach(h.reader)
	case own != nil:
		if own.stop != nil {
			own.stop()
		}
		own.shut()
		f.land(ErrClosed)
	case f.private:
		f.fetched(context.Canceled)
	}
	return nil
}
