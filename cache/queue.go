package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// laneWorkers is how many writes of one volume go on at a time. A disk does several
// small ones at once about as fast as one.
const laneWorkers = 4

// queue is the write buffer: what was put waits here for its disk, and is read from
// here until it is written. A Put never waits for a disk.
//
// Each volume has a lane with its share of the room, so that a slow disk takes none
// from the others. A lane that is full turns writes away.
//
// Lock order: mu before a volume's mu; never held over a call to a file system.
type queue struct {
	volumes volumes
	memory  *memory
	purges  *purges
	room    int64 // of a lane, in bytes

	count atomic.Int64 // of newest, for a look without the lock

	mu      sync.Mutex
	newest  map[hash]*waiting // what is answered for a key
	writing map[hash]*waiting // what a worker has in hand for a key
	fences  map[hash]*fence   // Deletes under way
	lanes   map[*volume]*lane
	bytes   int64
	dropped uint64
	ended   bool            // nothing more is written
	idle    []chan struct{} // closed when nothing waits any more

	workers sync.WaitGroup
}

// waiting is one write. Its fields are guarded by the queue's mu, gone apart.
type waiting struct {
	hash  hash
	entry *Entry // is never changed, only replaced
	cost  int64
	lane  *lane
	next  *waiting    // newer, of the same key; queued once this one is written
	gone  atomic.Bool // deleted or replaced since: must not get its name
}

func (w *waiting) fetched() int64 { return toNano(w.entry.Meta.FetchStart) }

// lane is what waits for one volume, in order.
type lane struct {
	volume *volume
	line   []*waiting
	bytes  int64
	wake   *sync.Cond
}

// fence turns Puts away that are no newer than a Delete which is under way: until
// every volume knows of it.
type fence struct {
	at    int64
	users int
}

func newQueue(vs volumes, m *memory, p *purges, limit int64) *queue {
	q := &queue{
		volumes: vs, memory: m, purges: p, room: limit / int64(len(vs)),
		newest: map[hash]*waiting{}, writing: map[hash]*waiting{}, fences: map[hash]*fence{}, lanes: map[*volume]*lane{},
	}
	for _, v := range vs {
		l := &lane{volume: v, wake: sync.NewCond(&q.mu)}
		q.lanes[v] = l
		for range laneWorkers {
			q.workers.Go(func() { q.work(l) })
		}
	}
	return q
}

// get gives the entry that waits to be written under a key; found without an entry
// is one that has expired.
func (q *queue) get(key *Key, h hash, now time.Time) (e *Entry, found bool) {
	if q.count.Load() == 0 {
		return nil, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.newest[h]
	if w == nil || w.entry.Key != *key {
		return nil, false
	}
	if w.entry.Meta.expired(now) {
		return nil, true
	}
	return w.entry, true
}

// errFull is why a write was dropped.
var errFull = fmt.Errorf("%w: cache.write_queue is full, the disk does not keep up", ErrUnavailable)

// fits says whether a body of that size can ever wait here.
func (q *queue) fits(size int64) bool { return size <= q.room/2 }

// put takes an entry in. It changes nothing when it gives an error.
func (q *queue) put(h hash, e *Entry) error {
	lane := q.lanes[best(h, q.volumes)]
	fetched := toNano(e.Meta.FetchStart)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return ErrClosed
	}
	if q.purges.hit(&e.Key, &e.Meta) { // what comes after this look is met by purge
		lane.volume.superseded.Add(1)
		return errPurged
	}
	if f := q.fences[h]; f != nil && fetched <= f.at || q.volumes.outdated(h, fetched) {
		lane.volume.superseded.Add(1)
		return ErrSuperseded
	}
	old := q.newest[h]
	if old != nil && old.fetched() > fetched {
		lane.volume.superseded.Add(1)
		return ErrSuperseded
	}
	w := &waiting{hash: h, entry: e, cost: costOf(e), lane: lane}
	free := int64(0)
	if old != nil && old != q.writing[h] {
		lane = old.lane // it takes the place of the old one
		free = old.cost
		w.lane = lane
	}
	if lane.bytes-free+w.cost > q.room {
		q.dropped++
		return errFull
	}
	q.replace(old, w)
	return nil
}

func costOf(e *Entry) int64 {
	return int64(len(e.bytes)+e.Key.size()+len(e.Meta.Attributes)) + memoryOverhead
}

// replace puts w in the place of what waits under its key. Called with mu held.
func (q *queue) replace(old, w *waiting) {
	busy := q.writing[w.hash]
	if old != nil && old != busy {
		old.gone.Store(true)
		q.account(old, -1)
	}
	q.newest[w.hash] = w
	q.account(w, 1)
	if busy != nil {
		busy.next = w
		return
	}
	w.lane.line = append(w.lane.line, w)
	w.lane.wake.Signal()
}

// account counts a write in or out. Called with mu held.
func (q *queue) account(w *waiting, sign int64) {
	q.bytes += sign * w.cost
	w.lane.bytes += sign * w.cost
	q.count.Store(int64(len(q.newest)))
}

// update gives what waits under the entry's key new metadata; false if nothing does.
func (q *queue) update(h hash, e *Entry, meta Meta) (found bool, err error) {
	if q.count.Load() == 0 {
		return false, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.newest[h]
	if old == nil || old.entry.Key != e.Key {
		return false, nil
	}
	if f := q.fences[h]; f != nil && toNano(meta.FetchStart) <= f.at {
		return true, ErrGone
	}
	if old.entry.sum != e.sum || old.entry.size != e.size || old.fetched() > toNano(meta.FetchStart) {
		old.lane.volume.superseded.Add(1)
		return true, ErrSuperseded
	}
	meta.BodyStart = old.entry.Meta.Born()
	if q.purges.hit(&e.Key, &meta) {
		return true, ErrGone
	}
	renewed := *old.entry
	renewed.Meta = meta
	// Its cost may grow by some attributes, over the room if need be: what is
	// answered already is not dropped for that.
	q.replace(old, &waiting{hash: h, entry: &renewed, cost: costOf(&renewed), lane: old.lane})
	return true, nil
}

// begin is the first half of a Delete: what waits and is no newer is never written
// nor answered again, and no Put of the like gets in before end is called.
func (q *queue) begin(h hash, at int64) (end func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := q.fences[h]
	if f == nil {
		f = &fence{}
		q.fences[h] = f
	}
	f.at = max(f.at, at)
	f.users++
	q.overtake(h, at)
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if f.users--; f.users == 0 {
			delete(q.fences, h)
		}
	}
}

// overtake drops what waits under a key and was fetched at that time or before.
// Called with mu held.
func (q *queue) overtake(h hash, at int64) {
	if busy := q.writing[h]; busy != nil && busy.fetched() <= at {
		busy.gone.Store(true) // it is let go when its worker comes back
	}
	w := q.newest[h]
	if w == nil || w.fetched() > at {
		return
	}
	w.gone.Store(true)
	delete(q.newest, h)
	if w != q.writing[h] {
		q.account(w, -1)
	}
	q.count.Store(int64(len(q.newest)))
	q.rest()
}

// purge drops what waits and was purged. What a worker has in hand does not get its
// name, or is found by the sweep.
func (q *queue) purge() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for h, w := range q.newest {
		if q.purges.hit(&w.entry.Key, &w.entry.Meta) {
			q.overtake(h, w.fetched())
		}
	}
}

// stream looks whether a body that does not wait here may be written: not if its
// lane is full, or something newer waits.
func (q *queue) stream(h hash, fetched int64) error {
	lane := q.lanes[best(h, q.volumes)]
	q.mu.Lock()
	defer q.mu.Unlock()
	switch w := q.newest[h]; {
	case w != nil && w.fetched() > fetched:
		lane.volume.superseded.Add(1)
		return ErrSuperseded
	case lane.bytes >= q.room/2 && len(lane.line) > laneWorkers:
		q.dropped++
		return errFull
	}
	return nil
}

// streamed tells of a body that was written past the queue.
func (q *queue) streamed(h hash, fetched int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.overtake(h, fetched)
}

// work writes what waits in a lane.
func (q *queue) work(l *lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(l.line) == 0 && !q.ended {
			l.wake.Wait()
		}
		if q.ended {
			return
		}
		w := l.line[0]
		l.line[0] = nil
		l.line = l.line[1:]
		if w.gone.Load() {
			continue // accounted for by whoever marked it
		}
		q.writing[w.hash] = w
		e := w.entry
		q.mu.Unlock()
		q.write(w, e)
		q.mu.Lock()
		q.done(w)
	}
}

// done lets go of a write, whatever came of it. Called with mu held.
func (q *queue) done(w *waiting) {
	delete(q.writing, w.hash)
	q.account(w, -1)
	if q.newest[w.hash] == w {
		delete(q.newest, w.hash)
		q.count.Store(int64(len(q.newest)))
	}
	if n := w.next; n != nil && !n.gone.Load() {
		n.lane.line = append(n.lane.line, n)
		n.lane.wake.Signal()
	}
	q.rest()
}

// write brings an entry to a disk. It is answered from the queue until this is done.
func (q *queue) write(w *waiting, e *Entry) {
	d := wholeDraft(e.Key, w.hash, e.Meta, e.bytes, e.sum)
	d.gone = &w.gone
	version, err := q.volumes.write(d)
	switch {
	case err == nil:
		q.memory.set(w.hash, version, e.Key, e.Meta, e.sum, e.bytes)
	case errors.Is(err, ErrSuperseded), errors.Is(err, ErrClosed):
	default:
		// The volumes have said why. What was there before must not come back, now
		// that this one has been answered.
		q.mu.Lock()
		q.dropped++
		q.mu.Unlock()
		if !w.gone.Load() {
			_ = q.volumes.remove(w.hash, e.Meta.FetchStart)
		}
	}
}

// rest tells those who wait for it that nothing waits any more. Called with mu held.
func (q *queue) rest() {
	if len(q.newest) > 0 || len(q.writing) > 0 {
		return
	}
	for _, c := range q.idle {
		close(c)
	}
	q.idle = nil
}

// flush waits until everything is written, or ctx ends.
func (q *queue) flush(ctx context.Context) error {
	q.mu.Lock()
	if q.ended || len(q.newest) == 0 && len(q.writing) == 0 {
		q.mu.Unlock()
		return nil
	}
	idle := make(chan struct{})
	q.idle = append(q.idle, idle)
	q.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		return fmt.Errorf("%d entries (%d bytes) are not written yet: %w", len(q.newest), q.bytes, ctx.Err())
	}
}

// close ends the workers after what they have in hand, and waits for them until ctx
// ends. What still waits is dropped.
func (q *queue) close(ctx context.Context) error {
	q.mu.Lock()
	q.ended = true
	left := len(q.newest)
	for _, l := range q.lanes {
		l.wake.Broadcast()
	}
	q.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		q.workers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	if left > 0 {
		return fmt.Errorf("close cache: %d entries were not written in time", left)
	}
	return nil
}

func (q *queue) stats() (bytes, room int64, dropped uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes, q.room * int64(len(q.volumes)), q.dropped
}
