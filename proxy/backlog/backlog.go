package backlog

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
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

// inboxMost bounds the keys that are taken in between two looks at them. A site that
// asks for more different pictures in a second than this has other troubles.
const inboxMost = 20_000

// asked is what came for one key since the last look.
type asked struct {
	weight float64
	listed bool
}

// Backlog is the list. It is safe for use by many goroutines.
type Backlog struct {
	now func() time.Time
	log *slog.Logger

	// inMu is taken last, and never held for longer than a look into a map.
	inMu    sync.Mutex
	inbox   map[cache.Key]asked
	overrun uint64

	mu      sync.Mutex
	queue   *queue
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
		now: o.Now, log: o.Log, inbox: map[cache.Key]asked{}, queue: newQueue(o.Limits), dropped: map[Cause]uint64{},
		journal: journal{name: o.File},
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
	b.queue.touched = func(it *item) { b.dirty = append(b.dirty, it) }
	b.queue.shrink()
	return b
}

// restore takes in what a journal says, as far as it makes sense at this time.
func (q *queue) restore(r record, now time.Time) {
	if s := q.sites[r.site]; s != nil {
		if it := s.items[r.name]; it != nil {
			q.remove(it)
		}
	}
	if r.kind != recordPut || len(r.name) > q.limits.Key || int(r.tries) >= q.limits.Tries {
		return
	}
	// What is from the future is from a clock that was wrong.
	present := now.Unix()
	it := &item{
		name: r.name, first: min(r.first, present), last: min(r.last, present),
		after: min(r.after, present+int64(q.limits.Age/time.Second)), tries: r.tries,
		heat: min(max(r.heat, 0), heatAt(now, math.MaxUint32)),
	}
	it.written = float32(it.heat)
	if q.old(it, now) {
		return
	}
	q.insert(r.site, it, now)
	if q.entries > 2*q.limits.Entries || q.bytes > 2*q.limits.Bytes {
		q.shrink() // records of entries that leave later may follow
	}
}

// Ask takes a wish in. It waits for nothing.
func (b *Backlog) Ask(key cache.Key, a Ask) {
	b.inMu.Lock()
	defer b.inMu.Unlock()
	got, found := b.inbox[key]
	if !found && len(b.inbox) >= inboxMost {
		if a != Again {
			b.overrun++
		}
		return
	}
	got.weight += a.weight()
	got.listed = got.listed || a != Again
	b.inbox[key] = got
}

// take moves what came to the list. The lock is held.
func (b *Backlog) take() {
	b.inMu.Lock()
	var came map[cache.Key]asked
	if len(b.inbox) > 0 {
		came, b.inbox = b.inbox, make(map[cache.Key]asked, min(len(b.inbox), 1000))
	}
	b.dropped[Overrun] += b.overrun
	b.overrun = 0
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

// Flush writes what is new to the journal. While that fails, it is tried again every
// ten seconds, and in between the last error is given again.
func (b *Backlog) Flush() error {
	b.fileMu.Lock()
	defer b.fileMu.Unlock()
	j := &b.journal
	now := b.now()
	out, whole := b.due(now)
	switch {
	case len(out) == 0:
		return j.err
	case whole:
		j.err = j.replace(out)
	default:
		j.err = j.append(out)
	}
	if j.err != nil {
		j.retry = now.Add(repairAfter)
	}
	return j.err
}

// due gives what is to be written now, and whether that is the whole list. The file's
// lock is held.
func (b *Backlog) due(now time.Time) (out []byte, whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	// What cannot be written now is part of the whole list that is written later.
	defer func() {
		for _, it := range b.dirty {
			it.dirty, it.written = false, float32(it.heat)
		}
		clear(b.dirty)
		b.dirty = b.dirty[:0]
	}()
	j := &b.journal
	if j.name == "" || j.err != nil && now.Before(j.retry) {
		return nil, false
	}
	if j.file == nil && j.err == nil && len(b.dirty) == 0 {
		return nil, false // a list that never was needs no file
	}
	if j.file == nil || j.size > 2*b.written()+slack {
		return b.snapshot(), true
	}
	for _, it := range b.dirty {
		out = appendRecord(out, it.record())
	}
	return out, false
}

// written is about what the list takes in a journal, in bytes: recordFrame is what a
// record has besides the entry's key.
func (b *Backlog) written() int64 {
	return b.queue.bytes - int64(b.queue.entries)*(overhead-recordFrame)
}

// snapshot gives the whole list as a journal. The lock is held.
func (b *Backlog) snapshot() []byte {
	out := make([]byte, 0, b.queue.bytes/2+int64(len(magic)))
	out = append(out, magic...)
	for _, s := range b.queue.sites {
		for _, it := range s.items {
			out = appendRecord(out, it.record())
		}
	}
	return out
}

// Keep writes the journal once a second until ctx ends, and then for the last time.
// What cannot be written is logged once until it works again.
func (b *Backlog) Keep(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	failing := false
	flush := func() {
		err := b.Flush()
		if err != nil && !failing {
			b.log.Warn("conversions that are to be made later are remembered only until the next restart", "error", err)
		}
		failing = err != nil
	}
	for {
		select {
		case <-tick.C:
			flush()
		case <-ctx.Done():
			flush()
			return
		}
	}
}

// Close ends the use of the journal; what was not flushed is lost. Call it when Keep
// and Work have returned.
func (b *Backlog) Close() {
	b.fileMu.Lock()
	defer b.fileMu.Unlock()
	b.journal.drop()
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

// Entry is one entry as operators see it.
type Entry struct {
	Key cache.Key
	// Asked counts the asks, each halved with every hour since.
	Asked float64
	// First and Last are when it was asked for first and last.
	First, Last time.Time
	// Tries is how often it failed; After is when it is tried again, zero for now.
	Tries int
	After time.Time
}

// SiteStatus is what is on the list for one site.
type SiteStatus struct {
	Site    string
	Entries int
	// Oldest is when the longest waiting entry was first asked for.
	Oldest time.Time
	// Next are those that are made next, the first at the front.
	Next []Entry
}

// Status is a moment's view of the list.
type Status struct {
	Entries int
	Bytes   int64
	Limits  Limits
	// Sites are in the order of their ids.
	Sites []SiteStatus
	// Made counts what was made, and Dropped what left the list otherwise, since the
	// start.
	Made    uint64
	Dropped map[Cause]uint64
}

// Status looks at the list, and at the next entries of each site, up to n. It looks at
// every entry.
func (b *Backlog) Status(n int) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	now := b.now()
	s := Status{Entries: b.queue.entries, Bytes: b.queue.bytes, Limits: b.queue.limits, Made: b.made, Dropped: map[Cause]uint64{}}
	for _, c := range causes {
		s.Dropped[c] = b.dropped[c]
	}
	for _, of := range b.queue.sites {
		s.Sites = append(s.Sites, of.status(n, now))
	}
	slices.SortFunc(s.Sites, func(a, b SiteStatus) int { return cmp.Compare(a.Site, b.Site) })
	return s
}

func (s *site) status(n int, now time.Time) SiteStatus {
	out := SiteStatus{Site: s.id, Entries: len(s.items)}
	oldest := int64(math.MaxInt64)
	var top []*item
	for _, it := range s.items {
		oldest = min(oldest, it.first)
		if n <= 0 || it.state == busy {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, it, sooner)
		if at < n {
			if len(top) == n {
				top = top[:n-1]
			}
			top = slices.Insert(top, at, it)
		}
	}
	out.Oldest = time.Unix(oldest, 0)
	for _, it := range top {
		e := Entry{
			Key: it.key(), Asked: math.Exp2(it.heat - heatAt(now, 1)), First: time.Unix(it.first, 0), Last: time.Unix(it.last, 0),
			Tries: int(it.tries),
		}
		if it.after > now.Unix() {
			e.After = time.Unix(it.after, 0)
		}
		out.Next = append(out.Next, e)
	}
	return out
}

// sooner orders entries of one site by when they are made.
func sooner(a, b *item) int {
	switch {
	case a.state != b.state:
		return cmp.Compare(a.state, b.state)
	case a.state == waiting && a.after != b.after:
		return cmp.Compare(a.after, b.after)
	case hotter(a, b):
		return -1
	case hotter(b, a):
		return 1
	}
	return 0
}

// Counts gives the number of entries by site.
func (b *Backlog) Counts() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take()
	counts := make(map[string]int, len(b.queue.sites))
	for id, s := range b.queue.sites {
		counts[id] = len(s.items)
	}
	return counts
}
