package backlog

import (
	"cmp"
	"math"
	"slices"
	"time"

	"karui/cache"
)

// Entry is one entry as operators see it.
type Entry struct {
	Key cache.Key
	// Asked counts the asks, each halved with every hour since.
	Asked float64
	// First and Last are when it was asked for first and last.
	First, Last time.Time
	// Tries is how often it failed; After is when it is tried again, zero for now.
	Tries int
	After time.Time
}

// SiteStatus is what is on the list for one site.
type SiteStatus struct {
	Site    string
	Entries int
	// Oldest is when the longest waiting entry was first asked for.
	Oldest time.Time
	// Next are those that are made next, the first at the front.
	Next []Entry
}

// Status is a moment's view of the list.
type Status struct {
	Entries int
	Bytes   int64
	Limits  Limits
	// Sites are in the order of their ids.
	Sites []SiteStatus
	// Made counts what was made, and Dropped what left the list otherwise, since the
	// start.
	Made    uint64
	Dropped map[Cause]uint64
}

// Status looks at the list, and at the next entries of each site, up to n. It looks at
// every entry.
func (b *Backlog) Status(n int) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	now := b.now()
	s := Status{Entries: b.queue.entries, Bytes: b.queue.bytes, Limits: b.queue.limits, Made: b.made, Dropped: map[Cause]uint64{}}
	for _, c := range causes {
		s.Dropped[c] = b.dropped[c]
	}
	for _, of := range b.queue.sites {
		s.Sites = append(s.Sites, of.status(n, now))
	}
	slices.SortFunc(s.Sites, func(a, b SiteStatus) int { return cmp.Compare(a.Site, b.Site) })
	return s
}

func (s *site) status(n int, now time.Time) SiteStatus {
	out := SiteStatus{Site: s.id, Entries: len(s.items)}
	oldest := int64(math.MaxInt64)
	var top []*item
	for _, it := range s.items {
		oldest = min(oldest, it.first)
		if n <= 0 || it.state == busy {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, it, sooner)
		if at < n {
			if len(top) == n {
				top = top[:n-1]
			}
			top = slices.Insert(top, at, it)
		}
	}
	out.Oldest = time.Unix(oldest, 0)
	for _, it := range top {
		e := Entry{
			Key: it.key(), Asked: math.Exp2(it.heat - heatAt(now, 1)), First: time.Unix(it.first, 0), Last: time.Unix(it.last, 0),
			Tries: int(it.tries),
		}
		if it.after > now.Unix() {
			e.After = time.Unix(it.after, 0)
		}
		out.Next = append(out.Next, e)
	}
	return out
}

// sooner orders entries of one site by when they are made.
func sooner(a, b *item) int {
	switch {
	case a.state != b.state:
		return cmp.Compare(a.state, b.state)
	case a.state == waiting && a.after != b.after:
		return cmp.Compare(a.after, b.after)
	case hotter(a, b):
		return -1
	case hotter(b, a):
		return 1
	}
	return 0
}

// Counts gives the number of entries by site.
func (b *Backlog) Counts() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	counts := make(map[string]int, len(b.queue.sites))
	for id, s := range b.queue.sites {
		counts[id] = len(s.items)
	}
	return counts
}
