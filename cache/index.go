package cache

import "math/rand/v2"

// record is what is known in memory of one file: 48 bytes.
type record struct {
	hash     hash
	access   int64  // last use, nanoseconds since 1970
	fetched  int64  // Meta.FetchStart, the same; 0 is not known yet
	blocks   uint32 // of 512 bytes, on disk
	stamp    uint32 // fingerprint of the file
	version  uint32 // changes with every change of the file; ties copies in memory to it
	reads    uint8  // reads from disk, wrapping: when to try and bring it into memory
	verified bool   // the body of the file with that stamp
}

func (r *record) bytes() int64 { return int64(r.blocks) * 512 }

func blocksOf(bytes int64) uint32 {
	return uint32(min((bytes+511)/512, 1<<32-1))
}

const (
	// chunk is the records of one allocation. A slice that grows by itself would
	// hold two copies while it moves, and up to a quarter of it would lie empty.
	chunk = 1024
	// samples is among how many random records the least recently used is looked
	// for. Its age is then in the oldest 3 % on average.
	samples = 32
)

// index knows the files of a volume: where each stands in a dense array, and how
// much they take. It is not safe for concurrent use.
//
// With its share of the map a file takes about 80 bytes (see BenchmarkIndex). There
// is no list in order of use: the least recently used file is found by sampling,
// which is exact up to `samples` files and close beyond.
type index struct {
	places map[hash]uint32
	chunks [][]record
	n      int
	bytes  int64
}

func newIndex() index { return index{places: make(map[hash]uint32)} }

func (x *index) at(i int) *record { return &x.chunks[i/chunk][i%chunk] }

// find gives the record in place: it is valid until the next add or remove.
func (x *index) find(h hash) *record {
	i, ok := x.places[h]
	if !ok {
		return nil
	}
	return x.at(int(i))
}

// put adds the record or takes the place of the one that is there.
func (x *index) put(r record) {
	x.bytes += r.bytes()
	if old := x.find(r.hash); old != nil {
		x.bytes -= old.bytes()
		*old = r
		return
	}
	if x.n == len(x.chunks)*chunk {
		x.chunks = append(x.chunks, make([]record, chunk))
	}
	*x.at(x.n) = r
	x.places[r.hash] = uint32(x.n)
	x.n++
}

// remove moves the last record into the hole.
func (x *index) remove(h hash) (record, bool) {
	i, ok := x.places[h]
	if !ok {
		return record{}, false
	}
	r := *x.at(int(i))
	x.n--
	if last := x.at(x.n); last.hash != h {
		*x.at(int(i)) = *last
		x.places[last.hash] = i
	}
	delete(x.places, h)
	x.bytes -= r.bytes()
	if keep := x.n/chunk + 2; keep < len(x.chunks) {
		x.chunks[keep] = nil
		x.chunks = x.chunks[:keep]
	}
	return r, true
}

// oldest is the least recently used of some random records, of all when they are few.
func (x *index) oldest() (record, bool) {
	if x.n == 0 {
		return record{}, false
	}
	best := x.at(0)
	if x.n <= samples {
		for i := 1; i < x.n; i++ {
			if r := x.at(i); r.access < best.access {
				best = r
			}
		}
		return *best, true
	}
	best = x.at(rand.IntN(x.n))
	for range samples - 1 {
		if r := x.at(rand.IntN(x.n)); r.access < best.access {
			best = r
		}
	}
	return *best, true
}
