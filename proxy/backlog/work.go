package backlog

import (
	"context"
	"sync"
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
	// Idle tells whether there is time now for work that can wait. The methods are called by
	// several goroutines.
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
	// handsMost is how many are in hand at once, each of another site: an origin that
	// takes its time holds up its own site. What is in hand waits for an origin most of
	// the time, since Idle is asked before each begin.
	handsMost = 4
	// slow is what one may take without being called slow. Sites that did last time leave
	// one hand to the others, however many they are.
	slow = 2 * time.Second
	// restBusy is how long an entry for which there was no time is left alone.
	restBusy = 10 * time.Second
	// freeMost bounds the entries in a row that are found or void: these take no more than
	// a look into the cache, and so none of the pace.
	freeMost = 100
	// makeLimit bounds one attempt, whatever happens: fetching (60 s by default) and
	// converting (as much) have limits of their own.
	makeLimit = 3 * time.Minute
)

// Work has entries made, no more than two a second and one at a time of each site,
// whenever there is time, until ctx ends.
func (b *Backlog) Work(ctx context.Context, m Maker) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	hands := make(chan struct{}, handsMost)
	var working sync.WaitGroup
	defer working.Wait()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		select {
		case hands <- struct{}{}:
		default:
			continue
		}
		working.Go(func() {
			defer func() { <-hands }()
			for range freeMost {
				if v := b.one(ctx, m); v != Found && v != Void {
					return
				}
			}
		})
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
	began := b.now()
	it := b.queue.next(began, func(site string) bool { return b.hands.may(site) && m.Open(site) })
	if it == nil {
		b.mu.Unlock()
		return verdict
	}
	key := it.key()
	b.hands.begin(key.Site)
	b.mu.Unlock()
	defer func() { b.note(ctx, it, key.Site, began, verdict) }() // also when it panics: nothing stays busy
	limited, cancel := context.WithTimeout(ctx, makeLimit)
	defer cancel()
	verdict = m.Make(limited, key)
	return verdict
}

// hands are the sites of which one is in hand, and those that were slow the last time.
// The first time of a site is taken to be quick.
type hands struct{ busy, slow map[string]bool }

func (h *hands) may(site string) bool {
	if h.busy[site] {
		return false
	}
	if !h.slow[site] {
		return true
	}
	n := 0
	for id := range h.busy {
		if h.slow[id] {
			n++
		}
	}
	return n < handsMost-1
}

func (h *hands) begin(site string) { h.busy[site] = true }

func (h *hands) end(site string, took time.Duration, v Verdict) {
	delete(h.busy, site)
	switch {
	case took > slow && v != Void:
		h.slow[site] = true
	case v != Busy && v != Found: // of which nothing was asked
		delete(h.slow, site)
	}
}

// note takes in what came of an entry.
func (b *Backlog) note(ctx context.Context, it *item, site string, began time.Time, v Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.hands.end(site, now.Sub(began), v)
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
