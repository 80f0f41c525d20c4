package stress

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Share says which keys are turned away.
type Share struct {
	// Percent of the requests, 0 to 100.
	Percent float64 `json:"percent"`
	// First is the percentage of requests, by site, that were of classes that go
	// before the others, at the time when shedding began. It stays as it was while
	// the percentage is changed, so that what is turned away at 20 % is at 30 %.
	First map[string]float64 `json:"first,omitempty"`
	// Until is zero for a share that holds until it is changed.
	Until time.Time `json:"until,omitzero"`
}

// Sheds tells whether a request with the key is turned away. It is the same for the
// same key, on every node and after every restart, and what is turned away at one
// percentage is at every larger one. First is whether the key is of a class that
// goes before the others: only when all of those are turned away, others are.
func (s Share) Sheds(site, key string, first bool) bool {
	share, classes := s.Percent/100, s.First[site]/100
	switch {
	case first && share < classes:
		share /= classes
	case first && share > 0:
		share = 1
	case share <= classes:
		share = 0
	case classes > 0:
		share = (share - classes) / (1 - classes)
	}
	return place(site, key) < share
}

// place gives a key its place, 0 to 1, in the order in which keys are turned away.
func place(site, key string) float64 {
	d := xxhash.New()
	_, _ = d.WriteString(site) // a hash takes everything
	_, _ = d.WriteString("\n")
	_, _ = d.WriteString(key)
	return float64(d.Sum64()>>11) / (1 << 53)
}

// Shares are what operators want turned away: of all sites, or of single ones. A
// setting for all replaces those for single sites, and a later one for a single
// site goes before it.
type Shares struct {
	now   func() time.Time
	mu    sync.Mutex // orders the changes
	state atomic.Pointer[map[string]Share]

	seen sync.Map // site to *traffic
}

// NewShares gives shares of which none is set; nil means time.Now.
func NewShares(now func() time.Time) *Shares {
	if now == nil {
		now = time.Now
	}
	s := &Shares{now: now}
	s.state.Store(&map[string]Share{})
	return s
}

// Set turns away a percentage of a site's requests, or of all with site "". Sites
// are those that it is about.
func (s *Shares) Set(site string, percent float64, until time.Time, sites []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.live()
	share := Share{Percent: min(max(percent, 0), 100), Until: until, First: map[string]float64{}}
	for _, id := range sites {
		before := lookup(next, id)
		known, found := before.First[id]
		if !found || before.Percent == 0 {
			known = s.traffic(id).first()
		}
		share.First[id] = known
	}
	if site == "" {
		clear(next)
	}
	next[site] = share
	if _, all := next[""]; share.Percent == 0 && (site == "" || !all) {
		delete(next, site)
	}
	s.state.Store(&next)
}

// live gives what has not run out. The map is the caller's.
func (s *Shares) live() map[string]Share {
	now := s.now()
	next := maps.Clone(*s.state.Load())
	maps.DeleteFunc(next, func(_ string, share Share) bool { return share.over(now) })
	return next
}

func (s Share) over(now time.Time) bool { return !s.Until.IsZero() && !now.Before(s.Until) }

func lookup(state map[string]Share, site string) Share {
	if share, found := state[site]; found {
		return share
	}
	return state[""]
}

// Of gives what is set for a site.
func (s *Shares) Of(site string) Share {
	state := *s.state.Load()
	if len(state) == 0 {
		return Share{}
	}
	now := s.now()
	for _, id := range []string{site, ""} {
		if share, found := state[id]; found && !share.over(now) {
			return share
		}
	}
	return Share{}
}

// Sheds tells whether a request is turned away. Classes is whether the site has
// any that go before the others.
func (s *Shares) Sheds(site, key string, classes, first bool) bool {
	if classes {
		s.traffic(site).count(first)
	}
	share := s.Of(site)
	return share.Percent > 0 && share.Sheds(site, key, first)
}

// State gives everything that is set, in a form to keep. Keys are site ids, "" for all.
func (s *Shares) State() map[string]Share { return s.live() }

// Restore sets everything as State gave it.
func (s *Shares) Restore(state map[string]Share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]Share, len(state))
	for site, share := range state {
		share.Percent = min(max(share.Percent, 0), 100)
		next[site] = share
	}
	s.state.Store(&next)
}

// traffic counts requests by whether their class goes first, older ones for less.
type traffic struct {
	mu          sync.Mutex
	firsts, all float64
}

// remembered is about how many requests the share of a class is taken of.
const remembered = 10_000

func (t *traffic) count(first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.firsts *= 1 - 1.0/remembered
	t.all = t.all*(1-1.0/remembered) + 1
	if first {
		t.firsts++
	}
}

func (t *traffic) first() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == 0 {
		return 0
	}
	return 100 * t.firsts / t.all
}

func (s *Shares) traffic(site string) *traffic {
	if known, ok := s.seen.Load(site); ok {
		return known.(*traffic) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	known, _ := s.seen.LoadOrStore(site, &traffic{})
	return known.(*traffic) //nolint:errcheck,forcetypeassert // nothing else is stored
}
