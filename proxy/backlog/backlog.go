package backlog

import (
	"log/slog"
	"sync"
	"time"

	"karui/cache"
)

// Cause says why an entry left the list without having been made. It is a label in
// metrics, so the words never change.
type Cause string

// The causes.
const (
	Full     Cause = "full"      // the list was full, and it was the coldest
	Old      Cause = "old"       // nobody has asked for it for long
	Failed   Cause = "failed"    // it failed too often
	Kept     Cause = "kept"      // the original turned out to be the better answer
	Present  Cause = "present"   // it was made meanwhile, for a viewer
	Obsolete Cause = "obsolete"  // there is no such picture, format or site any more
	Purged   Cause = "purged"    // its picture was purged
	Cleared  Cause = "cleared"   // an operator emptied the list
	TooLarge Cause = "too_large" // its key is too long
	Overrun  Cause = "overrun"   // too many came within a second
)

// Causes are all of them.
var causes = []Cause{Full, Old, Failed, Kept, Present, Obsolete, Purged, Cleared, TooLarge, Overrun}

// Ask is one wish for a conversion.
type Ask uint8

const (
	// Missing: there is no variant, and its viewer got the original.
	Missing Ask = iota + 1
	// Degraded: there is a variant, of a cheaper level of the dial or another format. It
	// counts a quarter: those whose viewers get the original go first.
	Degraded
	// Again: somebody asked again. What is not on the list is not put on it.
	Again
)

func (a Ask) weight() float64 {
	if a == Degraded {
		return 0.25
	}
	return 1
}

// Options are what a Backlog is made of.
type Options struct {
	// File is the journal's name; "" keeps the list in memory only.
	File   string
	Limits Limits
	// Log hears of what could not be read or written. nil means slog.Default().
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// inboxMost and inboxBytes bound the keys that are taken in between two looks at them,
// a second apart. A site that asks for more different pictures than this has other
// troubles.
const (
	inboxMost  = 20_000
	inboxBytes = 8 << 20
)

// asked is what came for one key since the last look.
type asked struct {
	weight float64
	listed bool
}

// Backlog is the list. It is safe for use by many goroutines.
type Backlog struct {
	now func() time.Time
	log *slog.Logger
	// longest is Limits.Key.
	longest int

	// inMu is taken last, and never held for longer than a look into a map.
	inMu   sync.Mutex
	inbox  map[cache.Key]asked
	inSize int // of the keys in inbox, in bytes
	// overrun and tooLarge count what was not taken in.
	overrun, tooLarge uint64

	mu      sync.Mutex
	queue   *queue
	hands   hands
	dirty   []*item
	made    uint64
	dropped map[Cause]uint64
	swept   time.Time

	fileMu  sync.Mutex // taken before mu
	journal journal
}

// Open makes a list of what the journal has. It never fails: what cannot be read is
// logged and lost.
func Open(o Options) *Backlog {
	b := &Backlog{
		now: o.Now, log: o.Log, longest: o.Limits.Key, inbox: map[cache.Key]asked{}, queue: newQueue(o.Limits), dropped: map[Cause]uint64{},
		journal: journal{name: o.File}, hands: hands{busy: map[string]bool{}, slow: map[string]bool{}},
	}
	if b.now == nil {
		b.now = time.Now
	}
	if b.log == nil {
		b.log = slog.Default()
	}
	now := b.now()
	err := b.journal.open(func(r record) { b.queue.restore(r, now) })
	if err != nil {
		b.log.Warn("conversions that were to be made later are lost, and are made when somebody asks for the pictures",
			"kept", b.queue.entries, "error", err)
	}
	b.swept = now
	b.queue.dropped = func(_ *item, why Cause) { b.dropped[why]++ }
	if o.File != "" {
		b.queue.touched = func(it *item) { b.dirty = append(b.dirty, it) }
	}
	b.queue.shrink()
	return b
}

// Ask takes a wish in. It waits for nothing.
func (b *Backlog) Ask(key cache.Key, a Ask) {
	b.inMu.Lock()
	defer b.inMu.Unlock()
	got, found := b.inbox[key]
	if !found {
		size := len(key.Site) + len(key.Path) + len(key.Rest) + len(key.Form)
		switch {
		case size > b.longest:
			b.tooLarge += listed(a)
			return
		case len(b.inbox) >= inboxMost, b.inSize > inboxBytes-size:
			b.overrun += listed(a)
			return
		}
		b.inSize += size
	}
	got.weight += a.weight()
	got.listed = got.listed || a != Again
	b.inbox[key] = got
}

// listed counts an ask that would have put something on the list.
func listed(a Ask) uint64 {
	if a == Again {
		return 0
	}
	return 1
}

// take moves what came to the list. The lock is held.
func (b *Backlog) take() {
	b.inMu.Lock()
	var came map[cache.Key]asked
	if len(b.inbox) > 0 {
		came, b.inbox = b.inbox, make(map[cache.Key]asked, min(len(b.inbox), 1000))
	}
	b.dropped[Overrun] += b.overrun
	b.dropped[TooLarge] += b.tooLarge
	b.overrun, b.tooLarge, b.inSize = 0, 0, 0
	b.inMu.Unlock()
	now := b.now()
	for key, a := range came {
		b.queue.add(key, a.weight, a.listed, now)
	}
	if now.Sub(b.swept) >= sweepEvery || now.Before(b.swept) {
		b.swept = now
		b.queue.sweep(now)
	}
}

// Drop takes the entries off the list whose keys match, and gives how many these were.
func (b *Backlog) Drop(match func(cache.Key) bool, why Cause) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	var matching []*item
	for _, s := range b.queue.sites {
		for _, it := range s.items {
			if match(it.key()) {
				matching = append(matching, it)
			}
		}
	}
	for _, it := range matching {
		b.queue.drop(it, why)
	}
	return len(matching)
}

// Clear takes all entries of a site off the list.
func (b *Backlog) Clear(site string) int {
	return b.Drop(func(k cache.Key) bool { return k.Site == site }, Cleared)
}

// Purge forgets what was to be made of pictures that were purged: the entries whose keys
// match.
func (b *Backlog) Purge(match func(cache.Key) bool) { b.Drop(match, Purged) }
