// Package drill injects faults into places on loopback and measures what share of
// requests still succeeds, at each level of retry.level.
//
// Guaranteed: everything happens on loopback addresses of this machine, over real
// sockets, with the same code that fetches in production; a drill ends by itself,
// or with its context, and leaves nothing running. Not guaranteed: that the times
// are those of a real network. The limits of time are shorter than in production
// and in the same proportions, so that a drill does not take an afternoon.
package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"karui/proxy/origin"
)

// Options are what is drilled. Zero values mean everything, or the default.
type Options struct {
	Faults []Fault
	// Rates are the shares of requests that a fault hits, over 0 and up to 1.
	Rates  []float64
	Levels []int
	// Requests is how many are sent for each fault, rate and level, and a quarter of
	// that where each needs a TLS session of its own. Default 500.
	Requests int
	// PerSecond is how many of them are sent in a second. Default 250.
	PerSecond int
	// Both: both places misbehave. Else one of two does.
	Both bool
	// AtOnce is how many cells are measured beside one another. Default 6.
	AtOnce int

	limits origin.Config // of time; a test on a busy machine has longer ones
}

// Bounds of a drill.
const (
	maxRequests  = 100000
	maxPerSecond = 5000
	maxAtOnce    = 32
)

// Rates are the usual ones.
func Rates() []float64 { return []float64{0.01, 0.1, 0.5, 1} }

// Levels are all there are.
func Levels() []int { return []int{0, 1, 2, 3} }

func (o Options) withDefaults() (Options, error) {
	if len(o.Faults) == 0 {
		o.Faults = Faults()
	}
	if len(o.Rates) == 0 {
		o.Rates = Rates()
	}
	if len(o.Levels) == 0 {
		o.Levels = Levels()
	}
	set := func(n *int, standard int) {
		if *n == 0 {
			*n = standard
		}
	}
	set(&o.Requests, 500)
	set(&o.PerSecond, 250)
	set(&o.AtOnce, 6)
	if o.limits == (origin.Config{}) {
		o.limits = limits
	}
	var errs []error
	for _, f := range o.Faults {
		if !slices.Contains(Faults(), f) {
			errs = append(errs, fmt.Errorf("there is no fault %q: use one of %q", f, Faults()))
		}
	}
	for _, r := range o.Rates {
		if !(r > 0 && r <= 1) {
			errs = append(errs, fmt.Errorf("a rate of %g: it must be over 0 and at most 1", r))
		}
	}
	for _, l := range o.Levels {
		if l < 0 || l > 3 {
			errs = append(errs, fmt.Errorf("a level of %d: it must be 0 to 3", l))
		}
	}
	bound := func(name string, n, most int) {
		if n < 1 || n > most {
			errs = append(errs, fmt.Errorf("%s is %d: it must be 1 to %d", name, n, most))
		}
	}
	bound("the number of requests", o.Requests, maxRequests)
	bound("the number of requests a second", o.PerSecond, maxPerSecond)
	bound("the number of measurements at once", o.AtOnce, maxAtOnce)
	return o, errors.Join(errs...)
}

// Cell is what was measured for one fault, rate and level.
type Cell struct {
	Fault    Fault   `json:"fault"`
	Rate     float64 `json:"rate"`
	Level    int     `json:"level"`
	Requests int     `json:"requests"`
	// Good is the share of requests that karui answered well.
	Good float64 `json:"good"`
	// GoodAtEdge is that after the edge has asked the true origin for what karui
	// answered with 503. The true origin is the place that misbehaves.
	GoodAtEdge float64 `json:"good_at_edge"`
	// Added is how many tries came on top of one for each request, by karui and by
	// the edge, as a share of the requests.
	Added float64 `json:"added"`
	// P50 and P99 are times to the whole answer, the edge's second request included.
	P50 Millis `json:"p50_ms"`
	P99 Millis `json:"p99_ms"`
	// Retries tells how they stood at the end: on, off or cut.
	Retries string `json:"retries"`
}

// Millis is a time that is written in milliseconds.
type Millis time.Duration

// MarshalJSON implements json.Marshaler.
func (m Millis) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.1f", float64(m)/float64(time.Millisecond)), nil
}

// Report is a whole drill.
type Report struct {
	Cells []Cell `json:"cells"`
	// Deadline is the limit to the first byte that held.
	Deadline Millis `json:"deadline_ms"`
	Both     bool   `json:"both_places"`
}

// Run measures every cell. Progress, unless nil, is told how many are done. When
// ctx ends, it returns what was measured until then, with ctx's error.
func Run(ctx context.Context, o Options, progress func(done, all int)) (Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Report{}, err
	}
	report := Report{Deadline: Millis(o.limits.Deadline), Both: o.Both}
	var jobs []Cell
	for _, f := range o.Faults {
		for _, r := range o.Rates {
			for _, l := range o.Levels {
				n := o.Requests
				if f == TLSError {
					n = max(n/handshake, 1)
				}
				jobs = append(jobs, Cell{Fault: f, Rate: r, Level: l, Requests: n})
			}
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var running sync.WaitGroup
	slots := make(chan struct{}, o.AtOnce)
	few := make(chan struct{}, dear)
	done := make([]bool, len(jobs))
	finished := 0
	for i := range jobs {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-slots }()
			if jobs[i].Fault == TLSError {
				few <- struct{}{} // each one ends, also with ctx
				defer func() { <-few }()
			}
			cell, err := measure(ctx, jobs[i], o)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				cancel(err)
			case ctx.Err() == nil:
				jobs[i], done[i] = cell, true
				finished++
				if progress != nil {
					progress(finished, len(jobs))
				}
			}
		})
	}
	running.Wait()
	for i, cell := range jobs {
		if done[i] {
			report.Cells = append(report.Cells, cell)
		}
	}
	return report, context.Cause(ctx)
}
