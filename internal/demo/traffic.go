package demo

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// The steady traffic of the sample site: 4 visits a second, of which each
// coldEvery-th is for an image that nobody has asked for yet. A real site gets one
// visit a second, and no made-up addresses.
const (
	visitEvery     = 250 * time.Millisecond
	visitEverySite = time.Second
	coldEvery      = 20
	// visitsAtOnce bounds what waits while karui is slow.
	visitsAtOnce = 16
)

// traffic visits the site on and on.
type traffic struct {
	viewer   *viewer
	pictures func() []picture
	every    time.Duration
	cold     *cold // nil: no made-up addresses
	came     func(kind, string, answer)
}

// run visits until ctx ends, and returns when all visits are over.
func (t *traffic) run(ctx context.Context) {
	var visits sync.WaitGroup
	defer visits.Wait()
	room := make(chan struct{}, visitsAtOnce)
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		target, k := t.next(n)
		if target == "" {
			continue
		}
		select {
		case room <- struct{}{}:
		default: // all visitors wait for an answer
			continue
		}
		visits.Go(func() {
			defer func() { <-room }()
			a := t.viewer.visit(ctx, k, target)
			if ctx.Err() == nil { // what was left because of the end is nobody's fate
				t.came(k, target, a)
			}
		})
	}
}

// next is who visits what: every picture by every kind of browser, in turn.
func (t *traffic) next(n int) (string, kind) {
	pictures := t.pictures()
	if len(pictures) == 0 {
		return "", kind{}
	}
	all := kinds()
	k := all[n/len(pictures)%len(all)]
	p := pictures[n%len(pictures)]
	if t.cold != nil && n%coldEvery == coldEvery-1 {
		return t.cold.address(p.Path), k
	}
	return p.Path, k
}

// cold makes addresses of images that nobody has asked for yet: the same picture
// with another query, which both caches take for another image.
type cold struct{ count atomic.Int64 }

func (c *cold) address(path string) string {
	return path + "?visit=" + strconv.FormatInt(c.count.Add(1), 10)
}
