package demo

import (
	"slices"
	"sync"
	"time"
)

// journalMax is how many entries are kept.
const journalMax = 60

// entry is one thing that happened.
type entry struct {
	Number int // counted from 1
	At     time.Time
	// Tone is good, bad or plain.
	Tone string
	Text string
}

// Tones of entries and states.
const (
	toneGood  = "good"
	toneWarn  = "warn"
	toneBad   = "bad"
	tonePlain = "plain"
)

// journal is what happened, in words, as far as it is not long ago.
type journal struct {
	now     func() time.Time
	mu      sync.Mutex
	count   int
	entries []entry
}

func (j *journal) note(tone, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count++
	j.entries = append(j.entries, entry{Number: j.count, At: j.now(), Tone: tone, Text: text})
	if n := len(j.entries) - journalMax; n > 0 {
		j.entries = slices.Delete(j.entries, 0, n)
	}
}

// all lists the entries, newest first.
func (j *journal) all() []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := slices.Clone(j.entries)
	slices.Reverse(out)
	return out
}
