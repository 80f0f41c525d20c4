package origin

import (
	"maps"
	"sync"
	"time"
)

// Switches are what operators set at run time about fetching: retries of a site,
// and places that are to be out of use. They outlive a change of the
// configuration, and are safe for use by many goroutines.
//
// A setting for all sites replaces those for single ones, and a later one for a
// single site goes before it.
type Switches struct {
	now func() time.Time

	mu    sync.RWMutex
	state SwitchState
}

// Switch is one setting. A zero Until means that it holds until it is changed.
type Switch struct {
	// Mode is auto or off for retries, out for places.
	Mode  string    `json:"mode"`
	Until time.Time `json:"until,omitzero"`
}

// SwitchState is everything that is set, in a form to keep and to hand to other
// nodes. Keys are site ids, "" for all sites.
type SwitchState struct {
	Retry map[string]Switch `json:"retry,omitempty"`
	// Out has the places of a site by name.
	Out map[string]map[string]Switch `json:"out,omitempty"`
}

// NewSwitches gives switches of which none is set; nil means time.Now.
func NewSwitches(now func() time.Time) *Switches {
	if now == nil {
		now = time.Now
	}
	return &Switches{now: now}
}

// SetRetry sets retry.mode of a site, or of all with site "". An empty mode
// means that the configuration holds again.
func (s *Switches) SetRetry(site, mode string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.state.Retry)
	if next == nil || site == "" {
		next = make(map[string]Switch)
	}
	if mode == "" && site == "" {
		next = nil
	} else {
		next[site] = Switch{Mode: mode, Until: until}
	}
	s.state.Retry = next
}

// SetPlace takes a place of a site, or of all sites with site "", out of use, or
// lets it be used again.
func (s *Switches) SetPlace(site, place string, out bool, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]map[string]Switch)
	for id, places := range s.state.Out {
		places = maps.Clone(places)
		if site == "" {
			delete(places, place)
		}
		next[id] = places
	}
	if next[site] == nil {
		next[site] = make(map[string]Switch)
	}
	mode := "in"
	if out {
		mode = "out"
	}
	next[site][place] = Switch{Mode: mode, Until: until}
	s.state.Out = next
	s.prune()
}

// prune removes what has run out, and what says nothing. The lock is held, and
// the maps are this call's own.
func (s *Switches) prune() {
	now := s.now()
	for site, places := range s.state.Out {
		for name, set := range places {
			// "in" of one site matters only beside an "out" of all.
			above, also := s.state.Out[""][name]
			if set.over(now) || set.Mode == "in" && (site == "" || !also || above.Mode != "out") {
				delete(places, name)
			}
		}
		if len(places) == 0 {
			delete(s.state.Out, site)
		}
	}
}

func (w Switch) over(now time.Time) bool { return !w.Until.IsZero() && !now.Before(w.Until) }

// Retry gives what is set about retries of a site; ok is false if nothing is.
func (s *Switches) Retry(site string) (set Switch, ok bool) {
	if s == nil {
		return Switch{}, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, key := range []string{site, ""} {
		if w, found := s.state.Retry[key]; found && !w.over(s.now()) {
			return w, w.Mode != ""
		}
	}
	return Switch{}, false
}

// Out gives what is set about a place; ok tells whether it is out of use.
func (s *Switches) Out(site, place string) (set Switch, ok bool) {
	if s == nil {
		return Switch{}, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.state.Out) == 0 {
		return Switch{}, false
	}
	for _, key := range []string{site, ""} {
		if w, found := s.state.Out[key][place]; found && !w.over(s.now()) {
			return w, w.Mode == "out"
		}
	}
	return Switch{}, false
}

// State gives everything that is set and has not run out. The maps are shared:
// read them only.
func (s *Switches) State() SwitchState {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	retry := maps.Clone(s.state.Retry)
	maps.DeleteFunc(retry, func(_ string, w Switch) bool { return w.over(now) })
	out := make(map[string]map[string]Switch, len(s.state.Out))
	for site, places := range s.state.Out {
		out[site] = maps.Clone(places)
	}
	s.state = SwitchState{Retry: retry, Out: out}
	s.prune()
	return s.state
}

// Restore sets everything as State gave it.
func (s *Switches) Restore(state SwitchState) {
	s.mu.Lock()
	s.state = state
	s.mu.Unlock()
	s.State() // drops what has run out, and makes the maps its own
}
