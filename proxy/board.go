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

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	known   *announced
	asked   [][]header.Format // what viewers take, each list once, oldest first
	taken   []header.Format   // somebody sees to these
	results map[header.Format]result
	// visited is whether somebody came besides the one who started the flight.
	visited bool
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
	format   header.Format
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

func (b *board) isVisited() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.visited
}

// look gives the result for one format, if there is one, and whether somebody sees to
// it.
func (b *board) look(f header.Format) (r result, found, taken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, found = b.results[f]
	return r, found, slices.Contains(b.taken, f)
}

// ask adds the formats that one viewer takes, best first.
func (b *board) ask(wanted []header.Format) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.visited = true
	if len(wanted) == 0 || b.closed || slices.ContainsFunc(b.asked, func(l []header.Format) bool { return slices.Equal(l, wanted) }) {
		return
	}
	b.asked = append(b.asked, wanted)
	close(b.changed)
	b.changed = make(chan struct{})
}

// claim gives a format that some viewer comes to next and nobody sees to, and
// notes that the caller does. Without one it gives a channel that is closed when
// there may be, or nil if every viewer has a result.
func (b *board) claim() (f header.Format, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := false
	for _, wanted := range b.asked {
		v := b.lookup(wanted)
		if v.settled {
			continue
		}
		if waiting = true; !slices.Contains(b.taken, v.next) {
			b.taken = append(b.taken, v.next)
			return v.next, nil
		}
	}
	if !waiting {
		return header.Unknown, nil
	}
	return header.Unknown, b.changed
}

// take notes that the caller sees to a format; false if somebody does already.
func (b *board) take(f header.Format) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, found := b.results[f]; found || slices.Contains(b.taken, f) {
		return false
	}
	b.taken = append(b.taken, f)
	return true
}

// finish closes the board if every viewer has a result, so that no wish is lost
// between the last look and the end of the task.
func (b *board) finish() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, wanted := range b.asked {
		if !b.lookup(wanted).settled {
			return false
		}
	}
	if !b.closed {
		b.closed = true
		close(b.changed)
		b.changed = make(chan struct{})
	}
	return true
}

// verdict is what one viewer gets.
type verdict struct {
	// result is the first variant, or the last reason for there being none.
	result
	// settled: every format up to the variant, or all of them, have a result. Until
	// then next is the first that has none.
	settled bool
	next    header.Format
	// final: nothing better will come later either, while the dial is where it is.
	final bool
	// dialled: with the dial elsewhere, something better would be made.
	dialled bool
}

// lookup goes through the formats in order, past those that are not made, up to
// one with a variant. The lock is held.
func (b *board) lookup(wanted []header.Format) verdict {
	v := verdict{settled: true, final: true}
	for _, f := range wanted {
		got, found := b.results[f]
		if !found {
			return verdict{next: f}
		}
		v.result = got
		if got.record != nil {
			v.dialled = v.dialled || got.record.level > 0
			return v
		}
		if got.decision.Code == convert.Deferred {
			v.dialled = true
			continue
		}
		v.final = v.final && got.decision.Settled
	}
	v.final = v.final && !v.dialled
	return v
}

// spare gives the first variant there is among formats.
func (b *board) spare(formats []header.Format) (result, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range formats {
		if got := b.results[f]; got.record != nil {
			return got, true
		}
	}
	return result{}, false
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
func (b *board) wait(ctx context.Context, wanted []header.Format, limit time.Duration) verdict {
	if len(wanted) == 0 {
		d := convert.Decide(convert.NotAccepted, "the viewer takes no lighter format")
		return verdict{result: result{decision: d}, settled: true, final: true}
	}
	var timer *time.Timer
	for {
		b.mu.Lock()
		v := b.lookup(wanted)
		closed, changed := b.closed, b.changed
		b.mu.Unlock()
		if v.settled || closed || limit <= 0 {
			return v
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
			return verdict{}
		}
	}
}
