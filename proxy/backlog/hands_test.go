package backlog

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"karui/cache"
)

// origins is a maker that waits for each site's origin.
type origins struct {
	takes map[string]time.Duration

	mu     sync.Mutex
	busy   map[string]bool
	made   map[string]int
	most   int
	double bool
}

func (*origins) Idle() bool       { return true }
func (*origins) Open(string) bool { return true }

func (o *origins) Make(ctx context.Context, key cache.Key) Verdict {
	o.mu.Lock()
	o.double = o.double || o.busy[key.Site]
	o.busy[key.Site] = true
	o.most = max(o.most, len(o.busy))
	o.mu.Unlock()
	select {
	case <-time.After(o.takes[key.Site]):
	case <-ctx.Done():
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.busy, key.Site)
	o.made[key.Site]++
	return Made
}

// A slow origin costs its own site its turns, and not the others; nor do many.
func TestASlowOriginHoldsUpItsOwnSite(t *testing.T) {
	for slowSites, wait := range map[int]time.Duration{
		1: 0,
		// At the first time, nobody knows them.
		12: 20 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			limits := small()
			limits.Entries, limits.Bytes = 10_000, 64<<20
			b := Open(Options{Limits: limits})
			o := &origins{busy: map[string]bool{}, made: map[string]int{}, takes: map[string]time.Duration{"healthy": 50 * time.Millisecond}}
			for i := range 300 {
				b.Ask(key("healthy", fmt.Sprintf("/%d", i)), Missing)
				for n := range slowSites {
					site := fmt.Sprint("slow", n)
					o.takes[site] = 16 * time.Second
					b.Ask(key(site, fmt.Sprintf("/%d", i)), Missing)
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			var ended sync.WaitGroup
			ended.Go(func() { b.Work(ctx, o) })
			// All slow ones have had their first turn after as many rounds of four hands.
			<-time.After(wait * time.Duration(slowSites+handsMost-1) / handsMost)
			o.mu.Lock()
			before, others := o.made["healthy"], 0
			o.mu.Unlock()
			<-time.After(time.Minute)
			o.mu.Lock()
			n := o.made["healthy"] - before
			for site, made := range o.made {
				if site != "healthy" {
					others += made
				}
			}
			if n < 90 || others < 3 || o.double || o.most > handsMost {
				t.Errorf("%d slow sites: %d of the healthy one in a minute, %d of the slow ones, %d at once, two of one site: %v", slowSites, n, others, o.most, o.double)
			}
			o.mu.Unlock()
			cancel()
			ended.Wait()
		})
	}
}

// What is known of a site's origin follows it.
func TestHands(t *testing.T) {
	h := hands{busy: map[string]bool{}, slow: map[string]bool{}}
	turn := func(site string, took time.Duration, v Verdict) {
		t.Helper()
		if !h.may(site) {
			t.Fatalf("%s may not", site)
		}
		h.begin(site)
		h.end(site, took, v)
	}
	for i := range handsMost {
		turn(fmt.Sprint(i), slow+1, Trouble)
	}
	for i := range handsMost - 1 {
		h.begin(fmt.Sprint(i))
	}
	last := fmt.Sprint(handsMost - 1)
	if h.may(last) || h.may("0") || !h.may("new") {
		t.Errorf("may: %v %v %v", h.may(last), h.may("0"), h.may("new"))
	}
	h.end("0", slow+1, Made)
	turn(last, 0, Busy) // nothing was asked of its origin
	h.begin("0")
	if h.may(last) {
		t.Error("a look made a slow site quick")
	}
	h.end("0", slow, Made)
	turn(last, slow, Made)
	h.begin("0")
	if !h.may(last) || len(h.slow) != handsMost-2 {
		t.Errorf("%v", h)
	}
	turn(last, slow+1, Void)
	if h.slow[last] {
		t.Error("a site that is no more is remembered")
	}
}
