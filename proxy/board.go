package proxy

import (
	"context"
	"slices"
	"sync"
	"time"

	"karui/convert"
	"karui/convert/header"
)

// board is where the viewers of one flight and the task that works for them
// meet: viewers write up which formats they take, the task writes up what the
// body is and what became of each format. It is the State of a flight.
type board struct {
	// leader are the formats of the viewer that started the flight.
	leader []header.Format

	// Set by the fetch, before anybody else can look:

	// replayed is the record of a stored original that stands in for the origin's
	// answer; nil when the origin was asked.
	replayed *record
	// previous is the record of the original that a refresh found stored, nil for none.
	previous *record

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	known   *announced
	asked   [][]header.Format // lists whose first format has no result yet, oldest first
	results map[header.Format]result
	closed  bool
}

// announced is what the first bytes of the body told.
type announced struct {
	record  *record
	content content
}

// result is what became of one format: a variant, or the reason for there being none.
type result struct {
	record   *record // of the variant, nil for none
	body     []byte
	decision convert.Decision
}

func newBoard(leader []header.Format) *board {
	b := &board{leader: leader, changed: make(chan struct{}), results: map[header.Format]result{}}
	if len(leader) > 0 {
		b.asked = append(b.asked, leader)
	}
	return b
}

// change runs f under the lock and wakes everybody who waits.
func (b *board) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

// announce says what the body is.
func (b *board) announce(a *announced) { b.change(func() { b.known = a }) }

// settle writes up the result for a format. The first one stays: it may have
// been answered already.
func (b *board) settle(f header.Format, r result) {
	b.change(func() {
		if _, found := b.results[f]; !found {
			b.results[f] = r
		}
	})
}

// close says that nothing more will be written up.
func (b *board) close() { b.change(func() { b.closed = true }) }

func (b *board) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// ask adds the formats that one viewer takes, best first.
func (b *board) ask(wanted []header.Format) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(wanted) == 0 || b.closed || slices.ContainsFunc(b.asked, func(l []header.Format) bool { return slices.Equal(l, wanted) }) {
		return
	}
	b.asked = append(b.asked, wanted)
	close(b.changed)
	b.changed = make(chan struct{})
}

// pending gives the oldest list with a format that has no result: the formats
// from that one on.
func (b *board) pending() ([]header.Format, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.oldest()
}

// oldest is pending with the lock held.
func (b *board) oldest() ([]header.Format, bool) {
	for len(b.asked) > 0 {
		if left, _, settled := b.lookup(b.asked[0]); !settled {
			return left, true
		}
		b.asked = b.asked[1:]
	}
	return nil, false
}

// next is pending, and closes the board when there is none, so that no viewer's
// wish is lost between the last look and the end of the task.
func (b *board) next() ([]header.Format, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left, ok := b.oldest(); ok {
		return left, true
	}
	if !b.closed {
		b.closed = true
		close(b.changed)
		b.changed = make(chan struct{})
	}
	return nil, false
}

// lookup goes through the formats in order, past those that are kept as the
// original, up to one with a variant. Settled is false if one without a result
// comes first; it is the first of left then. The lock is held.
func (b *board) lookup(wanted []header.Format) (left []header.Format, r result, settled bool) {
	for i, f := range wanted {
		got, found := b.results[f]
		if !found {
			return wanted[i:], result{}, false
		}
		r = got
		if r.record != nil {
			break
		}
	}
	return nil, r, true
}

// content waits until the body is known. It gives nil if it never will be: the
// body failed, or the task did.
func (b *board) content(ctx context.Context) *announced {
	for {
		b.mu.Lock()
		known, closed, changed := b.known, b.closed, b.changed
		b.mu.Unlock()
		if known != nil || closed {
			return known
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// wait waits for the first variant among wanted, until there is a result for
// each, the limit has passed, or nothing more will come. Without formats it is
// settled at once.
func (b *board) wait(ctx context.Context, wanted []header.Format, limit time.Duration) (r result, settled bool) {
	if len(wanted) == 0 {
		return result{decision: convert.Decide(convert.NotAccepted, "the viewer takes no lighter format")}, true
	}
	var timer *time.Timer
	for {
		b.mu.Lock()
		_, r, settled = b.lookup(wanted)
		closed, changed := b.closed, b.changed
		b.mu.Unlock()
		if settled || closed || limit <= 0 {
			return r, settled
		}
		if timer == nil {
			timer = time.NewTimer(limit)
			defer timer.Stop()
		}
		select {
		case <-changed:
		case <-timer.C:
			limit = 0
		case <-ctx.Done():
			return result{}, false
		}
	}
}
