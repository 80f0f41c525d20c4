package cache

import (
	"context"
	"time"
)

// pace slows work down that goes over many files and is in no hurry: it rests as long
// as it worked. So it takes at most half of one processor, or half of what a disk can
// do with one operation at a time, however fast either is, and hits get the rest.
type pace struct {
	now   func() time.Time
	steps int
	since time.Time
}

const (
	// paceSteps are between two looks at the clock.
	paceSteps = 32
	// paceShift is how long work goes on before a rest; shorter ones would cost more
	// than they bring.
	paceShift = 2 * time.Millisecond
	// paceRest is the longest one: a disk that hung has rested already.
	paceRest = 100 * time.Millisecond
)

func newPace(now func() time.Time) *pace { return &pace{now: now, since: now()} }

// step is called after each file. It gives the error of ctx once that is over.
func (p *pace) step(ctx context.Context) error {
	if p.steps++; p.steps%paceSteps != 0 {
		return nil
	}
	worked := p.now().Sub(p.since)
	if worked < paceShift {
		return ctx.Err()
	}
	timer := time.NewTimer(min(worked, paceRest))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	p.since = p.now()
	return nil
}
