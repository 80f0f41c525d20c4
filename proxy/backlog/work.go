package backlog

import (
	"context"
	"time"

	"karui/cache"
)

// Verdict is what came of one entry.
type Verdict uint8

const (
	// Made: there is a variant now.
	Made Verdict = iota + 1
	// Settled: it was tried, and the original is the better answer, for good.
	Settled
	// Found: somebody else had made it, or decided about it.
	Found
	// Missed: there is no such picture any more, or nobody else's.
	Missed
	// Void: the configuration has no such site, format or path any more. Nobody had to be
	// asked for that.
	Void
	// Busy: nothing was tried, since the time was needed otherwise.
	Busy
	// Trouble: it failed, and may not fail next time.
	Trouble
)

// Maker makes what is on the list.
type Maker interface {
	// Idle tells whether there is time now for work that can wait.
	Idle() bool
	// Open tells whether entries of a site may be made now.
	Open(site string) bool
	// Make makes one, at once, or gives it up. It must end soon after ctx does.
	Make(ctx context.Context, key cache.Key) Verdict
}

const (
	// pace is the time from one begin to the next: two a second, which is less than the
	// workers can do, so that neither the dial nor an origin notices.
	pace = 500 * time.Millisecond
	// restBusy is how long an entry for which there was no time is left alone.
	restBusy = 10 * time.Second
	// freeMost bounds the entries in a row that are found or void: these take no more than
	// a look into the cache, and so none of the pace.
	freeMost = 100
	// makeLimit bounds one attempt, whatever happens: fetching (60 s by default) and
	// converting (as much) have limits of their own.
	makeLimit = 3 * time.Minute
)

// Work has entries made one at a time, no more than two a second, whenever there is
// time, until ctx ends.
func (b *Backlog) Work(ctx context.Context, m Maker) {
	timer := time.NewTimer(pace)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		for range freeMost {
			if v := b.one(ctx, m); v != Found && v != Void {
				break
			}
		}
		timer.Reset(max(pace-time.Since(began), pace/10))
	}
}

// one has the next entry made, if there is one and time for it; else it gives Busy.
func (b *Backlog) one(ctx context.Context, m Maker) (verdict Verdict) {
	verdict = Busy
	if !m.Idle() {
		return verdict
	}
	b.mu.Lock()
	b.take()
	it := b.queue.next(b.now(), m.Open)
	b.mu.Unlock()
	if it == nil {
		return verdict
	}
	defer func() { b.note(ctx, it, verdict) }() // also when it panics: nothing stays busy
	limited, cancel := context.WithTimeout(ctx, makeLimit)
	defer cancel()
	verdict = m.Make(limited, it.key())
	return verdict
}

// note takes in what came of an entry.
func (b *Backlog) note(ctx context.Context, it *item, v Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if ctx.Err() != nil && v != Made {
		v = Busy // the process ends, which says nothing about the entry
	}
	switch v {
	case Made:
		if it.state != gone {
			b.queue.remove(it)
		}
		b.made++
	case Settled:
		b.queue.drop(it, Kept)
	case Found:
		b.queue.drop(it, Present)
	case Missed, Void:
		b.queue.drop(it, Obsolete)
	case Trouble:
		b.queue.failed(it, now)
	default:
		b.queue.rest(it, now, restBusy)
	}
}
