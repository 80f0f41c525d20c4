package edge

import (
	"context"
	"errors"
	"io"
	"sort"
	"sync"
)

// errTooLate is what a reader gets that begins after the first bytes were
// dropped.
var errTooLate = errors.New("the beginning of the body is no longer held")

// chunkSize is the most that one chunk holds; small bodies take what they need.
const chunkSize = 64 << 10

// spool is a body that grows while any number of readers follow it, each at its
// own speed. It holds everything, until narrow: from then on only a window
// before the slowest reader, and the writer waits for room.
type spool struct {
	take func(n int) bool // asks the budget for n bytes; nil takes all
	give func(n int)

	mu      sync.Mutex
	chunks  []chunk
	size    int64
	done    bool
	err     error // why the body ended; nil at its proper end
	window  int64 // 0 holds everything
	held    int   // bytes taken from the budget
	readers map[*reader]int64
	changed chan struct{} // closed and replaced on every change
	kept    bool          // in the store: bytes stay when the last reader goes
	dropped bool
}

type chunk struct {
	at   int64
	data []byte
}

func newSpool(take func(int) bool, give func(int)) *spool {
	return &spool{take: take, give: give, readers: make(map[*reader]int64), changed: make(chan struct{})}
}

// fixed is a whole body, outside of any budget.
func fixed(body []byte) *spool {
	s := newSpool(nil, nil)
	s.chunks, s.size, s.done = []chunk{{data: body}}, int64(len(body)), true
	return s
}

func (s *spool) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// narrow holds no more than n bytes before the slowest reader from now on.
func (s *spool) narrow(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.window == 0 {
		s.window = n
		s.trim()
	}
}

// append adds bytes. It reports false once when the budget has no room for the
// whole body, which narrows the spool to window; then it waits for readers, until
// ctx ends. The last bytes are not told of: the end of the body will be.
func (s *spool) append(ctx context.Context, p []byte, window int64, last bool) (whole bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole = true
	for len(p) > 0 {
		if s.window > 0 {
			for s.size-s.floor() >= s.window {
				changed := s.changed
				s.mu.Unlock()
				select {
				case <-changed:
				case <-ctx.Done():
				}
				s.mu.Lock()
				if ctx.Err() != nil {
					return whole, context.Cause(ctx)
				}
			}
			s.trim()
		}
		n, ok := s.add(p)
		if !ok {
			whole = false
			s.window = window
			s.trim()
			continue
		}
		if p = p[n:]; len(p) > 0 || !last {
			s.signal()
		}
	}
	return whole, nil
}

// add puts some of p behind what is there. In a window nothing is asked of the
// budget: windows are bounded by the number of viewers.
func (s *spool) add(p []byte) (int, bool) {
	if last := len(s.chunks) - 1; last >= 0 {
		c := &s.chunks[last]
		if room := min(cap(c.data)-len(c.data), len(p)); room > 0 {
			c.data = append(c.data, p[:room]...)
			s.size += int64(room)
			return room, true
		}
	}
	n := min(len(p), chunkSize)
	capacity := min(max(n, int(min(s.size, chunkSize)), 4<<10), chunkSize)
	if s.window == 0 && s.take != nil {
		// Not under mu of the budget's: it may want to drop other spools.
		if !s.take(capacity) {
			return 0, false
		}
		s.held += capacity
	}
	s.chunks = append(s.chunks, chunk{at: s.size, data: append(make([]byte, 0, capacity), p[:n]...)})
	s.size += int64(n)
	return n, true
}

// floor is the position of the slowest reader; without any, nothing is needed.
func (s *spool) floor() int64 {
	low := s.size
	for _, at := range s.readers {
		low = min(low, at)
	}
	return low
}

// trim drops chunks before the slowest reader.
func (s *spool) trim() {
	if s.window == 0 {
		return
	}
	low, n := s.floor(), 0
	for n < len(s.chunks) && s.chunks[n].at+int64(len(s.chunks[n].data)) <= low {
		n++
	}
	if n > 0 {
		s.chunks = append([]chunk(nil), s.chunks[n:]...)
	}
}

// end closes the body; err says what went wrong.
func (s *spool) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.err = true, err
	s.signal()
}

// keep holds the bytes although nobody reads; drop lets go of them as soon as
// nobody does.
func (s *spool) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = true
}

func (s *spool) drop() {
	s.mu.Lock()
	s.kept, s.dropped = false, true
	free := s.release()
	s.mu.Unlock()
	if free > 0 {
		s.give(free)
	}
}

// release returns the bytes to hand back to the budget.
func (s *spool) release() int {
	if !s.dropped || s.kept || len(s.readers) > 0 {
		return 0
	}
	free := s.held
	s.held = 0
	return free
}

// length is the size of a body that has ended well.
func (s *spool) length() (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.done && s.err == nil
}

// reader reads a spool from a position on.
type reader struct {
	s  *spool
	at int64
}

// open makes a reader, to be closed. It is false when the first bytes are gone.
func (s *spool) open() (*reader, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size > 0 && (len(s.chunks) == 0 || s.chunks[0].at > 0) {
		return nil, false
	}
	r := &reader{s: s}
	s.readers[r] = 0
	return r, true
}

// next gives the next bytes, waiting for them. more tells whether further ones
// are there already. The end is io.EOF, or why the body was cut.
func (r *reader) next(ctx context.Context) (data []byte, more bool, err error) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if r.at < s.size {
			i := sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].at > r.at }) - 1
			if i < 0 {
				return nil, false, errTooLate
			}
			c := s.chunks[i]
			data = c.data[r.at-c.at:]
			return data, r.at+int64(len(data)) < s.size, nil
		}
		if s.done {
			if s.err != nil {
				return nil, false, s.err
			}
			return nil, false, io.EOF
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
	}
}

// read says that n bytes were used up.
func (r *reader) read(n int) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.at += int64(n)
	r.s.readers[r] = r.at
	if r.s.window > 0 {
		r.s.signal()
	}
}

// seek moves a reader of a whole body.
func (r *reader) seek(at int64) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.at = at
	r.s.readers[r] = at
}

func (r *reader) close() {
	s := r.s
	s.mu.Lock()
	delete(s.readers, r)
	s.signal()
	free := s.release()
	s.mu.Unlock()
	if free > 0 {
		s.give(free)
	}
}
