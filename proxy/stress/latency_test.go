package stress_test

import (
	"container/heap"
	"fmt"
	"testing"
	"time"

	"karui/proxy/stress"
)

var limits = stress.Config{Latency: 3 * time.Second, Window: 30 * time.Second, MinSamples: 20}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ending is a request that gets its first byte at a time.
type ending struct {
	at     time.Time
	timing stress.Timing
}

type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// world is a simulated clock with requests under way.
type world struct {
	t       *testing.T
	l       *stress.Latency
	now     time.Time
	ends    endings
	changes []stress.Change
	refused map[string]int
	passed  map[string]int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: start, refused: map[string]int{}, passed: map[string]int{}}
	w.l = stress.NewLatency(limits, start, func(c stress.Change) { w.changes = append(w.changes, c) })
	return w
}

// flow is requests of one group at a rate, each taking so long; 0 hangs for ever.
type flow struct {
	site   string // "" for hits
	perSec float64
	takes  func(now time.Time) time.Duration
}

func takes(d time.Duration) func(time.Time) time.Duration {
	return func(time.Time) time.Duration { return d }
}

// run lets the flows go on for a while.
func (w *world) run(d time.Duration, flows ...flow) {
	const step = 5 * time.Millisecond
	due := make([]float64, len(flows))
	for until := w.now.Add(d); w.now.Before(until); w.now = w.now.Add(step) {
		for len(w.ends) > 0 && !w.ends[0].at.After(w.now) {
			heap.Pop(&w.ends).(ending).timing.End(w.now)
		}
		for i, f := range flows {
			for due[i] += f.perSec * step.Seconds(); due[i] >= 1; due[i]-- {
				w.request(f)
			}
		}
	}
}

// request does as the proxy does for one request that leads its fetch.
func (w *world) request(f flow) {
	name := f.site
	if name == "" {
		name = stress.Hits
	}
	if !w.l.Admit(w.now) {
		w.refused[name]++
		return
	}
	g := w.l.Hits()
	if f.site != "" {
		if g = w.l.Misses(f.site); !g.Admit(w.now) {
			w.refused[name]++
			return
		}
	}
	w.passed[name]++
	timing := g.Begin(w.now)
	if d := f.takes(w.now); d > 0 {
		heap.Push(&w.ends, ending{w.now.Add(d), timing})
	}
}

// only wants that nothing but these groups has ever shed.
func (w *world) only(groups ...string) {
	w.t.Helper()
	for _, c := range w.changes {
		ok := !c.Shedding
		for _, g := range groups {
			ok = ok || c.Group == g
		}
		if !ok {
			w.t.Errorf("%s shed after %s with a mean of %s over %d", c.Group, c.At.Sub(start), c.Mean, c.Samples)
		}
	}
	if len(groups) > 0 && len(w.changes) == 0 {
		w.t.Errorf("nothing shed, want %v", groups)
	}
}

func TestHangingOriginShedsWithinSevenSeconds(t *testing.T) {
	w := newWorld(t)
	w.run(8*time.Second, flow{"shop", 50, takes(0)})
	if len(w.changes) != 1 || w.changes[0].Group != "shop" || !w.changes[0].Shedding {
		t.Fatalf("changes: %+v", w.changes)
	}
	if after := w.changes[0].At.Sub(start); after > 7*time.Second || after < 5*time.Second {
		t.Errorf("shed after %s", after)
	}
}

func TestHangAfterGoodTimesSheds(t *testing.T) {
	w := newWorld(t)
	w.run(60*time.Second, flow{"shop", 50, takes(50 * time.Millisecond)})
	w.only()
	w.run(30*time.Second, flow{"shop", 50, takes(0)})
	w.only("shop")
}

func TestOneFlightAloneNeverSheds(t *testing.T) {
	for _, d := range []time.Duration{0, 60 * time.Second} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			w := newWorld(t)
			// One fetch, however many viewers wait for it, among as few others as count.
			w.request(flow{"shop", 1, takes(d)})
			w.run(100*time.Second, flow{"shop", 0.7, takes(100 * time.Millisecond)})
			w.only()
		})
	}
}

func TestStartUpWithAColdOrigin(t *testing.T) {
	w := newWorld(t)
	for range limits.MinSamples - 1 {
		w.request(flow{"shop", 1, takes(6 * time.Second)})
	}
	w.run(20 * time.Second)
	w.only()
	if !w.l.Whole(w.now).IsZero() {
		t.Error("everything sheds")
	}
}

func TestSlowOriginOfOneSite(t *testing.T) {
	w := newWorld(t)
	flows := []flow{
		{"shop", 20, takes(5 * time.Second)},
		{"blog", 1, takes(50 * time.Millisecond)},
		{"", 3, takes(time.Millisecond)},
	}
	w.run(5*time.Minute, flows...)
	w.only("shop")
	if w.refused["blog"]+w.refused[stress.Hits] > 0 {
		t.Errorf("refused: %v", w.refused)
	}
	if w.refused["shop"] < 5000 || w.passed["shop"] < 280 {
		t.Errorf("shop: %d refused, %d passed, want one sample a second", w.refused["shop"], w.passed["shop"])
	}
	for _, c := range w.changes {
		if !c.Shedding {
			t.Errorf("ended after %s though it is as slow as ever", c.At.Sub(start))
		}
	}
}

func TestEndsSoonAfterTheOriginIsWell(t *testing.T) {
	w := newWorld(t)
	slow := 4 * time.Second
	flows := []flow{{"shop", 30, func(time.Time) time.Duration { return slow }}}
	w.run(time.Minute, flows...)
	w.only("shop")
	slow = 50 * time.Millisecond
	well := w.now
	w.run(time.Minute, flows...)
	last := w.changes[len(w.changes)-1]
	if last.Shedding || last.At.Sub(well) > 10*time.Second {
		t.Fatalf("last change: %+v, %s after the origin was well", last, last.At.Sub(well))
	}
	if len(w.changes) != 2 {
		t.Errorf("changes: %+v", w.changes)
	}
}

func TestStarvingWorkersShedNothing(t *testing.T) {
	w := newWorld(t)
	// Whoever waits for a worker waits for first_response.wait, then gets the original.
	w.run(2*time.Minute, flow{"shop", 100, takes(400 * time.Millisecond)}, flow{"", 100, takes(2 * time.Millisecond)})
	w.only()
}

func TestEverythingSlow(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute, flow{"shop", 5, takes(5 * time.Second)}, flow{"blog", 5, takes(5 * time.Second)},
		flow{"", 20, takes(4 * time.Second)})
	if w.l.Whole(w.now).IsZero() {
		t.Error("not everything sheds")
	}
}

func TestManySmallSitesSlowTogether(t *testing.T) {
	w := newWorld(t)
	for i := range 30 {
		w.request(flow{fmt.Sprintf("site-%d", i), 1, takes(0)})
	}
	w.run(5*time.Second, flow{"", 1, takes(time.Millisecond)})
	w.only(stress.All)
	if w.l.Whole(w.now).IsZero() {
		t.Error("not everything sheds")
	}
}

func TestTrafficLedElsewhere(t *testing.T) {
	w := newWorld(t)
	w.run(30*time.Second, flow{"", 20, takes(5 * time.Second)})
	if w.l.Whole(w.now).IsZero() {
		t.Fatal("not everything sheds")
	}
	w.run(limits.Window + time.Second)
	if since := w.l.Whole(w.now); !since.IsZero() {
		t.Errorf("everything sheds since %s although nobody asks", since)
	}
	last := w.changes[len(w.changes)-1]
	if last.Shedding || !last.Idle {
		t.Errorf("last change: %+v", last)
	}
}

func TestAtMostOneChangeInTenSeconds(t *testing.T) {
	w := newWorld(t)
	// The origin turns from well to ill and back as awkwardly as it can.
	w.run(10*time.Minute, flow{"shop", 50, func(now time.Time) time.Duration {
		if now.Second()/7%2 == 0 {
			return 12 * time.Second
		}
		return time.Millisecond
	}})
	last := map[string]time.Time{}
	for _, c := range w.changes {
		if before, found := last[c.Group]; found && c.At.Sub(before) < 10*time.Second {
			t.Errorf("%s changed %s after its last change", c.Group, c.At.Sub(before))
		}
		last[c.Group] = c.At
	}
	if len(w.changes) < 4 {
		t.Errorf("only %d changes: this tests nothing", len(w.changes))
	}
}

func TestDroppedTimingsLeaveNoTrace(t *testing.T) {
	w := newWorld(t)
	for range 100 {
		timing := w.l.Hits().Begin(w.now)
		w.now = w.now.Add(100 * time.Millisecond)
		timing.Drop(w.now)
	}
	w.now = w.now.Add(time.Minute)
	w.l.Admit(w.now)
	for _, s := range w.l.State(w.now) {
		t.Errorf("left: %+v", s)
	}
	w.only()
}

func TestRetainAndConfigure(t *testing.T) {
	w := newWorld(t)
	old := w.l.Misses("old").Begin(w.now)
	kept := w.l.Misses("kept").Begin(w.now)
	w.l.Retain([]string{"kept"})
	w.now = w.now.Add(time.Second)
	old.End(w.now)
	kept.End(w.now)
	for _, s := range w.l.State(w.now) {
		if s.Group != "kept" && s.Group != stress.All || s.Samples != 1 || s.Mean != time.Second {
			t.Errorf("state: %+v", s)
		}
	}
	waiting := w.l.Misses("kept").Begin(w.now)
	w.l.Configure(stress.Config{Latency: time.Second, Window: time.Second, MinSamples: 1})
	waiting.End(w.now.Add(time.Hour))
	w.now = w.now.Add(2 * time.Hour)
	for _, s := range w.l.State(w.now) {
		t.Errorf("left: %+v", s)
	}
}

// What a group took out of the sum of all, and what its requests take out when
// they end, must be the same: else the sum drifts.
func TestAllIsTheSumOfItsGroups(t *testing.T) {
	w := newWorld(t)
	slow := true
	w.run(20*time.Minute, flow{"a", 30, func(now time.Time) time.Duration {
		if slow = now.Minute()%3 == 0; slow {
			return 9 * time.Second
		}
		return 20 * time.Millisecond
	}}, flow{"b", 10, takes(700 * time.Millisecond)}, flow{"", 10, takes(time.Millisecond)})
	if len(w.changes) < 4 {
		t.Errorf("only %d changes: this tests nothing", len(w.changes))
	}
	w.only("a")
	w.run(3 * time.Minute)
	for _, s := range w.l.State(w.now) {
		t.Errorf("left: %+v", s)
	}
}

// BenchmarkRequest is what one hit costs, with a thousand sites and ten thousand
// fetches waiting.
func BenchmarkRequest(b *testing.B) {
	l := stress.NewLatency(limits, start, nil)
	now := start
	for i := range 10_000 {
		now = now.Add(time.Millisecond / 10)
		l.Misses(fmt.Sprintf("site-%d", i%1000)).Begin(now)
	}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(20 * time.Microsecond)
		l.Admit(now)
		l.Hits().Begin(now).End(now)
	}
}

func BenchmarkMiss(b *testing.B) {
	l := stress.NewLatency(limits, start, nil)
	now := start
	groups := make([]*stress.Group, 1000)
	for i := range groups {
		groups[i] = l.Misses(fmt.Sprintf("site-%d", i))
	}
	for i := range 10_000 {
		groups[i%1000].Begin(now)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(100 * time.Microsecond)
		g := groups[i%1000]
		g.Admit(now)
		g.Begin(now).End(now)
	}
}
