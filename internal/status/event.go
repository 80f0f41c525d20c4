package status

import (
	"slices"
	"time"
)

// Tones say how much something matters. They are classes of the style sheet.
const (
	toneGood  = "good"
	tonePlain = "plain"
	toneWarn  = "warn"
	toneBad   = "bad"
)

// Event is something that happened.
type Event struct {
	At time.Time `json:"at"`
	// Kind is one of a few words: start, dial, shedding, volume, workers, quarantine,
	// place, retries, configuration, operator, purge, health.
	Kind string `json:"kind"`
	// Tone is good, plain, warn or bad.
	Tone string `json:"tone"`
	// Site is whom it concerns, empty for all.
	Site string `json:"site,omitempty"`
	Text string `json:"text"`
	// Cause says why, where that is known.
	Cause string `json:"cause,omitempty"`
	// Machine events are about the machine, and not for tokens of some sites.
	Machine bool `json:"-"`
}

// Of the events.
const (
	maxEvents = 200
	maxText   = 400 // bytes of a text or a cause
)

// journal keeps the last events, oldest first.
type journal struct{ events []Event }

func (j *journal) add(e Event) {
	e.Text, e.Cause = cut(e.Text), cut(e.Cause)
	if len(j.events) >= maxEvents {
		j.events = append(j.events[:0], j.events[1:]...)
	}
	// They come a little out of order: what was noticed late happened before.
	i := len(j.events)
	for i > 0 && j.events[i-1].At.After(e.At) {
		i--
	}
	j.events = slices.Insert(j.events, i, e)
}

// seenBy gives those that a visitor may see, newest first.
func (j *journal) seenBy(v Visitor) []Event {
	out := []Event{}
	for _, e := range slices.Backward(j.events) {
		if v.Whole() || !e.Machine && (e.Site == "" || v.May(e.Site)) {
			out = append(out, e)
		}
	}
	return out
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + "…"
}
