package cloudfront

import (
	"net/http"
	"time"
)

// DropPoint is the moment at which a connection is cut.
type DropPoint int

const (
	dropNothing DropPoint = iota
	// DropBefore cuts before anything was done.
	DropBefore
	// DropAfter cuts after the action took effect, with no byte of an answer.
	DropAfter
	// DropHalfway cuts in the middle of the answer's body.
	DropHalfway

	// dropLater asks for either of the two that come after the action.
	dropLater DropPoint = -1
)

// window is over what time Throttle counts.
const window = time.Minute

// faultState holds what was asked for, by action name.
type faultState struct {
	latency map[string]time.Duration
	drops   map[string][]DropPoint
	hooks   map[string][]func()
	fails   map[string][]*failure
	limits  map[string]int
	recent  map[string][]time.Time
}

func newFaultState() faultState {
	return faultState{
		latency: make(map[string]time.Duration),
		drops:   make(map[string][]DropPoint),
		hooks:   make(map[string][]func()),
		fails:   make(map[string][]*failure),
		limits:  make(map[string]int),
		recent:  make(map[string][]time.Time),
	}
}

// SetLatency makes each call of the action ("UpdateDistribution") wait this long
// before it is looked at. 0 ends it.
func (d *Double) SetLatency(action string, delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.latency[action] = delay
}

// Throttle refuses calls of the action with "Throttling: Rate exceeded" beyond so
// many in any minute. Refused calls do not count. 0 ends it.
func (d *Double) Throttle(action string, perMinute int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.limits[action] = perMinute
}

// Drop cuts the connections of the next n calls of the action.
func (d *Double) Drop(action string, when DropPoint, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range n {
		d.faults.drops[action] = append(d.faults.drops[action], when)
	}
}

// Fail answers the next n well-signed and permitted calls of the action with an
// error and does nothing.
func (d *Double) Fail(action string, n, status int, code, message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range n {
		d.faults.fails[action] = append(d.faults.fails[action], &failure{status: status, code: code, message: message})
	}
}

// Before runs f once, when the next permitted call of the action has come and
// before it takes effect; several are run one a call. It is how somebody else's
// change gets in between two calls of a client.
func (d *Double) Before(action string, f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.hooks[action] = append(d.faults.hooks[action], f)
}

// Calm ends everything set by the methods above.
func (d *Double) Calm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = newFaultState()
}

// pause waits out the action's latency, or until the client or the server goes.
func (d *Double) pause(r *http.Request, action string) {
	d.mu.Lock()
	delay := d.faults.latency[action]
	d.mu.Unlock()
	if delay <= 0 {
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

// takeDrop removes and returns the next drop if it is of the wanted kind.
func (d *Double) takeDrop(action string, want DropPoint) DropPoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	queue := d.faults.drops[action]
	if len(queue) == 0 {
		return dropNothing
	}
	next := queue[0]
	if next != want && (want != dropLater || next == DropBefore) {
		return dropNothing
	}
	d.faults.drops[action] = queue[1:]
	return next
}

func (d *Double) takeHook(action string) func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	queue := d.faults.hooks[action]
	if len(queue) == 0 {
		return nil
	}
	d.faults.hooks[action] = queue[1:]
	return queue[0]
}

// takeFault is the error asked for by Fail or Throttle, if any.
func (d *Double) takeFault(action string) *failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	if queue := d.faults.fails[action]; len(queue) > 0 {
		d.faults.fails[action] = queue[1:]
		return queue[0]
	}
	limit := d.faults.limits[action]
	if limit <= 0 {
		return nil
	}
	now := d.now()
	var recent []time.Time
	for _, t := range d.faults.recent[action] {
		if now.Sub(t) < window {
			recent = append(recent, t)
		}
	}
	if len(recent) >= limit {
		d.faults.recent[action] = recent
		return failf(http.StatusBadRequest, "Throttling", "Rate exceeded")
	}
	d.faults.recent[action] = append(recent, now)
	return nil
}
