package convert

import (
	"context"
	"time"
)

// secondStart is after what time a second process is started beside one that is not ready yet. It takes about 0.1 s;
// one that hangs must not leave its seat empty for more than a second.
const secondStart = 700 * time.Millisecond

// launched is what came of starting a process.
type launched struct {
	proc  *process
	ready ready
	err   error
}

// launch starts a process for a seat and waits until it is ready. When that takes long, a second one is tried at the
// same time, and the first that is ready is the one.
func (p *Pool) launch(at seat) (*process, ready, error) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	results := make(chan launched)
	try := func() {
		proc, r, err := startProcess(ctx, p.starter, p.set, at, p.cfg)
		results <- launched{proc, r, err}
	}
	timer := time.NewTimer(secondStart)
	defer timer.Stop()
	go try()
	var first launched
	for trying := 1; trying > 0; {
		select {
		case got := <-results:
			trying--
			switch {
			case got.err != nil && first.proc != nil:
				p.tally.lost(CauseUnused) // that it would never have been ready is not known
			case got.err != nil && p.ctx.Err() == nil:
				p.tally.lost(CauseStart)
			case got.err == nil && first.proc != nil: // both at the same time
				got.proc.stop(CauseUnused)
				p.tally.lost(CauseUnused)
				continue
			}
			if first.proc == nil {
				first = got
			}
			if first.proc != nil {
				cancel() // of the other, which is waited for
			}
		case <-timer.C:
			if first.proc == nil {
				trying++
				go try()
			}
		}
	}
	return first.proc, first.ready, first.err
}
