package status

import "strings"

// outcome is what became of a request, as far as the page tells them apart.
type outcome int

// The outcomes, in the order in which charts stack them. From firstRefused on, the
// request was sent to the true origin.
const (
	hit outcome = iota
	wait
	stale
	original
	miss
	bypass
	otherwise // aborted by the viewer, or a method that is not served
	byOrigin
	byLatency
	byDisk
	byShed
	byDrain
	byRoute
	bySecret
	byPanic
	byOther
	outcomes
	firstRefused = byOrigin
)

// kindsOf describes the outcomes for people; the words of a 503 are those of
// X-Karui-Reason.
func (o outcome) word() string {
	return [outcomes]string{
		"hit", "wait", "stale", "original", "miss", "bypass", "other",
		"origin", "latency", "disk", "shed", "drain", "route", "secret", "panic", "other",
	}[o]
}

// outcomeOf reads the word of the metrics; ok is false for health checks, which are
// nobody's requests.
func outcomeOf(word string) (o outcome, ok bool) {
	reason, refused := strings.CutPrefix(word, "503_")
	if word == "ping" || word == "503_ping" {
		return 0, false
	}
	from, to, rest := hit, otherwise, otherwise
	if refused {
		word, from, to, rest = reason, firstRefused, byOther, byOther
	}
	for o := from; o < to; o++ {
		if o.word() == word {
			return o, true
		}
	}
	return rest, true
}

// counts are requests by outcome.
type counts [outcomes]uint64

func countsOf(words map[string]uint64) counts {
	var c counts
	for word, n := range words {
		if o, ok := outcomeOf(word); ok {
			c[o] += n
		}
	}
	return c
}

func (c *counts) add(o counts) {
	for i, n := range o {
		c[i] += n
	}
}

// sum adds up the outcomes from one up to another, which is left out.
func (c *counts) sum(from, to outcome) uint64 {
	total := uint64(0)
	for o := from; o < to; o++ {
		total += c[o]
	}
	return total
}

func (c *counts) all() uint64     { return c.sum(0, outcomes) }
func (c *counts) refused() uint64 { return c.sum(firstRefused, outcomes) }
