package logging

import (
	"context"
	"io"
	"log/slog"
	"sync"
)

// Shared lets several loggers write whole lines to w: one Write at a time.
func Shared(w io.Writer) io.Writer { return &shared{w: w} }

type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// Queue writes lines in a goroutine of its own, so that nobody who logs waits for
// whoever takes the log. What waits is bounded: while the reader of the log takes
// nothing, further lines are dropped and counted, and each line is written whole
// or not at all. What waits when the process is killed is lost.
type Queue struct {
	w    io.Writer
	size int
	// wake holds a token while there may be something to write.
	wake  chan struct{}
	ended chan struct{}

	mu      sync.Mutex
	pending []byte
	closed  bool
	dropped uint64
}

// QueueSize is what waits at most, in bytes: some 2,500 lines of the access log.
const QueueSize = 1 << 20

// NewQueue starts a queue of at most size bytes before w. Close ends it.
func NewQueue(w io.Writer, size int) *Queue {
	q := &Queue{w: w, size: size, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go q.run()
	return q
}

// Write takes one line. It never waits for w and never fails.
func (q *Queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if q.closed || len(q.pending)+len(line) > q.size {
		q.dropped++
		q.mu.Unlock()
		return len(line), nil
	}
	q.pending = append(q.pending, line...)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

// Dropped counts the lines that found no room.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

func (q *Queue) run() {
	defer close(q.ended)
	var spare []byte
	for range q.wake {
		q.mu.Lock()
		lines, closed := q.pending, q.closed
		q.pending = spare[:0]
		q.mu.Unlock()
		if len(lines) > 0 {
			_, _ = q.w.Write(lines) // there is nobody left to tell
		}
		spare = lines
		if closed {
			return
		}
	}
}

// Close takes no more lines, and waits until what was taken is written or ctx ends.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	select {
	case <-q.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NewAccess makes the logger of the access log. It writes whatever the level of
// other records is, and hands values on as they are: callers give times in UTC, and
// durations as numbers.
func NewAccess(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(w, nil)) }
