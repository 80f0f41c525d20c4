package cache

import (
	"encoding/binary"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

func numbered(i int) (h hash) {
	binary.BigEndian.PutUint64(h[8:], uint64(i))
	return h
}

func TestIndexAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newIndex()
		model := map[hash]record{}
		for range rapid.IntRange(1, 4000).Draw(t, "steps") {
			h := numbered(rapid.IntRange(0, 2500).Draw(t, "key"))
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				r, ok := x.remove(h)
				want, wanted := model[h]
				if ok != wanted || r != want {
					t.Fatalf("remove gives %v %v, want %v %v", r, ok, want, wanted)
				}
				delete(model, h)
				continue
			}
			r := record{hash: h, blocks: uint32(rapid.IntRange(0, 100).Draw(t, "blocks")), access: int64(rapid.IntRange(0, 9).Draw(t, "access"))}
			x.put(r)
			model[h] = r
		}
		var bytes int64
		for h, want := range model {
			if r := x.find(h); r == nil || *r != want {
				t.Fatalf("find gives %v, want %v", r, want)
			}
			bytes += want.bytes()
		}
		if x.n != len(model) || x.bytes != bytes {
			t.Fatalf("%d files of %d bytes, want %d of %d", x.n, x.bytes, len(model), bytes)
		}
	})
}

func TestOldest(t *testing.T) {
	x := newIndex()
	if _, ok := x.oldest(); ok {
		t.Fatal("an empty index has an oldest record")
	}
	for i := range samples {
		x.put(record{hash: numbered(i), access: int64((i*7 + 3) % samples)})
	}
	for want := range samples {
		r, _ := x.oldest()
		if r.access != int64(want) {
			t.Fatalf("oldest is %d, want %d: few records are looked through whole", r.access, want)
		}
		x.remove(r.hash)
	}
	// Of many, it is among the old ones: the mean rank of 400 evictions out of
	// 10,000 is near 1/33 of them.
	const n, evicted = 10_000, 400
	for i := range n {
		x.put(record{hash: numbered(i), access: int64(i)})
	}
	sum := 0
	for range evicted {
		r, _ := x.oldest()
		sum += int(r.access)
		x.remove(r.hash)
	}
	if mean := sum / evicted; mean > n/20 {
		t.Errorf("mean rank of what is evicted is %d of %d", mean, n)
	}
}

// A file costs under 120 bytes of memory, however near the map is to its next growth.
func TestMemoryOfAFile(t *testing.T) {
	for _, n := range []int{50_000, 57_500, 90_000} {
		before := heap()
		x := newIndex()
		for i := range n {
			x.put(record{hash: benchKey(i).hash(), blocks: 8})
		}
		if each := float64(heap()-before) / float64(n); each > 120 || each < 48 {
			t.Errorf("%.1f bytes for each of %d files", each, n)
		}
		// As many again come and go: what went is not kept.
		for i := range 2 * n {
			x.put(record{hash: benchKey(n + i).hash(), blocks: 8})
			if r, ok := x.oldest(); ok {
				x.remove(r.hash)
			}
		}
		if each := float64(heap()-before) / float64(n); each > 120 {
			t.Errorf("%.1f bytes for each of %d files after %d have come and gone", each, n, 2*n)
		}
		runtime.KeepAlive(x)
	}
}
