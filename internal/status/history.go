package status

import (
	"math"
	"time"

	"karui/internal/api"
)

// Of the hour that is kept.
const (
	minutes = 60
	// slotLength is that of the states, which change from one moment to the next.
	slotLength = 10 * time.Second
	slots      = minutes * int(time.Minute/slotLength)
	maxSites   = 2000
	maxVolumes = 16
)

// minute is what was counted within one.
type minute struct {
	did   [outcomes]uint32
	saved uint64
	// slowest is the longest mean time of a site's misses, in seconds, 0 for none.
	slowest float32
}

func (m *minute) counts() counts {
	var c counts
	for i, n := range m.did {
		c[i] = uint64(n)
	}
	return c
}

// track is the hour of one site, or of all requests.
type track struct {
	last  int64 // the newest minute, since 1970
	begun bool
	ring  [minutes]minute
	// What the counters said when they were read last.
	base  counts
	saved uint64
}

// advance empties the minutes that have passed. A clock that goes back stands still.
func (t *track) advance(to int64) {
	if !t.begun {
		t.last, t.begun = to, true
	}
	for m := max(t.last+1, to-minutes+1); m <= to; m++ {
		t.ring[m%minutes] = minute{}
	}
	t.last = max(t.last, to)
}

func (t *track) at(to int64) *minute {
	t.advance(to)
	return &t.ring[t.last%minutes]
}

// read takes in what the counters say now, and gives what has come since.
func (t *track) read(to int64, now counts, saved uint64) (counts, uint64) {
	m := t.at(to)
	var fresh counts
	for i, n := range now {
		if n > t.base[i] { // they never fall within one process
			fresh[i] = n - t.base[i]
		}
		m.did[i] = uint32(min(uint64(m.did[i])+fresh[i], math.MaxUint32))
	}
	more := uint64(0)
	if saved > t.saved {
		more = saved - t.saved
	}
	m.saved += more
	t.base, t.saved = now, saved
	return fresh, more
}

// hour gives the minutes up to now, oldest first.
func (t *track) hour(now int64) [minutes]minute {
	var out [minutes]minute
	for i := range out {
		if m := now - minutes + 1 + int64(i); t.begun && m <= t.last && m > t.last-minutes {
			out[i] = t.ring[m%minutes]
		}
	}
	return out
}

// state is how things stood within a slot: the worst of times, the last of all else.
type state struct {
	known bool
	// Mean times to the first byte in seconds, NaN without requests.
	all, hits, slowest float64
	level              int
	// By class, fast and slow; NaN where that is not known.
	busy, waiting, longest [2]float64
	volumes                [maxVolumes]float64
	backlog                float64
}

func unknownState() state {
	n := math.NaN()
	s := state{all: n, hits: n, slowest: n, backlog: n, busy: [2]float64{n, n}, waiting: [2]float64{n, n}, longest: [2]float64{n, n}}
	for i := range s.volumes {
		s.volumes[i] = n
	}
	return s
}

// history is the last hour.
type history struct {
	began  int64 // the minute in which it began
	all    track
	sites  map[string]*track
	states [slots]state
	slot   int64 // the newest
	before *Facts
}

func newHistory(began time.Time) *history {
	h := &history{began: began.Unix() / 60, sites: map[string]*track{}, slot: began.UnixNano() / int64(slotLength)}
	for i := range h.states {
		h.states[i] = unknownState()
	}
	return h
}

// observe takes in how karui stands.
func (h *history) observe(f *Facts) {
	// What is new came within the time between two looks: it belongs to its middle.
	middle := f.At
	if h.before != nil {
		middle = h.before.At.Add(f.At.Sub(h.before.At) / 2)
	}
	m := middle.Unix() / 60
	total, saved := countsOf(f.Unrouted), h.all.saved
	fresh, _ := h.unrouted(m, total)
	slow := map[string]float32{}
	for _, g := range f.Groups {
		if g.Site != "" && g.Requests > 0 {
			slow[g.Site] = float32(g.Mean.Seconds())
		}
	}
	for i := range f.Sites {
		s := &f.Sites[i]
		t := h.track(s.ID)
		if t == nil {
			continue
		}
		more, bytes := t.read(m, countsOf(s.Requests), s.SavedBytes)
		fresh.add(more)
		saved += bytes
		t.at(m).slowest = max(t.at(m).slowest, slow[s.ID])
	}
	now := h.all.base
	now.add(fresh)
	h.all.read(m, now, saved)
	h.see(f)
	h.before = f
}

// unrouted reads the counters of requests that belong to no site.
func (h *history) unrouted(m int64, now counts) (counts, uint64) {
	return h.track("").read(m, now, 0)
}

// track gives the hour of a site; nil where there are too many.
func (h *history) track(id string) *track {
	t := h.sites[id]
	if t == nil && (len(h.sites) < maxSites || id == "") {
		t = &track{}
		h.sites[id] = t
	}
	return t
}

// see notes the states.
func (h *history) see(f *Facts) {
	n := f.At.UnixNano() / int64(slotLength)
	for s := max(h.slot+1, n-int64(slots)+1); s <= n; s++ {
		h.states[s%int64(slots)] = unknownState()
	}
	h.slot = max(h.slot, n)
	s := &h.states[h.slot%int64(slots)]
	s.known, s.level = true, f.Dial.Level
	worst := func(at *float64, v float64) {
		if math.IsNaN(*at) || v > *at {
			*at = v
		}
	}
	for _, g := range f.Groups {
		if g.Requests == 0 {
			continue
		}
		switch {
		case g.Site != "":
			worst(&s.slowest, g.Mean.Seconds())
		case g.Name == "all":
			worst(&s.all, g.Mean.Seconds())
		case g.Name == "hits":
			worst(&s.hits, g.Mean.Seconds())
		}
	}
	if f.Workers != nil {
		for i, l := range []api.WorkerLoad{f.Workers.Fast, f.Workers.Slow} {
			worst(&s.waiting[i], float64(l.Waiting))
			worst(&s.longest[i], l.OldestWaitSeconds)
			if share, ok := h.busy(f, i); ok {
				s.busy[i] = share
			}
		}
	}
	if f.Cache != nil {
		for i, v := range f.Cache.Volumes[:min(len(f.Cache.Volumes), maxVolumes)] {
			if v.State != volumeOut {
				s.volumes[i] = 100 * v.UsedRatio
			}
		}
	}
	if f.Backlog != nil {
		s.backlog = float64(f.Backlog.total())
	}
}

// total counts what waits for all sites.
func (b *Backlog) total() int {
	n := 0
	for _, waiting := range b.Waiting {
		n += waiting
	}
	return n
}

// volumeOut is the state of a volume that gives errors: how full it is, is not known.
const volumeOut = "out"

// busy gives the share of a class's time that was used since the last look.
func (h *history) busy(f *Facts, class int) (float64, bool) {
	b := h.before
	if b == nil || b.Workers == nil {
		return 0, false
	}
	then, now := b.Workers.Fast, f.Workers.Fast
	if class == 1 {
		then, now = b.Workers.Slow, f.Workers.Slow
	}
	span := f.At.Sub(b.At).Seconds() * float64(now.Workers)
	if span <= 0 || now.BusySeconds < then.BusySeconds {
		return 0, false
	}
	return min((now.BusySeconds-then.BusySeconds)/span, 1), true
}

// seen gives the states of the hour that ends with the minute of now, oldest first.
func (h *history) seen(now time.Time) []state {
	first := (now.Unix()/60 - minutes + 1) * int64(time.Minute/slotLength)
	out := make([]state, slots)
	for i := range out {
		n := first + int64(i)
		if n > h.slot || n <= h.slot-int64(slots) {
			out[i] = unknownState()
			continue
		}
		out[i] = h.states[n%int64(slots)]
	}
	return out
}
