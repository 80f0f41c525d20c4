package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// originFaults are what the origin does to karui. On its way to the edge it stays
// well, but for the outage, in which nobody could help.
func originFaults() []fault {
	return []fault{
		{name: "slow-origin", area: onOrigin, draw: func(p *proof, rng *rand.Rand) deed {
			t := trouble{hold: between(rng, 100*time.Millisecond, 1200*time.Millisecond), trickle: between(rng, 10*time.Millisecond, 700*time.Millisecond)}
			return p.whileOrigin(rng, t, fmt.Sprintf("%v to the head, %v to each half of the body", t.hold, t.trickle))
		}},
		{name: "origin-errors", area: onOrigin, draw: func(p *proof, rng *rand.Rand) deed {
			status := []int{408, 425, 429, 500, 502, 503, 504}[rng.IntN(7)]
			return p.whileOrigin(rng, trouble{status: status}, fmt.Sprintf("status %d", status))
		}},
		{name: "origin-cuts", area: onOrigin, draw: func(p *proof, rng *rand.Rand) deed {
			d := p.whileOrigin(rng, trouble{cut: true}, "the first answer for each target broken off in its middle")
			return deed{d.what, func(ctx context.Context) error {
				defer p.history.mayCut()()
				return d.do(ctx)
			}}
		}},
		{name: "origin-hangs", area: onOrigin, draw: func(p *proof, rng *rand.Rand) deed {
			return p.whileOrigin(rng, trouble{hang: true}, "takes connections and never answers")
		}},
		{name: "origin-refuses", area: onOrigin, draw: func(p *proof, rng *rand.Rand) deed {
			hold := between(rng, 500*time.Millisecond, 2*time.Second)
			return deed{fmt.Sprintf("refuses connections for %v", hold), func(ctx context.Context) error {
				done := p.history.mayCut() // bodies under way are cut by the origin
				p.system.origin.way.shut()
				done()
				pause(ctx, hold)
				return p.system.origin.way.open()
			}}
		}},
		{name: "outage", area: onOrigin, draw: func(p *proof, rng *rand.Rand) deed {
			hold := between(rng, 300*time.Millisecond, 1200*time.Millisecond)
			return deed{fmt.Sprintf("the true origin answers 503 to everybody for %v", hold), func(ctx context.Context) error {
				defer p.history.outage()()
				for _, d := range []*door{p.system.origin.way, p.system.origin.direct} {
					d.behave(trouble{status: http.StatusServiceUnavailable})
					defer d.behave(trouble{})
				}
				pause(ctx, hold)
				return nil
			}}
		}},
	}
}

// whileOrigin lets the origin behave badly to karui for some seconds.
func (p *proof) whileOrigin(rng *rand.Rand, t trouble, words string) deed {
	hold := between(rng, time.Second, 3*time.Second)
	return deed{fmt.Sprintf("%s for %v", words, hold), func(ctx context.Context) error {
		p.system.origin.way.behave(t)
		defer p.system.origin.way.behave(trouble{})
		pause(ctx, hold)
		return nil
	}}
}
