package demo

import (
	"sync"
	"time"
)

// way is how an answer came to the viewer.
type way string

// The ways. The words are shown, and are keys in the page's script.
const (
	wayEdge   way = "edge"   // kept at the edge
	wayKarui  way = "karui"  // karui answered
	wayOrigin way = "origin" // the true origin answered
	wayNone   way = "none"   // nobody did
)

// ways in the order in which charts stack them.
func ways() []way { return []way{wayEdge, wayKarui, wayOrigin, wayNone} }

// formats in the order in which charts stack them. The last takes what is left.
func formats() []string { return []string{"webp", "avif", "jpeg", "png", "gif", "other"} }

// visit is one answer of the edge.
type visit struct {
	Way    way
	Format string
	Bytes  int64
	// Failover tells that the edge asked a second origin; Shed that it did because
	// karui had answered 503; Vain that the second failed too.
	Failover, Shed, Vain bool
}

// tally sums visits.
type tally struct {
	Ways      map[way]int
	Formats   map[string]int
	Bytes     int64
	Saved     int64
	Failovers int
	Vain      int // of these, second origins that failed too
	Kept      int // of these, answers from what the edge kept
	Sheds     int
	Requests  int
}

func newTally() tally { return tally{Ways: make(map[way]int), Formats: make(map[string]int)} }

func (t *tally) add(v visit) {
	t.Ways[v.Way]++
	if v.Way != wayNone {
		t.Formats[v.Format]++
	}
	t.Bytes += v.Bytes

	t.Requests++
	if v.Failover {
		t.Failovers++
	}
	if v.Vain {
		t.Vain++
		if v.Way == wayEdge {
			t.Kept++
		}
	}
	if v.Shed {
		t.Sheds++
	}
}

func (t *tally) merge(o tally) {
	for k, n := range o.Ways {
		t.Ways[k] += n
	}
	for k, n := range o.Formats {
		t.Formats[k] += n
	}
	t.Bytes += o.Bytes
	t.Saved += o.Saved
	t.Failovers += o.Failovers
	t.Vain += o.Vain
	t.Kept += o.Kept
	t.Sheds += o.Sheds
	t.Requests += o.Requests
}

// Of the numbers over time.
const (
	slotLength = 3 * time.Second
	slotCount  = 60 // 3 min
)

// numbers counts visits, in all and over the last three minutes.
type numbers struct {
	now  func() time.Time
	mu   sync.Mutex
	all  tally
	ring [slotCount]tally
	last int64 // the number of the newest slot
}

func newNumbers(now func() time.Time) *numbers {
	n := &numbers{now: now, all: newTally()}
	for i := range n.ring {
		n.ring[i] = newTally()
	}
	n.last = n.slot()
	return n
}

func (n *numbers) slot() int64 { return n.now().UnixNano() / int64(slotLength) }

// advance empties the slots that lie between the newest and now. A clock that
// went back changes nothing.
func (n *numbers) advance() {
	now := n.slot()
	for s := max(n.last+1, now-slotCount+1); s <= now; s++ {
		n.ring[s%slotCount] = newTally()
	}
	n.last = max(n.last, now)
}

func (n *numbers) add(v visit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.advance()
	n.all.add(v)
	n.ring[n.last%slotCount].add(v)
}

// total sums everything so far.
func (n *numbers) total() tally {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := newTally()
	t.merge(n.all)
	return t
}

// over lists the slots, oldest first; the newest is not full yet.
func (n *numbers) over() []tally {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.advance()
	out := make([]tally, slotCount)
	for i := range out {
		out[i] = newTally()
		out[i].merge(n.ring[(n.last+1+int64(i))%slotCount])
	}
	return out
}

// recent sums the newest slots: with 4 slots, those of the last 9 to 12 s.
func (n *numbers) recent(slots int) tally {
	t := newTally()
	for _, s := range n.over()[slotCount-slots:] {
		t.merge(s)
	}
	return t
}

// save adds bytes that a viewer did not have to load.
func (n *numbers) save(bytes int64) {
	if bytes <= 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.advance()
	n.all.Saved += bytes
	n.ring[n.last%slotCount].Saved += bytes
}
