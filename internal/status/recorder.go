package status

import (
	"context"
	"sync"
	"time"

	"karui/proxy/success"
)

// Of the looks.
const (
	// lookEvery is how often karui is looked at while nobody asks for the page, and
	// freshFor how old a look may be that the page is made of.
	lookEvery = 2 * time.Second
	freshFor  = time.Second
)

// Sources are where the page gets everything from. The functions are quick, copy
// what they give, and hold nothing up.
type Sources struct {
	// Facts gives how karui stands; At is set by the caller.
	Facts func() Facts
	// Success gives how a site did, and Minutes its last n minutes, "" for all sites.
	Success func(site string) (success.Record, bool)
	Minutes func(site string, n int) []success.Minute
}

// Recorder keeps the last hour and the last events.
type Recorder struct {
	sources Sources
	now     func() time.Time
	began   time.Time

	mu      sync.Mutex
	history *history
	journal journal
	last    *Facts
}

// NewRecorder begins an hour. Counters are taken to have begun at zero. A nil now
// means time.Now.
func NewRecorder(s Sources, now func() time.Time) *Recorder {
	if now == nil {
		now = time.Now
	}
	began := now()
	r := &Recorder{sources: s, now: now, began: began, history: newHistory(began)}
	r.journal.add(Event{At: began, Kind: "start", Tone: tonePlain, Text: "karui was started"})
	return r
}

// Run looks at karui until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		r.look(freshFor)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look gives how karui stands, at most as old as said.
func (r *Recorder) look(fresh time.Duration) *Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.last != nil && now.Sub(r.last.At) < fresh && !now.Before(r.last.At) {
		return r.last
	}
	f := r.sources.Facts()
	f.At = now
	var silent map[placeName]bool
	if r.last != nil {
		silent = r.last.silent
	}
	f.silent = silentPlaces(silent, f.Places)
	if r.last != nil {
		for _, e := range changes(r.last, &f) {
			r.journal.add(e)
		}
	} else {
		for _, m := range f.Dial.Moves {
			r.journal.add(dialEvent(m))
		}
	}
	r.history.observe(&f)
	r.last = &f
	return &f
}

// Note adds an event that cannot be told from two looks. Its time is now where it
// has none.
func (r *Recorder) Note(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.At.IsZero() {
		e.At = r.now()
	}
	r.journal.add(e)
}

// Events gives those that a visitor may see, newest first.
func (r *Recorder) Events(v Visitor) []Event {
	r.look(freshFor)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.journal.seenBy(v)
}

// picture is everything that a page is made of: a copy, which nobody else changes.
type picture struct {
	facts  *Facts
	whole  bool
	began  time.Time
	states []state
	all    [minutes]minute
	sites  map[string]*[minutes]minute
	events []Event
}

// picture gives what a visitor may see.
func (r *Recorder) picture(v Visitor) picture {
	f := r.look(freshFor).seenBy(v)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := f.At.Unix() / 60
	p := picture{
		facts: f, whole: v.Whole(), began: r.began, states: r.history.seen(f.At), all: r.history.all.hour(now),
		sites: make(map[string]*[minutes]minute, len(f.Sites)), events: r.journal.seenBy(v),
	}
	for _, s := range f.Sites {
		if t := r.history.sites[s.ID]; t != nil {
			hour := t.hour(now)
			p.sites[s.ID] = &hour
		}
	}
	if !p.whole {
		p.limit()
	}
	return p
}

// limit leaves of what is about all sites together only what is about these.
func (p *picture) limit() {
	p.all = [minutes]minute{}
	for _, hour := range p.sites {
		for i := range hour {
			m := &p.all[i]
			for o, n := range hour[i].did {
				m.did[o] += n
			}
			m.saved += hour[i].saved
			m.slowest = max(m.slowest, hour[i].slowest)
		}
	}
	first := p.facts.At.Unix()/60 - minutes + 1
	for i := range p.states {
		s := unknownState()
		s.known, s.level, s.all, s.hits = p.states[i].known, p.states[i].level, p.states[i].all, p.states[i].hits
		if at := p.all[i/(slots/minutes)].slowest; at > 0 && s.known && first >= 0 {
			s.slowest = float64(at)
		}
		p.states[i] = s
	}
}
