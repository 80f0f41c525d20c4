package convert

import (
	"maps"
	"sync"
	"time"
)

// Stats is what a pool has done and is doing. Counts and times only grow while the pool lives.
type Stats struct {
	Workers int // conversions that may run at a time
	Alive   int // worker processes that are ready or busy, without the one for [Pool.Ping]
	Busy    int // conversions running
	Waiting int // conversions waiting for a worker
	// OldestWait is how long the longest waiting of these has waited.
	OldestWait time.Duration

	// Decisions counts what [Pool.Convert] decided, shared conversions once.
	Decisions map[Code]uint64
	// Ended counts worker processes that ended, by cause; for each but "closed" a new one was started.
	Ended map[Cause]uint64
	// Quarantined counts the sources that are left alone now, by the cause for which.
	Quarantined map[Cause]int

	// CPU is what conversions took in workers, failed ones included.
	CPU time.Duration
	// BusyTime is the time on the clock that workers spent on conversions, running ones included: over an interval,
	// its growth divided by (interval x Workers) is the share of busy worker time.
	BusyTime time.Duration
	// BytesIn and BytesOut are the sizes of converted originals and of their variants.
	BytesIn, BytesOut int64
}

// tally is the part of Stats that is counted.
type tally struct {
	now func() time.Time

	mu        sync.Mutex
	decisions map[Code]uint64
	ended     map[Cause]uint64
	cpu       time.Duration
	busyTime  time.Duration
	in, out   int64
	alive     int
	running   map[*request]time.Time
	waiting   map[*request]time.Time
}

func newTally(now func() time.Time) *tally {
	return &tally{
		now:       now,
		decisions: make(map[Code]uint64), ended: make(map[Cause]uint64),
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

// wait notes a request that waits, unless there are most of them already.
func (t *tally) wait(r *request, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) >= most {
		return false
	}
	t.waiting[r] = t.now()
	return true
}

func (t *tally) waited(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, r)
}

func (t *tally) begin(r *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running[r] = t.now()
}

func (t *tally) end(r *request, cpu time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busyTime += t.now().Sub(t.running[r])
	t.cpu += cpu
	delete(t.running, r)
}

func (t *tally) born() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alive++
}

// gone counts the end of a process; counted says that it was ready once.
func (t *tally) gone(why Cause, counted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended[why]++
	if counted {
		t.alive--
	}
}

func (t *tally) stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	s := Stats{
		Alive: t.alive, Busy: len(t.running), Waiting: len(t.waiting),
		Decisions: maps.Clone(t.decisions), Ended: maps.Clone(t.ended),
		CPU: t.cpu, BusyTime: t.busyTime, BytesIn: t.in, BytesOut: t.out,
	}
	for _, since := range t.running {
		s.BusyTime += now.Sub(since)
	}
	for _, since := range t.waiting {
		s.OldestWait = max(s.OldestWait, now.Sub(since))
	}
	return s
}
