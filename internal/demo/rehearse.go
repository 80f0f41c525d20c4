package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// rehearsalLimit bounds one rehearsal, whose own waits are far shorter.
const rehearsalLimit = 90 * time.Second

// point is one point of the watchdog's checklist, as its command prints it.
type point struct {
	Name   string `json:"name"`
	Status string `json:"status"` // pass, warn, fail or skipped
	Text   string `json:"text"`
	Hint   string `json:"hint"`
}

// rehearsal is the last one, or the one under way.
type rehearsal struct {
	mu      sync.Mutex
	at      time.Time
	running bool
	points  []point
	failure string // it could not be rehearsed at all
	passed  bool
}

// begin starts anew. False: one is under way.
func (r *rehearsal) begin(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		return false
	}
	r.at, r.running, r.points, r.failure, r.passed = now, true, nil, "", false
	return true
}

// heard takes a line of the command.
func (r *rehearsal) heard(line string) {
	var p point
	if json.Unmarshal([]byte(line), &p) != nil || p.Name == "" || p.Status == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.points) < 100 {
		r.points = append(r.points, p)
	}
}

func (r *rehearsal) end(passed bool, failure string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running, r.passed, r.failure = false, passed, failure
}

// run runs the watchdog's command to its end.
func (r *rehearsal) run(ctx context.Context, s *starter, how spawn) (passed bool) {
	how.heard = r.heard
	c, err := s.spawn(how)
	if err != nil {
		r.end(false, err.Error())
		return false
	}
	timer := time.NewTimer(rehearsalLimit)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.stop(stopGrace)
	case <-ctx.Done():
		c.stop(stopGrace)
	}
	passed = c.state.Success()
	failure := ""
	if r.mu.Lock(); len(r.points) == 0 {
		failure = fmt.Sprintf("It could not be rehearsed (%s)%s", c.state, c.log.excerpt())
	}
	r.mu.Unlock()
	r.end(passed, failure)
	return passed
}

// view is what the page shows of it; nil before the first.
func (r *rehearsal) view() *rehearsalView {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() {
		return nil
	}
	v := &rehearsalView{}
	for _, p := range r.points {
		same := func(q pointView) bool { return q.Name == p.Name && q.Status == p.Status && q.Hint == p.Hint }
		if i := slices.IndexFunc(v.Points, same); i >= 0 { // one for each behaviour
			v.Points[i].More++
			continue
		}
		tone := map[string]string{"pass": toneGood, "warn": toneWarn, "fail": toneBad}[p.Status]
		if tone == "" {
			tone = tonePlain
		}
		v.Points = append(v.Points, pointView{point: p, Tone: tone})
	}
	at := r.at.Local().Format(time.TimeOnly)
	switch {
	case r.running:
		v.Title = fmt.Sprintf("Rehearsal of %s: under way, %d points so far", at, len(v.Points))
	case r.failure != "":
		v.Title = r.failure
	case r.passed:
		v.Title = fmt.Sprintf("Rehearsal of %s: passed", at)
	default:
		v.Title = fmt.Sprintf("Rehearsal of %s: FAILED", at)
	}
	return v
}

// now tells whether one is under way.
func (r *rehearsal) now() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}
