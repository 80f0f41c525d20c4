// Package machine decides: what a round of pings, together with what happened
// before, means for a site. It is a pure function of a state, an observation and
// the rules.
//
// Guaranteed, whatever the sequence of observations:
//   - nothing is done or said in an inconclusive round;
//   - no swap towards a true origin that is silent;
//   - never more of its own swaps in 24 hours than max_swaps_per_day, and no
//     restore that would leave none for another degrade;
//   - while the proxy stays down, the true origin lives and nobody interferes, it
//     ends degraded (with degrade: auto);
//   - an order that others made is announced once and left alone until the
//     health of the proxy changes;
//   - everything is said once: every notice has an ID that was written down
//     before what it tells of was done.
//
// Not guaranteed: that a swap succeeds, or that the clock is right. Times are
// wall times; those that lie in the future after the clock was set back are taken
// as now.
package machine

import (
	"slices"
	"time"

	"karui/watchdog/event"
)

// Health is what the last conclusive round found.
type Health string

// The proxy before the first conclusive round, and after a good or bad one.
const (
	Unknown Health = ""
	Up      Health = "up"
	Down    Health = "down"
)

// day is the window of max_swaps_per_day and flaps, and the pace of reminders.
const day = 24 * time.Hour

// State is what is remembered of a site between rounds.
type State struct {
	Health Health `json:"health"`
	// Since is when the health became what it is.
	Since time.Time `json:"since,omitzero"`
	// Good counts good rounds in a row.
	Good int `json:"good_rounds"`

	// Order is who came first when the watchdog last knew. Known tells that it was
	// read at least once; OrderUnknown is then a group that is not as configured.
	Order event.Order `json:"order"`
	Known bool        `json:"order_known"`

	// Held: a person, Terraform or the like set the order. It stays until the
	// health changes.
	Held bool `json:"held"`

	// Swaps of the last 24 hours, oldest first.
	Swaps []Swap `json:"swaps,omitempty"`

	// Episode is the time since the true origin came first; nil while the proxy is.
	Episode *Episode `json:"episode,omitempty"`

	Told Told `json:"told"`

	// Intent is a swap that was begun and whose end was not written down.
	Intent *Intent `json:"intent,omitempty"`
}

// Swap is a change of the order that went through (or may have).
type Swap struct {
	At time.Time   `json:"at"`
	To event.Order `json:"to"`
	By event.Actor `json:"by"`
}

// Episode is one stretch of being degraded.
type Episode struct {
	Since time.Time `json:"since"`
	// ID is the event that told of its beginning.
	ID string `json:"id"`
	// Reminded is when it was last told of.
	Reminded time.Time `json:"reminded"`
	// Capped: it was told that no restore is left for now.
	Capped bool `json:"capped,omitempty"`
}

// Told is what was told already and is not told again: until the health changes,
// but for Flapping.
type Told struct {
	OriginSilent bool `json:"origin_silent,omitempty"`
	Awaited      bool `json:"awaited,omitempty"`
	Capped       bool `json:"capped,omitempty"`
	// Failures are directions and kinds, "direct/denied".
	Failures []string `json:"failures,omitempty"`
	// Flapping is when it was told last.
	Flapping time.Time `json:"flapping,omitzero"`
}

// fails takes note of a failure and tells whether it is a new one.
func (t *Told) fails(to event.Order, why string) bool {
	word := string(to) + "/" + why
	if slices.Contains(t.Failures, word) {
		return false
	}
	t.Failures = append(t.Failures, word)
	return true
}

// Intent is written down before a swap is begun.
type Intent struct {
	// ID is that of the event that will tell of it.
	ID     string      `json:"id"`
	To     event.Order `json:"to"`
	At     time.Time   `json:"at"`
	By     event.Actor `json:"by"`
	Person string      `json:"person,omitempty"`
	// Again: an earlier try of the same intent may have gone through.
	Again bool `json:"again,omitempty"`
	// Former is an intent of the other direction that may have gone through and was
	// not settled when this one was begun.
	Former *Intent `json:"former,omitempty"`
}

// clone copies what is shared through pointers and slices.
func (s State) clone() State {
	s.Swaps = slices.Clone(s.Swaps)
	s.Told.Failures = slices.Clone(s.Told.Failures)
	if s.Episode != nil {
		e := *s.Episode
		s.Episode = &e
	}
	if s.Intent != nil {
		i := *s.Intent
		s.Intent = &i
	}
	return s
}

// at brings the state to the time now: what is remembered from the future, after
// the clock was set back, happened now at the latest; swaps older than a day are
// forgotten.
func (s *State) at(now time.Time) {
	clamp := func(t *time.Time) {
		if t.After(now) {
			*t = now
		}
	}
	clamp(&s.Since)
	clamp(&s.Told.Flapping)
	for i := range s.Swaps {
		clamp(&s.Swaps[i].At)
	}
	if s.Episode != nil {
		clamp(&s.Episode.Since)
		clamp(&s.Episode.Reminded)
	}
	if s.Intent != nil {
		clamp(&s.Intent.At)
	}
	s.Swaps = slices.DeleteFunc(s.Swaps, func(w Swap) bool { return now.Sub(w.At) >= day })
}

// Own counts the watchdog's own swaps of the last 24 hours.
func (s State) Own() int {
	n := 0
	for _, w := range s.Swaps {
		if w.By == event.ActorAuto {
			n++
		}
	}
	return n
}

// Degrades counts the degrades of the last 24 hours, rehearsals left out.
func (s State) Degrades() int {
	n := 0
	for _, w := range s.Swaps {
		if w.To == event.OrderDirect && w.By != event.ActorRehearsal {
			n++
		}
	}
	return n
}

// Need is how many good rounds in a row a restore needs now: restore_after,
// doubled by each flap (a degrade after another one within 24 hours), up to 12.
func (s State) Need(r Rules) int {
	need := max(r.RestoreAfter, 1)
	for range s.Degrades() - 1 {
		if need >= maxGood {
			break
		}
		need *= 2
	}
	return min(need, maxGood)
}

// maxGood bounds the good rounds that a flapping proxy has to show before it is trusted again; 12 rounds of 5 minutes are an hour.
const maxGood = 12
