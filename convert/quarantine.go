package convert

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"time"
)

const (
	// quarantineFor is how long a source that hurt a worker is not tried again.
	quarantineFor = 24 * time.Hour
	// quarantineMost bounds the sources remembered; beyond it the ones that would be released first go.
	quarantineMost = 10_000
)

// Digest is the SHA-256 of an original.
type Digest [sha256.Size]byte

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Quarantine is one source that is not tried again for a while, or, for a first timeout, that is watched.
type Quarantine struct {
	Digest Digest    `json:"digest"`
	Cause  Cause     `json:"cause"`
	Until  time.Time `json:"until"`
	// Strikes counts the faults; a timeout takes two until the source is left alone.
	Strikes int `json:"strikes"`
}

// Held reports whether the source is left alone at that time.
func (q Quarantine) Held(now time.Time) bool {
	return now.Before(q.Until) && q.Strikes >= strikesFor(q.Cause)
}

func strikesFor(c Cause) int {
	if c == CauseTimeout {
		return 2
	}
	return 1
}

// quarantine remembers the sources that hurt workers, by their digest. It is safe for many goroutines.
type quarantine struct {
	now   func() time.Time
	mu    sync.Mutex
	items map[Digest]Quarantine
}

func newQuarantine(now func() time.Time) *quarantine {
	return &quarantine{now: now, items: make(map[Digest]Quarantine)}
}

func (q *quarantine) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) == 0
}

// check returns the entry of a source that must not be tried.
func (q *quarantine) check(d Digest) (Quarantine, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	item, ok := q.items[d]
	if !ok || !item.Held(q.now()) {
		return Quarantine{}, false
	}
	return item, true
}

// strike notes a fault, and reports whether the source is left alone from now on.
func (q *quarantine) strike(d Digest, why Cause) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	item := q.items[d]
	if !now.Before(item.Until) {
		item = Quarantine{Digest: d}
	}
	item.Cause, item.Until = why, now.Add(quarantineFor)
	item.Strikes++
	q.items[d] = item
	q.shrink(now)
	return item.Held(now)
}

// shrink keeps the number of entries bounded.
func (q *quarantine) shrink(now time.Time) {
	if len(q.items) <= quarantineMost {
		return
	}
	for d, item := range q.items {
		if !now.Before(item.Until) {
			delete(q.items, d)
		}
	}
	if len(q.items) <= quarantineMost {
		return
	}
	// A tenth at once, so that a full list is not sorted for every entry.
	items := q.sorted()
	for _, item := range items[:len(items)-quarantineMost*9/10] {
		delete(q.items, item.Digest)
	}
}

// sorted returns all entries, the one released first at the front.
func (q *quarantine) sorted() []Quarantine {
	items := make([]Quarantine, 0, len(q.items))
	for _, item := range q.items {
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b Quarantine) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Digest.String(), b.Digest.String()))
	})
	return items
}

// snapshot returns every entry that still counts, the one released first at the front.
func (q *quarantine) snapshot() []Quarantine {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	return slices.DeleteFunc(q.sorted(), func(i Quarantine) bool { return !now.Before(i.Until) })
}

// restore adds what snapshot gave, without the entries that are over by now; none may last longer than a new one.
func (q *quarantine) restore(items []Quarantine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for _, item := range items {
		if now.Before(item.Until) && !item.Until.After(now.Add(quarantineFor)) && item.Strikes > 0 {
			q.items[item.Digest] = item
		}
	}
	q.shrink(now)
}

// release forgets a source, and reports whether it was known.
func (q *quarantine) release(d Digest) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.items[d]
	delete(q.items, d)
	return ok
}

// counts returns how many sources are left alone now, by cause.
func (q *quarantine) counts() map[Cause]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	n := make(map[Cause]int)
	for _, item := range q.items {
		if item.Held(now) {
			n[item.Cause]++
		}
	}
	return n
}
