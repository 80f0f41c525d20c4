package main

import (
	"math/rand/v2"
	"time"
)

// timetable is an order of faults and their values that a seed gives, whatever
// happens meanwhile: all kinds once, then all again in another order; now and then
// two at once.
type timetable struct {
	proof *proof
	rng   *rand.Rand
	kinds []fault
	at    int
}

// named is a deed with the name of its fault.
type named struct {
	name string
	deed
}

func newTimetable(p *proof, kinds []fault, seed uint64) *timetable {
	return &timetable{proof: p, rng: rand.New(rand.NewPCG(seed, 2)), kinds: kinds, at: len(kinds)}
}

// next gives what is to be done at once, and how long to leave the system alone
// afterwards.
func (t *timetable) next() (deeds []named, calm time.Duration) {
	if t.at >= len(t.kinds) {
		t.rng.Shuffle(len(t.kinds), func(i, j int) { t.kinds[i], t.kinds[j] = t.kinds[j], t.kinds[i] })
		t.at = 0
	}
	now := t.kinds[t.at : t.at+1]
	if t.at+1 < len(t.kinds) && t.kinds[t.at].area&t.kinds[t.at+1].area == 0 && t.rng.IntN(3) == 0 {
		now = t.kinds[t.at : t.at+2]
	}
	t.at += len(now)
	for _, f := range now {
		deeds = append(deeds, named{f.name, f.draw(t.proof, t.rng)})
	}
	return deeds, between(t.rng, 50*time.Millisecond, 500*time.Millisecond)
}
