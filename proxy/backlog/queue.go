package backlog

import (
	"container/heap"
	"math"
	"time"

	"karui/cache"
)

// halfLife is after how long an ask counts half: as long as a peak of traffic lasts,
// so that what is hot is what its last hour wanted.
const halfLife = time.Hour

// overhead is what an entry takes in memory besides its key, in bytes: measured with
// 100,000 entries as 150, and rounded up.
const overhead = 200

// Limits bound the list.
type Limits struct {
	// Entries and Bytes bound it; Bytes are memory, keys and overhead of entries together.
	Entries int
	Bytes   int64
	// Key bounds the key of one entry, in bytes.
	Key int
	// Age is how long an entry stays without another ask.
	Age time.Duration
	// Tries is how often an entry may fail before it is dropped, and Backoff the time
	// after the first failure; each further one makes it four times as long.
	Tries   int
	Backoff time.Duration
}

// DefaultLimits gives the limits that karui runs with. With two conversions a second,
// 100,000 entries are 14 hours of idle workers: what is behind that is better made when
// somebody asks for it. 64 MiB hold as many with URLs of 450 bytes. Three days let a
// list that grew over a weekend be worked off after it.
func DefaultLimits() Limits {
	return Limits{Entries: 100_000, Bytes: 64 << 20, Key: 8 << 10, Age: 72 * time.Hour, Tries: 5, Backoff: time.Minute}
}

// state is where an entry is.
type state uint8

const (
	ready   state = iota + 1 // it may be made
	waiting                  // it failed, or there was no time for it, and rests
	busy                     // it is being made
	gone                     // it is not on the list any more
)

// item is one entry of the list. Times are in seconds since 1970.
type item struct {
	site *site
	// name is the key without its site, see nameOf.
	name string
	// heat is the logarithm to base 2 of the asks, each worth 2^(its time/halfLife). It
	// orders entries as their decayed counts do at any time, without ever being decayed.
	heat float64
	// first and last are when it was first and last asked for, after when it may be
	// tried again.
	first, last, after int64
	// hot and cold are places in the site's piles.
	hot, cold int32
	// written is the heat that the journal has; dirty is whether it has to hear of more.
	written float32
	tries   uint8
	state   state
	dirty   bool
}

// size is what the entry counts of Limits.Bytes.
func (it *item) size() int64 { return int64(len(it.name)) + overhead }

func (it *item) key() cache.Key { return keyOf(it.site.id, it.name) }

// site has the entries of one site. Whatever is not busy lies in cold, the coldest
// first; and in ready with the hottest first, or in waiting with the next one first.
type site struct {
	id                   string
	items                map[string]*item
	ready, waiting, cold pile
	// served is the turn in which it was served last.
	served uint64
}

// queue decides what is made next, and what goes when there is too much. It is pure:
// time comes with each call, and it is for one goroutine at a time.
type queue struct {
	limits  Limits
	sites   map[string]*site
	entries int
	bytes   int64
	turn    uint64
	// dropped is told of each entry that leaves by itself.
	dropped func(*item, Cause)
	// touched is told of each entry whose journal has to follow.
	touched func(*item)
}

func newQueue(l Limits) *queue {
	return &queue{limits: l, sites: map[string]*site{}, dropped: func(*item, Cause) {}, touched: func(*item) {}}
}

// heatAt is the heat of asks at one time that are worth weight together.
func heatAt(now time.Time, weight float64) float64 {
	return float64(now.UnixMilli())/float64(halfLife.Milliseconds()) + math.Log2(weight)
}

// warmer adds two heats.
func warmer(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	return a + math.Log2(1+math.Exp2(b-a))
}

// add takes in asks for a key that are worth weight. An entry that there is not is
// made only if listed says so.
func (q *queue) add(key cache.Key, weight float64, listed bool, now time.Time) {
	name := nameOf(key)
	s := q.sites[key.Site]
	if s != nil {
		if it := s.items[name]; it != nil {
			it.heat = warmer(it.heat, heatAt(now, weight))
			it.last = max(it.last, now.Unix())
			q.fix(it)
			// An ask more or less is not worth a write; a doubled count, or an hour, is.
			if it.heat-float64(it.written) >= 1 {
				q.touch(it)
			}
			return
		}
	}
	if !listed {
		return
	}
	it := &item{name: name, heat: heatAt(now, weight), first: now.Unix(), last: now.Unix()}
	if len(name) > q.limits.Key {
		it.site = &site{id: key.Site}
		q.dropped(it, TooLarge)
		return
	}
	q.insert(key.Site, it, now)
	q.touch(it)
	q.shrink()
}

// insert puts an entry on the list that is not on it.
func (q *queue) insert(id string, it *item, now time.Time) {
	s := q.sites[id]
	if s == nil {
		// Behind those that are there: a site that comes and goes does not overtake.
		s = &site{id: id, items: map[string]*item{}, ready: byHeat(), waiting: byTime(), cold: byCold(), served: q.turn}
		q.sites[id] = s
	}
	it.site = s
	s.items[it.name] = it
	q.entries++
	q.bytes += it.size()
	it.state = ready
	if it.after > now.Unix() {
		it.state = waiting
	}
	q.lay(it)
}

func (q *queue) touch(it *item) {
	if !it.dirty {
		it.dirty = true
		q.touched(it)
	}
}

// lay puts an entry into the piles of its state.
func (q *queue) lay(it *item) {
	heap.Push(&it.site.cold, it)
	if it.state == waiting {
		heap.Push(&it.site.waiting, it)
	} else {
		heap.Push(&it.site.ready, it)
	}
}

// lift takes an entry out of its piles.
func (q *queue) lift(it *item) {
	switch it.state {
	case ready:
		heap.Remove(&it.site.ready, int(it.hot))
	case waiting:
		heap.Remove(&it.site.waiting, int(it.hot))
	default:
		return
	}
	heap.Remove(&it.site.cold, int(it.cold))
}

// fix brings an entry to its place after its heat has changed.
func (q *queue) fix(it *item) {
	if it.state != ready && it.state != waiting {
		return
	}
	heap.Fix(&it.site.cold, int(it.cold))
	if it.state == ready {
		heap.Fix(&it.site.ready, int(it.hot))
	}
}

// remove takes an entry off the list.
func (q *queue) remove(it *item) {
	if it.state == gone {
		return
	}
	q.lift(it)
	it.state = gone
	s := it.site
	delete(s.items, it.name)
	q.entries--
	q.bytes -= it.size()
	if len(s.items) == 0 && q.sites[s.id] == s {
		delete(q.sites, s.id)
	}
	q.touch(it)
}

// drop is remove for one that was not made.
func (q *queue) drop(it *item, why Cause) {
	if it.state == gone {
		return
	}
	q.remove(it)
	q.dropped(it, why)
}

// shrink keeps the list within its bounds. The site with the most pays, whoever
// brought the entry that was too much.
func (q *queue) shrink() {
	for q.entries > q.limits.Entries || q.bytes > q.limits.Bytes {
		var most *site
		for _, s := range q.sites {
			if len(s.cold.items) > 0 && (most == nil || len(s.cold.items) > len(most.cold.items)) {
				most = s
			}
		}
		if most == nil {
			return // the one that is being made
		}
		q.drop(most.cold.items[0], Full)
	}
}

// next gives the entry to be made now, nil for none: the hottest of the site whose
// turn it is, of those that may be served. It is busy until done, failed or put off.
func (q *queue) next(now time.Time, may func(site string) bool) *item {
	for {
		var turn *site
		for _, s := range q.sites {
			for len(s.waiting.items) > 0 && s.waiting.items[0].after <= now.Unix() {
				it := s.waiting.items[0]
				q.lift(it)
				it.state = ready
				q.lay(it)
			}
			if len(s.ready.items) == 0 || turn != nil && !before(s, turn) || !may(s.id) {
				continue
			}
			turn = s
		}
		if turn == nil {
			return nil
		}
		it := turn.ready.items[0]
		if q.old(it, now) {
			q.drop(it, Old)
			continue
		}
		q.turn++
		turn.served = q.turn
		q.lift(it)
		it.state = busy
		return it
	}
}

// before tells whether it is a's turn before it is b's.
func before(a, b *site) bool {
	if a.served != b.served {
		return a.served < b.served
	}
	return a.id < b.id
}

func (q *queue) old(it *item, now time.Time) bool {
	return now.Sub(time.Unix(it.last, 0)) > q.limits.Age
}

// rest puts a busy entry back, to be made at a later time at the earliest.
func (q *queue) rest(it *item, now time.Time, d time.Duration) {
	if it.state != busy {
		return
	}
	it.state = ready
	if d > 0 {
		it.state, it.after = waiting, now.Add(d).Unix()
	}
	q.lay(it)
}

// failed counts a failure of a busy entry, after which it rests or is dropped.
func (q *queue) failed(it *item, now time.Time) {
	if it.state != busy {
		return
	}
	if int(it.tries)+1 >= q.limits.Tries {
		q.drop(it, Failed)
		return
	}
	q.rest(it, now, q.limits.Backoff<<(2*it.tries))
	it.tries++
	q.touch(it)
}

// sweep drops what is too old. It looks at every entry, so it is for once in a while.
func (q *queue) sweep(now time.Time) {
	for _, s := range q.sites {
		for _, it := range s.items {
			if it.state != busy && q.old(it, now) {
				q.drop(it, Old)
			}
		}
	}
}
