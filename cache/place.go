package cache

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Weighted rendezvous: every key has a score in every volume, and goes to the one
// where it is highest. A volume with twice the weight of another gets twice the
// keys, and when the weight of one changes, keys move to it or from it, and never
// between the others.

// weightStep is how finely the free share of a volume counts, in percent. Coarse
// steps keep the places of keys from changing all the time.
const weightStep = 10

// weigh gives a volume's weight: (100 - used %) in steps of 10 %, at least one
// step, since a full volume makes room, times what the configuration says.
func weigh(used, weight, classWeight float64) float64 {
	steps := math.Ceil((100-used)/weightStep - 1e-9)
	return min(max(steps, 1), 100/weightStep) * weightStep * weight * classWeight
}

// seedOf is what a volume is to the hash: its path, so that neither its place in
// the list nor the other volumes matter.
func seedOf(path string) uint64 { return xxhash.Sum64String(path) }

// score is that of a key in a volume of some weight: of n volumes, each has the
// highest with a probability of its share of the weights (a race of exponentially
// distributed times).
func score(h hash, seed uint64, weight float64) float64 {
	var b [24]byte
	copy(b[:], h[:])
	binary.LittleEndian.PutUint64(b[16:], seed)
	u := (float64(xxhash.Sum64(b[:])>>11) + 0.5) / (1 << 53) // never 0 or 1
	return weight / -math.Log(u)
}

// best is the volume with the highest score for a key.
func best(h hash, vs []*volume) *volume {
	first := vs[0]
	if len(vs) == 1 {
		return first
	}
	highest := score(h, first.seed, first.weight())
	for _, v := range vs[1:] {
		if s := score(h, v.seed, v.weight()); s > highest {
			first, highest = v, s
		}
	}
	return first
}

// rank orders volumes by their score for a key, the best first.
func rank(h hash, vs []*volume) []*volume {
	if len(vs) < 2 {
		return vs
	}
	type scored struct {
		v *volume
		s float64
	}
	list := make([]scored, len(vs))
	for i, v := range vs {
		list[i] = scored{v, score(h, v.seed, v.weight())}
	}
	slices.SortStableFunc(list, func(a, b scored) int {
		switch {
		case a.s > b.s:
			return -1
		case a.s < b.s:
			return 1
		}
		return 0
	})
	ranked := make([]*volume, len(list))
	for i, l := range list {
		ranked[i] = l.v
	}
	return ranked
}
