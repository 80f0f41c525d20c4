package status

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"karui/internal/api"
	"karui/internal/page"
)

// classes are the workers as rows.
func (m *maker) classes() []classRow {
	w := m.facts.Workers
	if w == nil {
		return nil
	}
	rows := make([]classRow, 0, 2)
	for i, l := range []api.WorkerLoad{w.Fast, w.Slow} {
		r := classRow{
			Name: "WebP", Workers: fmt.Sprint(l.Workers), Alive: fmt.Sprint(l.Alive), Busy: fmt.Sprint(l.Busy), Share: notKnown,
			Waiting: page.Count(l.Waiting), Longest: "–", CPU: page.Long(time.Duration(l.CPUSeconds * float64(time.Second))),
		}
		if i == 1 {
			r.Name = "AVIF and HEIC"
		}
		if l.Waiting > 0 {
			r.Longest = page.Took(time.Duration(l.OldestWaitSeconds * float64(time.Second)))
		}
		if share, ok := latest(m.states, func(s *state) float64 { return s.busy[i] }); ok {
			r.Share = page.Percent(share)
		}
		rows = append(rows, r)
	}
	return rows
}

// latest gives the newest value that is known of the last minute.
func latest(states []state, of func(*state) float64) (float64, bool) {
	known := -1
	for i := range states {
		if states[i].known {
			known = i
		}
	}
	for i := known; i >= 0 && i > known-int(time.Minute/slotLength); i-- {
		if v := of(&states[i]); !math.IsNaN(v) {
			return v, true
		}
	}
	return 0, false
}

// machine says what else is known of the process.
func (m *maker) machine() []fact {
	f := m.facts
	var facts []fact
	add := func(name, value string) { facts = append(facts, fact{name, value}) }
	if f.Workers != nil {
		ended := "none before their time"
		var words []string
		for _, cause := range slices.Sorted(maps.Keys(f.Workers.Ended)) {
			if n := f.Workers.Ended[cause]; n > 0 && !peaceful(cause) {
				words = append(words, fmt.Sprintf("%s %s", page.Count(n), cause))
			}
		}
		if len(words) > 0 {
			ended = strings.Join(words, ", ")
		}
		add("Workers ended", ended)
	}
	if b := f.Backlog; b != nil {
		add("Backlog", page.Plural(b.total(), "conversion")+" waiting for idle workers")
	}
	if l := f.Flights; l != nil {
		add("Fetches under way", fmt.Sprintf("%s, %s; %s in memory, %s on disk", page.Count(l.Flights), page.Plural(l.Viewers, "viewer"), page.Bytes(l.MemoryBytes), page.Bytes(l.DiskBytes)))
	}
	if c := f.Cache; c != nil {
		add("Cache in memory", fmt.Sprintf("%s of %s", page.Bytes(c.MemoryBytes), page.Bytes(c.MemoryMax)))
		looks := c.HitsMemory + c.HitsDisk + c.Misses
		if looks > 0 {
			share := func(n uint64) string { return page.Percent(float64(n) / float64(looks)) }
			add("Looks into the cache", fmt.Sprintf("%s from memory, %s from disk, %s not found", share(c.HitsMemory), share(c.HitsDisk), share(c.Misses)))
		}
	}
	if w := f.Writes; w != nil {
		add("Waiting to be written", fmt.Sprintf("%s of %s; %s given up", page.Bytes(w.Bytes), page.Bytes(w.Max), page.Plural(w.Dropped, "write")))
	}
	return facts
}
