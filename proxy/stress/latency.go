package stress

import (
	"slices"
	"sync"
	"time"
)

// Config says when latency is stress.
type Config struct {
	// Latency is the mean time to the first byte from which on a group sheds; 0 for
	// never.
	Latency time.Duration
	// Window is the time over which the mean is taken.
	Window time.Duration
	// MinSamples are the requests without which nothing is judged.
	MinSamples int
}

const (
	// settle is the time between two changes of one group.
	settle = 10 * time.Second
	// sampleEvery is how often a request goes through while a group sheds.
	sampleEvery = time.Second
	// lastSamples are the finished samples that decide about the end.
	lastSamples = 3
	// enough is the share of the limit, in percent, below which it ends.
	enough = 80
)

// Names of the groups that are not the misses of a site.
const (
	// Hits are answers from the cache, of all sites.
	Hits = "hits"
	// All is what every group amounts to.
	All = "all"
)

// Latency watches the time to the first byte, by groups: the answers from the
// cache are one, the fetches from origins are one for each site. A fetch counts
// once, however many viewers wait for it.
//
// A group sheds when the mean of what has finished within the window reaches the
// limit, what still waits counted with its age as soon as that exceeds the mean of
// the finished. One alone never makes a group shed while MinSamples is 4 or more:
// it counts for at most the limit times half of MinSamples.
//
// Everything sheds when that holds for all groups together, those left out that
// shed by themselves already: what they do to the mean is dealt with. It also does
// when the hits shed, since whether a request is a hit is known only after the look
// that is slow.
//
// While a group sheds, one request a second is let through as a sample. It ends
// when the last three finished samples take less than 80 % of the limit on
// average, or after a window without any request, when the traffic may have been
// led elsewhere. A group changes at most once in 10 s.
type Latency struct {
	changed func(Change)

	mu      sync.Mutex
	config  Config
	epoch   time.Time
	all     *Group
	hits    *Group
	sites   map[string]*Group
	whole   time.Time // since when everything sheds, zero while it does not
	pending []Change
}

// Change says that a group began or ceased to shed.
type Change struct {
	At time.Time
	// Group is All, Hits or the id of a site whose misses it is about.
	Group    string
	Site     bool
	Shedding bool
	// Mean and Samples are what it was judged by.
	Mean    time.Duration
	Samples int64
	// Idle: it ended since no request came for a window.
	Idle bool
}

// Group is a part of the requests that is judged by itself.
type Group struct {
	l        *Latency
	name     string
	site     bool
	window   window
	round    uint64 // grows with every change: what began in another is not counted
	wholes   uint64 // the round of all that the window belongs to
	shedding bool
	changes  int
	finished int
	samples  [lastSamples]int64
	// Times, in microseconds: of the last change, the last judgement, the last
	// request, and the last sample let through.
	since, judged, asked, sampled int64
}

// NewLatency gives one that has seen nothing. The clock of all calls begins at
// now; changed is told of changes, one after the other, nil for nobody.
func NewLatency(c Config, now time.Time, changed func(Change)) *Latency {
	if changed == nil {
		changed = func(Change) {}
	}
	// An hour earlier, so that times a little before now have a place, too.
	l := &Latency{config: c, epoch: now.Add(-time.Hour), changed: changed, sites: map[string]*Group{}}
	l.all, l.hits = l.group(All, false), l.group(Hits, false)
	return l
}

// Configure puts other limits in force. What was counted is forgotten if the
// window is another.
func (l *Latency) Configure(c Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.config
	l.config = c
	for _, g := range l.groups() {
		fresh := l.window()
		if old.Window != c.Window {
			g.window = fresh
			g.round++
		}
		g.window.cap = fresh.cap
	}
}

// Retain forgets the groups of sites that are not among ids.
func (l *Latency) Retain(ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, g := range l.sites {
		if !slices.Contains(ids, id) {
			if !g.shedding && g.wholes == l.all.round {
				l.all.window.without(&g.window, 0)
			}
			g.round++ // what is under way is counted nowhere
			delete(l.sites, id)
		}
	}
}

// Hits is the group of answers from the cache.
func (l *Latency) Hits() *Group { return l.hits }

// Misses is the group of a site's fetches.
func (l *Latency) Misses(site string) *Group {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.sites[site]
	if g == nil {
		g = l.group(site, true)
		l.sites[site] = g
	}
	return g
}

func (l *Latency) group(name string, site bool) *Group {
	return &Group{l: l, name: name, site: site, window: l.window()}
}

func (l *Latency) window() window {
	c := l.config
	return window{
		width: max(c.Window.Microseconds()/slots, 1),
		cap:   c.Latency.Microseconds() * int64(max(c.MinSamples/2, 2)),
	}
}

func (l *Latency) groups() []*Group {
	all := []*Group{l.all, l.hits}
	for _, g := range l.sites {
		all = append(all, g)
	}
	return all
}

// micros gives the time on the windows' scale.
func (l *Latency) micros(t time.Time) int64 { return max(t.Sub(l.epoch).Microseconds(), 0) }

func (l *Latency) time(at int64) time.Time {
	return l.epoch.Add(time.Duration(at) * time.Microsecond)
}

// stamp is micros for what the windows of the group and of all are to count in the
// same slot: calls come with times a little out of order.
func (g *Group) stamp(t time.Time) int64 {
	all := &g.l.all.window
	return max(g.l.micros(t), all.slot*all.width, g.window.slot*g.window.width)
}

// unlock ends a call, and tells of what it changed.
func (l *Latency) unlock() {
	pending := l.pending
	l.pending = nil
	l.mu.Unlock()
	for _, c := range pending {
		l.changed(c)
	}
}

// Admit tells whether a request may go on at all. Every request is to be put
// before it once.
func (l *Latency) Admit(now time.Time) bool {
	l.mu.Lock()
	defer l.unlock()
	at := l.micros(now)
	all, hits := l.all.admit(at), l.hits.admit(at)
	return all && hits
}

// Admit tells whether a fetch of the group may begin.
func (g *Group) Admit(now time.Time) bool {
	g.l.mu.Lock()
	defer g.l.unlock()
	return g.admit(g.l.micros(now))
}

// Sheds is Admit for those that only want to know: it takes no sample's place.
func (g *Group) Sheds(now time.Time) bool {
	g.l.mu.Lock()
	defer g.l.unlock()
	g.judge(g.l.micros(now))
	return g.shedding
}

// Whole tells since when everything sheds; zero while it does not.
func (l *Latency) Whole(now time.Time) time.Time {
	l.mu.Lock()
	defer l.unlock()
	l.all.judge(l.micros(now))
	l.hits.judge(l.micros(now))
	return l.whole
}

// admit judges the group, and picks the samples while it sheds. The lock is held.
func (g *Group) admit(at int64) bool {
	g.judge(at)
	g.asked = at
	if !g.shedding {
		return true
	}
	if at-g.sampled < sampleEvery.Microseconds() {
		return false
	}
	g.sampled = at
	return true
}

// judge changes the group's state where it is time. The lock is held.
func (g *Group) judge(at int64) {
	switch {
	case g.shedding:
		g.judgeSamples(at)
	case at-g.judged < g.window.width/8:
	default:
		g.judged = at
		g.judgeWindow(at)
	}
}

// judgeSamples ends the shedding where that can be told.
func (g *Group) judgeSamples(at int64) {
	if g.settling(at) {
		return
	}
	c := &g.l.config
	n, mean := g.lately()
	idle := at-g.asked >= c.Window.Microseconds()
	if idle || n == lastSamples && mean*100 < c.Latency*enough {
		g.change(at, Change{Mean: mean, Samples: int64(n), Idle: idle})
	}
}

// judgeWindow begins to shed where that is due.
func (g *Group) judgeWindow(at int64) {
	if g.settling(at) || g != g.l.all && g.l.all.shedding {
		return
	}
	v := g.verdict(at)
	if v.over && g == g.l.all {
		v = g.l.rest(at)
	}
	if v.over {
		g.change(at, Change{Shedding: true, Mean: v.mean, Samples: v.n})
	}
}

// settling tells whether the last change is too fresh for another one.
func (g *Group) settling(at int64) bool {
	return g.changes > 0 && at-g.since < settle.Microseconds()
}

// verdict is what a window shows: over, or that it would be with more of the
// requests that are there.
type verdict struct {
	n          int64
	mean       time.Duration
	over, slow bool
}

// verdict judges what the group has counted. The lock is held.
func (g *Group) verdict(at int64) verdict {
	g.follow(at)
	return g.l.config.judge(&g.window, at)
}

func (c *Config) judge(w *window, at int64) verdict {
	n, micros, present := w.judged(at)
	v := verdict{n: n, mean: time.Duration(micros) * time.Microsecond}
	slow := c.Latency > 0 && v.mean >= c.Latency
	v.over, v.slow = slow && n >= int64(c.MinSamples), slow && present >= int64(c.MinSamples)
	return v
}

// rest judges all without the groups that can answer for themselves: those that
// begin to shed now, and those that will as soon as they may. It looks at every
// group, and is called only when everything together is too slow.
func (l *Latency) rest(at int64) verdict {
	var slow []*Group
	for _, g := range l.groups()[1:] {
		if g.shedding {
			continue
		}
		switch v := g.verdict(at); {
		case v.over && !g.settling(at):
			g.change(at, Change{Shedding: true, Mean: v.mean, Samples: v.n})
		case v.slow:
			slow = append(slow, g)
		}
	}
	others := l.all.window
	for _, g := range slow {
		others.without(&g.window, at)
	}
	return l.config.judge(&others, at)
}

// lately gives how many samples have finished, at most three, and their mean.
func (g *Group) lately() (int, time.Duration) {
	n := min(g.finished, lastSamples)
	if n == 0 {
		return 0, 0
	}
	total := int64(0)
	for _, d := range g.samples[:n] {
		total += d
	}
	return n, time.Duration(total/int64(n)) * time.Microsecond
}

// change turns shedding on or off. What was counted before says nothing about
// what comes after.
func (g *Group) change(at int64, c Change) {
	l := g.l
	if g != l.all && c.Shedding {
		l.all.window.without(&g.window, at)
	}
	g.shedding, g.since, g.sampled, g.finished, g.asked = c.Shedding, at, at, 0, at
	g.changes++
	g.round++
	g.window.reset()
	switch everything := l.all.shedding || l.hits.shedding; {
	case !everything:
		l.whole = time.Time{}
	case l.whole.IsZero():
		l.whole = l.time(at)
	}
	c.At, c.Group, c.Site = l.time(at), g.name, g.site
	l.pending = append(l.pending, c)
}

// follow forgets what the group counted before everything began or ceased to shed.
func (g *Group) follow(at int64) {
	if all := g.l.all; g != all && g.wholes != all.round {
		g.wholes = all.round
		g.window.advance(at)
		g.window.reset()
		g.round++
	}
}

// Timing is one that waits for its first byte.
type Timing struct {
	g          *Group
	start      int64
	own, whole uint64 // the rounds it began in
	counted    bool   // among all
}

// Begin counts one in. End or Drop must follow.
func (g *Group) Begin(now time.Time) Timing {
	l := g.l
	l.mu.Lock()
	defer l.unlock()
	at := g.stamp(now)
	g.follow(at)
	g.window.begin(at)
	t := Timing{g: g, start: at, own: g.round, whole: l.all.round, counted: !g.shedding}
	if t.counted {
		l.all.window.begin(at)
	}
	return t
}

// End says that the first byte came, or that none will. A zero Timing has no end.
func (t Timing) End(now time.Time) { t.finish(now, true) }

// Drop says that it turned out to be something else.
func (t Timing) Drop(now time.Time) { t.finish(now, false) }

func (t Timing) finish(now time.Time, counts bool) {
	if t.g == nil {
		return
	}
	l := t.g.l
	l.mu.Lock()
	defer l.unlock()
	at := t.g.stamp(now)
	of := func(g *Group, round uint64) {
		if g.round != round {
			return
		}
		if !counts {
			g.window.leave(t.start, at)
			return
		}
		g.window.end(t.start, at)
		if g.shedding {
			g.samples[g.finished%lastSamples] = at - t.start
			g.finished++
		}
	}
	// What a group took out of all when it began to shed is not there to leave it.
	if t.counted && t.g.round == t.own {
		of(l.all, t.whole)
	}
	of(t.g, t.own)
}

// GroupState is how one group stands.
type GroupState struct {
	// Group is All, Hits or, where Site is set, a site's id.
	Group    string
	Site     bool
	Shedding bool
	Since    time.Time // of the last change
	// Mean is the time to the first byte: over the window, or of the last samples
	// while it sheds. Samples are those it is taken of.
	Mean    time.Duration
	Samples int64
}

// State gives the groups that shed or have seen requests within the window.
func (l *Latency) State(now time.Time) []GroupState {
	l.mu.Lock()
	defer l.unlock()
	var states []GroupState
	at := l.micros(now)
	for _, g := range l.groups() {
		g.judge(at)
		s := GroupState{Group: g.name, Site: g.site, Shedding: g.shedding}
		if g.changes > 0 {
			s.Since = l.time(g.since)
		}
		if g.shedding {
			n, mean := g.lately()
			s.Samples, s.Mean = int64(n), mean
		} else {
			v := g.verdict(at)
			if s.Samples, s.Mean = v.n, v.mean; v.n == 0 {
				continue
			}
		}
		states = append(states, s)
	}
	return states
}
