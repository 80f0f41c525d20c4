package convert

import (
	"maps"
	"sync"
	"time"
)

// Stats is what a pool has done and is doing. Counts and times only grow while the pool lives.
type Stats struct {
	// Load is that of the workers for WebP, of the class [Fast]; Slow is that of the workers for AVIF and HEIC. Nothing
	// is counted in both.
	Load
	Slow Load

	// Decisions counts what [Pool.Convert] decided, shared conversions once.
	Decisions map[Code]uint64
	// Ended counts worker processes that ended, by cause, those for slow codecs and for [Pool.Ping] among them.
	Ended map[Cause]uint64
	// Blamed counts the faults that were laid to an original, by cause: all for which it was left alone, and first
	// timeouts.
	Blamed map[Cause]uint64
	// Quarantined counts the sources that are left alone now, by the cause for which.
	Quarantined map[Cause]int

	// BytesIn and BytesOut are the sizes of converted originals and of their variants.
	BytesIn, BytesOut int64
}

// Load is what the workers of one class have done and are doing.
type Load struct {
	Workers int   // conversions that may run at a time
	Alive   int   // worker processes that are ready or busy, without the one for [Pool.Ping]; slow ones come and go
	Busy    int   // conversions running
	Done    int64 // conversions that a worker has ended, well or not
	Waiting int   // conversions waiting for a worker
	// WaitingBytes is the size of the originals that wait.
	WaitingBytes int64
	// OldestWait is how long the longest waiting of these has waited.
	OldestWait time.Duration
	// CPU is what conversions took in workers, failed ones included.
	CPU time.Duration
	// BusyTime is the time on the clock that workers spent on conversions, running ones included: over an interval,
	// its growth divided by (interval x Workers) is the share of busy worker time.
	BusyTime time.Duration
}

// tally is the part of Stats that is counted.
type tally struct {
	now func() time.Time

	mu        sync.Mutex
	decisions map[Code]uint64
	ended     map[Cause]uint64
	blamed    map[Cause]uint64
	in, out   int64
	loads     map[Class]*Load // what does not follow from the two below
	running   map[*request]time.Time
	waiting   map[*request]time.Time
}

func newTally(now func() time.Time) *tally {
	return &tally{
		now:       now,
		decisions: make(map[Code]uint64), ended: make(map[Cause]uint64), blamed: make(map[Cause]uint64),
		loads:   map[Class]*Load{Fast: {}, Slow: {}},
		running: make(map[*request]time.Time), waiting: make(map[*request]time.Time),
	}
}

func (t *tally) decided(r Result, in int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decisions[r.Decision.Code]++
	if r.Decision.Code == Converted {
		t.in += int64(in)
		t.out += int64(len(r.Body))
	}
}

// wait notes a request that waits, unless there are too many of them already, and returns how many there are.
func (t *tally) wait(l *lane, r *request) (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	load := t.loads[l.class]
	if size := int64(len(r.source)); load.Waiting >= l.most || load.WaitingBytes > l.mostBytes-size {
		return load.Waiting, false
	}
	load.Waiting++
	load.WaitingBytes += int64(len(r.source))
	t.waiting[r] = t.now()
	return load.Waiting, true
}

func (t *tally) waited(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	load := t.loads[r.class()]
	load.Waiting--
	load.WaitingBytes -= int64(len(r.source))
	delete(t.waiting, r)
}

func (t *tally) begin(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loads[r.class()].Busy++
	t.running[r] = t.now()
}

func (t *tally) end(r *request, cpu time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	load := t.loads[r.class()]
	load.Busy--
	load.Done++
	load.BusyTime += t.now().Sub(t.running[r])
	load.CPU += cpu
	delete(t.running, r)
}

func (t *tally) born(class Class) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loads[class].Alive++
}

// gone counts the end of a process of a class that was ready once.
func (t *tally) gone(class Class, why Cause) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended[why]++
	t.loads[class].Alive--
}

// lost counts the end of a process that was not ready yet, or not of any class.
func (t *tally) lost(why Cause) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended[why]++
}

// blame counts a fault that was laid to an original.
func (t *tally) blame(why Cause) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blamed[why]++
}

func (t *tally) stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	s := Stats{
		Load: *t.loads[Fast], Slow: *t.loads[Slow],
		Decisions: maps.Clone(t.decisions), Ended: maps.Clone(t.ended), Blamed: maps.Clone(t.blamed),
		BytesIn: t.in, BytesOut: t.out,
	}
	of := func(r *request) *Load {
		if r.class() == Slow {
			return &s.Slow
		}
		return &s.Load
	}
	for r, since := range t.running {
		of(r).BusyTime += now.Sub(since)
	}
	for r, since := range t.waiting {
		load := of(r)
		load.OldestWait = max(load.OldestWait, now.Sub(since))
	}
	return s
}
