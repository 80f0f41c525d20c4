package proxy

import (
	"time"

	"karui/convert/header"
)

// Queue is what is before the workers of one class.
type Queue struct {
	Workers int // conversions that may run at a time
	Busy    int // conversions running
	Waiting int // conversions waiting for a worker
	// Oldest is how long the longest waiting of these has waited.
	Oldest time.Duration
	// Each is how long a worker is busy with one conversion, in the mean of late; 0 for
	// not known yet.
	Each time.Duration
}

// delay estimates how long a conversion that comes now waits for a worker: as long as
// those before it take, and no less than the first of them has waited already.
func (q Queue) delay() time.Duration {
	if q.Waiting == 0 && q.Busy < q.Workers || q.Workers <= 0 {
		return 0
	}
	// A worker that is busy is half done, in the mean.
	before := time.Duration(q.Waiting)*q.Each + q.Each/2
	return max(before/time.Duration(q.Workers), q.Oldest)
}

// spare tells whether a worker is free that viewers will not miss: half of the
// workers, or the only one, are for them.
func (q Queue) spare() bool { return q.Waiting == 0 && (q.Busy == 0 || 2*(q.Busy+1) <= q.Workers) }

// quick tells whether a format has the workers for WebP.
func quick(f header.Format) bool { return f != header.AVIF && f != header.HEIC }

// chance is what is known of one format that a viewer takes and that has no result yet.
type chance struct {
	// makes is whether the dial makes it, resting whether it failed a moment ago, and
	// begun whether somebody sees to it.
	makes, resting, begun bool
	queue                 Queue
}

// inVain tells whether a viewer who has so much left to wait would wait for nothing.
// Formats are the viewer's, best first; the first of them that is made is the one it
// waits for.
func inVain(formats []chance, left time.Duration) bool {
	for _, c := range formats {
		switch {
		case !c.makes, c.resting:
			continue
		case c.begun && c.queue.Waiting == 0:
			return false // a worker has it
		}
		return c.queue.delay() >= left
	}
	return true
}

// patience gives how long a viewer of a flight that brings an original may wait for
// its variant: not at all where that would be in vain.
func (x *exchange) patience(f fetch, wanted []header.Format, b *board) time.Duration {
	left := x.set.wait - time.Since(x.start)
	if left <= 0 || len(wanted) == 0 {
		return 0
	}
	var fast, slow Queue
	if x.p.queues != nil {
		fast, slow = x.p.queues()
	}
	chances := make([]chance, 0, len(wanted))
	for _, format := range wanted {
		got, found, begun := b.look(format)
		switch {
		case found && got.record != nil:
			return left // it is there
		case found:
			continue
		}
		c := chance{makes: x.p.makes(x.site, format), resting: x.p.resting.rests(f.form(format.String())), begun: begun, queue: slow}
		if quick(format) {
			c.queue = fast
		}
		chances = append(chances, c)
	}
	if len(chances) == 0 || !inVain(chances, left) {
		return left
	}
	x.p.metrics.unwaited.Inc()
	return 0
}
