package main

import (
	"sync"
	"time"
)

// slack is allowed between what happened and when it was written down here, on a
// machine that does other things besides.
const slack = 500 * time.Millisecond

// window is a time in which something bad may happen to a request. An open one
// has no end yet.
type window struct{ from, to time.Time }

func (w window) touches(from, to time.Time) bool {
	return !to.Before(w.from) && (w.to.IsZero() || !from.After(w.to.Add(slack)))
}

// event is one fault from its beginning until the way was normal again.
type event struct {
	Fault string `json:"fault"`
	// What was done, with the values that the seed gave.
	What string `json:"what"`
	// Began and Healed are seconds since the start.
	Began  float64 `json:"began_s"`
	Healed float64 `json:"healed_s"`
	// Normal is how long after healing the first variant came through karui
	// again, in seconds; negative if it had not when the next fault began.
	Normal float64 `json:"normal_after_s"`
	// Problem says that the fault could not be made.
	Problem string `json:"problem,omitempty"`
}

// history is what was done to the system, as far as it excuses anything.
type history struct {
	start time.Time

	mu     sync.Mutex
	events []*event
	// cuts are the times in which a body under way may break off.
	cuts []*window
	// outages are the times in which the true origin was down, too, so that nobody
	// could have answered.
	outages []*window
}

func newHistory() *history { return &history{start: time.Now()} }

func (h *history) since(t time.Time) float64 {
	return float64(t.Sub(h.start).Milliseconds()) / 1000
}

func (h *history) begin(fault, what string) *event {
	e := &event{Fault: fault, What: what, Began: h.since(time.Now()), Normal: -1}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
	return e
}

func (h *history) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// mayCut begins a time in which bodies under way may break off; done ends it.
func (h *history) mayCut() (done func()) { return h.open(&h.cuts) }

// outage begins a time in which the true origin is down; done ends it.
func (h *history) outage() (done func()) { return h.open(&h.outages) }

func (h *history) open(list *[]*window) func() {
	w := &window{from: time.Now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	*list = append(*list, w)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		w.to = time.Now()
	}
}

// cutAllowed tells whether a body that was under way from until to may have been cut.
func (h *history) cutAllowed(from, to time.Time) bool { return h.any(&h.cuts, from, to) }

// nobodyThere tells whether a request from until to met a time without any origin.
func (h *history) nobodyThere(from, to time.Time) bool { return h.any(&h.outages, from, to) }

func (h *history) any(list *[]*window, from, to time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range *list {
		if w.touches(from, to) {
			return true
		}
	}
	return false
}

// recent copies the last events, for evidence.
func (h *history) recent(n int) []event {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []event
	for _, e := range h.events[max(0, len(h.events)-n):] {
		out = append(out, *e)
	}
	return out
}

// settle notes that the way is normal now for the last fault, if it was not before.
func (h *history) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.events); n > 0 && h.events[n-1].Normal < 0 {
		h.events[n-1].Normal = h.since(time.Now()) - h.events[n-1].Healed
	}
}
