package server

import (
	"sync"
	"time"

	"karui/convert"
	"karui/proxy"
)

const (
	// queuesFor is how long a look at the workers is good for: much less than anybody
	// waits for a variant, and long enough that looking costs nothing under load.
	queuesFor = 20 * time.Millisecond
	// eachOver is the time over which the mean of a conversion is taken, at least.
	eachOver = time.Second
)

// queues are what is before the workers of the two classes.
type queues struct {
	stats func() convert.Stats
	now   func() time.Time

	mu         sync.Mutex
	at         time.Time
	fast, slow classQueue
}

// classQueue is what is before the workers of one class.
type classQueue struct {
	queue proxy.Queue
	// since is the begin of the time over which the mean is taken, and done and busy are
	// what the workers had done until then.
	since time.Time
	done  int64
	busy  time.Duration
}

// look gives the queues as they were at most queuesFor ago.
func (q *queues) look() (fast, slow proxy.Queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.now(); q.at.IsZero() || now.Sub(q.at) >= queuesFor || now.Before(q.at) {
		stats := q.stats()
		q.fast.take(stats.Load, now)
		q.slow.take(stats.Slow, now)
		q.at = now
	}
	return q.fast.queue, q.slow.queue
}

func (c *classQueue) take(l convert.Load, now time.Time) {
	each := c.queue.Each
	if done := l.Done - c.done; c.since.IsZero() || now.Before(c.since) || now.Sub(c.since) >= eachOver && done > 0 {
		if done > 0 {
			each = (l.BusyTime - c.busy) / time.Duration(done)
		}
		c.since, c.done, c.busy = now, l.Done, l.BusyTime
	}
	c.queue = proxy.Queue{Workers: l.Workers, Busy: l.Busy, Waiting: l.Waiting, Oldest: l.OldestWait, Each: max(each, 0)}
}
