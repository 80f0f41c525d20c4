package convert

import (
	"sync"
	"time"

	"karui/convert/header"
)

// Class is a kind of work that has workers and a queue of its own. It is a label in metrics, so the words never change.
type Class string

// The classes. AVIF and HEIC take 4 to 30 times the CPU time of WebP, and their encoders start threads of their own:
// whatever is asked of them, no WebP waits for it.
const (
	Fast Class = "fast" // WebP
	Slow Class = "slow" // AVIF and HEIC
)

// classOf says whose workers make the format.
func classOf(f header.Format) Class {
	switch f {
	case header.AVIF, header.HEIC:
		return Slow
	}
	return Fast
}

// lane is the workers of one class, and the queue in front of them.
type lane struct {
	class   Class
	workers int
	jobs    chan *request
	outage  *outage
	// wait is how long a job may wait for a worker; most bounds the jobs that wait, and mostBytes their originals.
	wait      time.Duration
	most      int
	mostBytes int64
	// unused is how long a worker lives without work; 0: for ever, and it is started before there is any. Those of
	// others are started when a job comes.
	unused time.Duration
	guards sync.Once // what keeps its workers in is logged once
}

const (
	// waitersMost bounds the conversions that wait at the same time, per worker. Far more than this cannot get their
	// turn within any sensible convert.queue_wait.
	waitersMost = 256
	// slowWaitersMost is the same for slow codecs, which do two to seven pictures of 1 MP in a second.
	slowWaitersMost = 32
	// slowUnused is how long a worker for slow codecs stays without work; its memory is then better given back.
	slowUnused = time.Minute
)

func newLane(class Class, cfg Config, unused time.Duration) *lane {
	l := &lane{class: class, workers: cfg.Workers, wait: cfg.QueueWait, jobs: make(chan *request)}
	l.most = waitersMost * l.workers
	// What waits was bounded when it was fetched, and is there for its viewers anyway.
	l.mostBytes = int64(l.most) * int64(cfg.MaxBytes)
	if class == Slow {
		l.workers = max(1, cfg.Workers/2)
		l.unused = unused
		l.most = slowWaitersMost * l.workers
		// Here nobody else needs the originals any more. Two of the largest may wait in any case.
		l.mostBytes = 2 * int64(cfg.MaxBytes) * int64(l.workers)
	}
	l.outage = newOutage(l.workers)
	return l
}
