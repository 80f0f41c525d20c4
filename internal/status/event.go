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
	// Caller is the name of the token whose doing it is, "" for nobody's.
	Caller string `json:"-"`
	// Refused is whether karui refused it. Those of a caller become one event with the
	// last of them, and Times says how many they were.
	Refused bool `json:"-"`
	Times   int  `json:"times,omitempty"`
}

// party is who brought an event. The journal is shared out among these.
type party struct{ caller, site string }

func (e *Event) party() party {
	if e.Caller != "" {
		return party{caller: e.Caller}
	}
	return party{site: e.Site}
}

// Of the events.
const (
	maxEvents = 200
	maxText   = 400 // bytes of a text or a cause
	// mergeWithin is how long after the last one a refused request joins it.
	mergeWithin = time.Hour
)

// journal keeps the last events, oldest first.
type journal struct{ events []Event }

func (j *journal) add(e Event) {
	e.Text, e.Cause = cut(e.Text), cut(e.Cause)
	if e.Refused {
		j.merge(&e)
	}
	if len(j.events) >= maxEvents {
		j.makeRoom()
	}
	// They come a little out of order: what was noticed late happened before.
	i := len(j.events)
	for i > 0 && j.events[i-1].At.After(e.At) {
		i--
	}
	j.events = slices.Insert(j.events, i, e)
}

// merge takes the event of the caller's last refused request out, and counts it in e.
func (j *journal) merge(e *Event) {
	e.Times = 1
	for i := len(j.events) - 1; i >= 0; i-- {
		last := j.events[i]
		if last.Refused && last.Kind == e.Kind && last.Caller == e.Caller {
			if e.At.Sub(last.At) <= mergeWithin {
				e.Times += last.Times
				j.events = slices.Delete(j.events, i, i+1)
			}
			return
		}
	}
}

// makeRoom drops the oldest event of whoever brought the most: nobody's doing, however
// much of it there is, takes the place of what others have to know.
func (j *journal) makeRoom() {
	brought := map[party]int{}
	for i := range j.events {
		brought[j.events[i].party()]++
	}
	at, most := 0, 0
	for i := range j.events {
		if n := brought[j.events[i].party()]; n > most {
			at, most = i, n
		}
	}
	j.events = slices.Delete(j.events, at, at+1)
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
