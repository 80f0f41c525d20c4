package cache

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestWeigh(t *testing.T) {
	for _, c := range []struct{ used, weight, class, want float64 }{
		{0, 1, 1, 100},
		{0.1, 1, 1, 100},
		{9.9, 1, 1, 100},
		{10, 1, 1, 90},
		{10.1, 1, 1, 90},
		{50, 2, 0.5, 50},
		{85, 1, 1, 20},
		{90, 3, 1, 30},
		{99.9, 1, 1, 10},
		{100, 1, 1, 10}, // it makes room for what comes
		{100.5, 1, 4, 40},
	} {
		if got := weigh(c.used, c.weight, c.class); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v %% used, weight %v, class %v: %v, want %v", c.used, c.weight, c.class, got, c.want)
		}
	}
}

// weighted are volumes that are nothing but places.
func weighted(weights map[string]float64) []*volume {
	var vs []*volume
	for path, w := range weights {
		v := &volume{path: path, seed: seedOf(path)}
		v.weighed.Store(math.Float64bits(w))
		vs = append(vs, v)
	}
	return vs
}

func drawWeights(t *rapid.T) map[string]float64 {
	weights := map[string]float64{}
	for i := range rapid.IntRange(2, 6).Draw(t, "volumes") {
		weights[fmt.Sprintf("/mnt/disk%d", i)] = weigh(
			rapid.Float64Range(0, 100).Draw(t, "used"), rapid.Float64Range(0.5, 4).Draw(t, "weight"), 1)
	}
	return weights
}

func randomHash(r *rand.Rand) (h hash) {
	binary.LittleEndian.PutUint64(h[:], r.Uint64())
	binary.LittleEndian.PutUint64(h[8:], r.Uint64())
	return h
}

// Every volume gets its share of the keys.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := drawWeights(t)
		vs := weighted(weights)
		sum := 0.0
		for _, w := range weights {
			sum += w
		}
		const keys = 2000 // a share is exact to 1.1 % then, five times which is not met by chance
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		got := map[string]float64{}
		for range keys {
			got[best(randomHash(r), vs).path]++
		}
		for path, w := range weights {
			if d := got[path]/keys - w/sum; math.Abs(d) > 0.055 {
				t.Fatalf("%s has %.1f %% of the keys, %.1f %% of the weight", path, 100*got[path]/keys, 100*w/sum)
			}
		}
	})
}

// A change of one volume's weight, its coming or going, moves keys to it or from
// it, no more than its share has changed, and none between the others; the order
// in which volumes are listed moves nothing.
func TestMovement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := drawWeights(t)
		before := weighted(weights)
		subject := before[rapid.IntRange(0, len(before)-1).Draw(t, "subject")].path
		was, sum := weights[subject], 0.0
		for _, w := range weights {
			sum += w
		}
		change := rapid.SampledFrom([]string{"weight", "gone"}).Draw(t, "change")
		is := 0.0
		if change == "gone" {
			delete(weights, subject)
		} else {
			is = weigh(rapid.Float64Range(0, 100).Draw(t, "used now"), 1, 1)
			weights[subject] = is
		}
		after := weighted(weights)
		const keys = 1500
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		moved := 0
		for range keys {
			h := randomHash(r)
			from, to := best(h, before).path, best(h, after).path
			if from == to {
				continue
			}
			moved++
			if from != subject && to != subject {
				t.Fatalf("a key moved from %s to %s when %s changed", from, to, subject)
			}
			if from == subject && is > was || to == subject && is < was {
				t.Fatalf("a key moved from %s to %s when the weight of %s went from %v to %v", from, to, subject, was, is)
			}
		}
		share := math.Abs(was/sum - is/(sum-was+is))
		if got := float64(moved) / keys; got > share+0.065 {
			t.Fatalf("%.1f %% of the keys moved for a change of %.1f %%", 100*got, 100*share)
		}
	})
}

// The order of all of them begins with the best, and goes on as if that were gone.
func TestRank(t *testing.T) {
	vs := weighted(map[string]float64{"/a": 100, "/b": 30, "/c": 70, "/d": 10})
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		h := randomHash(r)
		left := slices.Clone(vs)
		for _, v := range rank(h, vs) {
			if want := best(h, left); v != want {
				t.Fatalf("%s, want %s", v.path, want.path)
			}
			left = slices.DeleteFunc(left, func(o *volume) bool { return o == v })
		}
		if len(left) > 0 {
			t.Fatalf("%d volumes are left out", len(left))
		}
	}
}
