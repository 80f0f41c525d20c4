package origin

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// A body that is closed early is read on this far, for this long, so that its
// connection can be kept: less than the cost of a new one.
const (
	drainBytes = 8 << 10
	drainTime  = 20 * time.Millisecond
)

// limits cancels one fetch when one of its waits takes too long. One timer
// serves all of them, since only one wait is under way at any time.
type limits struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	which  atomic.Pointer[expired]

	idle  time.Duration
	left  time.Duration // of origin.total; spent only while karui waits for the origin
	first time.Duration // to the first byte; 0 after it
	late  *expired      // what it means when first runs out
}

// allowance is what one try may take.
type allowance struct {
	first time.Duration // to the first byte
	late  *expired
	total time.Duration // for the whole fetch
	// replays is how often the request may be sent again to the same address when
	// its kept connection is lost before an answer.
	replays int
}

func newLimits(idle time.Duration, a allowance, cancel context.CancelCauseFunc) *limits {
	l := &limits{cancel: cancel, idle: idle, left: max(a.total, 1), first: max(a.first, 1), late: a.late}
	limit := l.next()
	l.timer = time.AfterFunc(limit, func() { l.cancel(l.which.Load()) })
	return l
}

// next chooses the limit of the wait that begins now.
func (l *limits) next() time.Duration {
	limit, which := l.idle, errIdle
	if l.first > 0 {
		limit, which = l.first, l.late
	}
	if l.left < limit {
		limit, which = l.left, errTotal
	}
	l.which.Store(which)
	return limit
}

// begin starts a wait, spent ends it.
func (l *limits) begin() time.Time {
	l.timer.Reset(l.next())
	return time.Now()
}

func (l *limits) spent(since time.Time, gotBody bool) {
	l.timer.Stop()
	took := time.Since(since)
	l.left = max(l.left-took, 1)
	switch {
	case gotBody:
		l.first = 0
	case l.first > 0:
		l.first = max(l.first-took, 1)
	}
}

// body is a response's body under limits. Read and Close are called by one
// goroutine at a time, except that Close may interrupt a Read.
type body struct {
	client *Client
	ctx    context.Context
	cancel context.CancelCauseFunc
	limits *limits
	inner  io.ReadCloser
	left   int64 // of the declared length, -1 when there is none
	final  bool  // its connection ends with it
	err    error // sticky result of Read

	reading sync.Mutex
	once    sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	return b.read(p)
}

func (b *body) read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	since := b.limits.begin()
	n, err := b.inner.Read(p)
	b.limits.spent(since, n > 0)
	if b.left > 0 {
		b.left -= int64(n)
	}
	if err == nil {
		return n, nil
	}
	if errors.Is(err, io.EOF) && b.left <= 0 {
		b.err = io.EOF
	} else {
		b.err = b.client.failure(b.ctx, err)
	}
	b.cancel(nil)
	return n, b.err
}

// Close ends the fetch. What little is left of a body that is under way is read,
// so that its connection serves the next request.
func (b *body) Close() error {
	b.once.Do(func() {
		if b.reading.TryLock() {
			if b.err == nil && b.ctx.Err() == nil && !b.final && b.left <= drainBytes {
				b.drain()
			}
			b.reading.Unlock()
		}
		b.cancel(context.Canceled)
		b.limits.timer.Stop()
		_ = b.inner.Close() // nothing is left that its error could tell
	})
	return nil
}

func (b *body) drain() {
	stop := time.AfterFunc(drainTime, func() { b.cancel(context.Canceled) })
	defer stop.Stop()
	// One byte more than the limit, so that the end itself is seen as well.
	_, _ = io.CopyN(io.Discard, readFunc(b.read), drainBytes+1)
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
