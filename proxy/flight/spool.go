package flight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// part is a run of bytes of the body. data grows within its capacity; what it
// holds never changes.
type part struct {
	at   int64
	data []byte
}

// spool is a growing body: one goroutine fills it, any number read it.
//
// Bytes [0,kept) lie in parts, or after a spill in file. Bytes [kept,size) lie in
// window, where a paced spool keeps only what some reader still needs. The
// filler alone changes parts, file, kept, size and paced, so it may read them
// without the lock.
type spool struct {
	store    *store
	declared int64  // -1 unknown
	abandon  func() // ends a fetch that nobody can use any more

	mu      sync.Mutex
	parts   []part
	file    file
	kept    int64
	size    int64
	done    bool
	err     error         // with done: why the body is not whole
	changed chan struct{} // made by who waits for more, closed when there is
	paced   bool
	window  []part
	moved   chan struct{} // made by the filler that waits for readers, closed when one moved or left
	readers map[*reader]struct{}
	refs    int   // readers, and the flight itself
	memory  int64 // taken from the store's budgets
	disk    int64

	assembling sync.Mutex // taken before mu
	whole      []byte     // under mu
	charged    int64      // of the assembly semaphore, under mu
}

// reader is one viewer's place in a spool. Its fields belong to the spool's lock.
type reader struct {
	pos   int64
	since time.Time // of the last move or wait, kept while the spool is paced
	idle  bool      // waits for bytes that are not there
	cut   bool
}

func newSpool(st *store, declared int64, abandon func()) *spool {
	return &spool{store: st, declared: declared, abandon: abandon, readers: make(map[*reader]struct{}), refs: 1}
}

// attach adds a reader at byte 0. It refuses when byte 0 may be gone soon, or the
// body is known to be broken.
func (s *spool) attach() (*reader, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paced || s.refs == 0 || s.err != nil {
		return nil, false
	}
	r := &reader{}
	s.readers[r] = struct{}{}
	s.refs++
	return r, true
}

// detach removes a reader.
func (s *spool) detach(r *reader) {
	s.mu.Lock()
	delete(s.readers, r)
	s.trim()
	useless := s.paced && !s.done && len(s.readers) == 0
	s.mu.Unlock()
	if useless {
		s.abandon()
	}
	s.release()
}

// release gives up one reference; the last one frees everything.
func (s *spool) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs--; s.refs > 0 {
		return
	}
	s.parts, s.window = nil, nil
	s.forgetWhole()
	s.store.memory.release(s.memory)
	s.store.disk.release(s.disk)
	s.memory, s.disk = 0, 0
	if s.file != nil {
		_ = s.file.Close() // it has no name, and nobody reads it again
		s.file = nil
	}
}

// finish ends the body; a nil err means that it is whole.
func (s *spool) finish(err error) {
	s.mu.Lock()
	s.done, s.err = true, err
	s.wake()
	s.mu.Unlock()
}

// wake tells readers that something changed. The lock is held.
func (s *spool) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// more gives the channel that the next change closes. The lock is held.
func (s *spool) more() <-chan struct{} {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// next gives up to most bytes at r's place without moving it: a slice of the
// spool's memory, or of buf where they had to be read from the file. With neither
// bytes nor error, wait tells when to ask again.
func (s *spool) next(r *reader, buf func() []byte, most int) (data []byte, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.idle {
		r.idle, r.since = false, time.Now()
	}
	switch {
	case r.cut:
		return nil, nil, ErrTooSlow
	case r.pos < s.size:
	case !s.done:
		r.idle = true
		if s.moved != nil { // the filler may wait for another one, whom it may cut now
			close(s.moved)
			s.moved = nil
		}
		return nil, s.more(), nil
	case s.err != nil:
		return nil, nil, s.err
	default:
		return nil, nil, io.EOF
	}
	if data := s.held(r.pos, most); data != nil {
		return data, nil, nil
	}
	f, at, n := s.file, r.pos, s.kept-r.pos
	if f == nil {
		return nil, nil, ErrNotKept
	}
	// The file lives as long as r does; nobody should wait while it is read.
	s.mu.Unlock()
	out := buf()
	out = out[:min(n, int64(most), int64(len(out)))]
	_, err = f.ReadAt(out, at)
	s.mu.Lock()
	if err != nil {
		return nil, nil, fmt.Errorf("read spool file: %w", unexpected(err))
	}
	return out, nil, nil
}

// unexpected keeps a file that is shorter than it should be from looking like
// the regular end of a body.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// held finds up to most bytes at a place in memory; nil if they lie in the file
// or are gone. The lock is held.
func (s *spool) held(at int64, most int) []byte {
	list := s.parts
	if at >= s.kept {
		list = s.window
	}
	for _, p := range list {
		if i := at - p.at; i >= 0 && i < int64(len(p.data)) {
			n := min(int64(len(p.data))-i, int64(most))
			return p.data[i : i+n : i+n]
		}
	}
	return nil
}

// advance moves r on by n bytes.
func (s *spool) advance(r *reader, n int) {
	s.mu.Lock()
	r.pos += int64(n)
	if s.paced {
		r.since = time.Now()
		s.trim()
	}
	s.mu.Unlock()
}

// trim drops what every reader of a paced spool has had, and tells the filler.
// The lock is held.
func (s *spool) trim() {
	if !s.paced {
		return
	}
	low := s.slowest()
	for len(s.window) > 0 {
		p := s.window[0]
		// A part with free space is the one that is being filled.
		if p.at+int64(len(p.data)) > low || len(p.data) < cap(p.data) {
			break
		}
		s.window[0] = part{}
		s.window = s.window[1:]
		s.memory -= windowPart
		s.store.memory.release(windowPart)
	}
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
}

// slowest is the least place of a reader. The lock is held.
func (s *spool) slowest() int64 {
	low := s.size
	for r := range s.readers {
		low = min(low, r.pos)
	}
	return low
}

// prefix waits until n bytes are there, or the body's end, and gives them. Of a
// body that failed before it gives what there was, with the reason.
func (s *spool) prefix(ctx context.Context, n int) ([]byte, error) {
	for {
		s.mu.Lock()
		enough := s.size >= int64(n)
		if s.paced && n > windowBytes && int64(n) > s.kept {
			s.mu.Unlock()
			return nil, ErrNotKept
		}
		if enough || s.done {
			err := s.err
			s.mu.Unlock()
			data, missing := s.head(n)
			if missing != nil {
				return nil, missing
			}
			if enough {
				err = nil
			}
			return data, err
		}
		wait := s.more()
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// head gives the first n bytes, or all if there are fewer: without a copy where
// they lie together in memory.
func (s *spool) head(n int) ([]byte, error) {
	s.mu.Lock()
	n = int(min(int64(n), s.size))
	first := s.held(0, n)
	s.mu.Unlock()
	if len(first) == n {
		return first, nil
	}
	out := make([]byte, n)
	return out, s.copyAt(out, 0)
}

// copyAt fills out with the bytes at a place; all of them must have arrived.
func (s *spool) copyAt(out []byte, at int64) error {
	for done := 0; done < len(out); {
		from := at + int64(done)
		s.mu.Lock()
		data := s.held(from, len(out)-done)
		f, kept := s.file, s.kept
		s.mu.Unlock()
		switch {
		case data != nil:
			done += copy(out[done:], data)
		case f != nil && from < kept:
			n := int(min(int64(len(out)-done), kept-from))
			if _, err := f.ReadAt(out[done:done+n], from); err != nil {
				return fmt.Errorf("read spool file: %w", unexpected(err))
			}
			done += n
		default:
			return ErrNotKept
		}
	}
	return nil
}
