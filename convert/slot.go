package convert

import (
	"math/rand/v2"
	"time"
)

// A worker that cannot be started, or dies before its first job, is tried again after a pause that doubles. The
// first pause is short enough for a pool to be whole again within a second after a passing fault.
const (
	pauseFirst = 50 * time.Millisecond
	pauseMost  = 10 * time.Second
)

// attemptsMost is how many processes may be given one job: a second one only when the first was gone before it had
// read the job, so that an image which kills workers cannot kill one after the other.
const attemptsMost = 2

// failuresMost is how many starts in a row may fail until nobody waits for the worker any more: a single one says
// little, since whatever ends all workers also ends those that are about to be ready.
const failuresMost = 2

// slot keeps the n-th worker process of a lane alive and feeds it, until the pool is closed.
func (p *Pool) slot(l *lane, n int) {
	var pause time.Duration
	var left *request // a job without a process: nobody was there for it, or was gone before having read it
	failures := 0
	for p.ctx.Err() == nil {
		if l.unused > 0 && left == nil && failures < failuresMost {
			select {
			case left = <-l.jobs:
			case <-p.ctx.Done():
				return
			}
		}
		proc, r, err := p.launch(seat{l.class, n})
		if err != nil {
			if p.ctx.Err() != nil {
				break
			}
			if failures++; failures >= failuresMost && left != nil {
				left.done <- verdict{fault: CauseStart, detail: err.Error()}
				left = nil
			}
			if failures == failuresMost {
				l.outage.fail()
				p.set.log.Error("cannot start a conversion worker", "class", string(l.class), "error", err)
			}
			p.rest(&pause)
			continue
		}
		if failures >= failuresMost {
			l.outage.recover()
			p.set.log.Info("conversion workers can be started again", "class", string(l.class))
		}
		failures = 0
		p.logGuards(l, r)
		p.tally.born(l.class)
		var why Cause
		why, left = p.feed(l, proc, left)
		p.tally.gone(l.class, why)
		if why == CauseIdle && proc.jobs == 0 {
			p.rest(&pause)
		} else {
			pause = 0
		}
	}
	if left != nil {
		left.done <- verdict{closed: true}
	}
}

// rest waits before the next try, twice as long as the time before.
func (p *Pool) rest(pause *time.Duration) {
	*pause = min(max(2**pause, pauseFirst), pauseMost)
	timer := time.NewTimer(*pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
}

// feed gives jobs to a process until it ends. It returns why it ended, and a job that must go to the next process.
func (p *Pool) feed(l *lane, proc *process, left *request) (Cause, *request) {
	// Workers that started together are not to be recycled together.
	most := p.cfg.Recycle
	if spread := most / 10; spread > 0 {
		most -= rand.IntN(spread)
	}
	unused := time.NewTimer(l.unused)
	defer unused.Stop()
	for proc.jobs < most && !proc.bloated(p.cfg.WorkerMemory) {
		req := left
		left = nil
		if req == nil {
			var over <-chan time.Time
			if l.unused > 0 {
				unused.Reset(l.unused)
				over = unused.C
			}
			select {
			case req = <-l.jobs:
			case <-over:
				proc.stop(CauseUnused)
				return CauseUnused, nil
			case _, ok := <-proc.frames: // nothing is due between jobs
				if ok {
					proc.kill(CauseGarbage)
				}
				v := proc.died(verdict{})
				proc.reap()
				if v.fault == CauseGarbage {
					return CauseGarbage, nil
				}
				return CauseIdle, nil
			case <-p.ctx.Done():
				proc.stop(CauseClosed)
				return CauseClosed, nil
			}
		}
		req.attempts++
		p.tally.begin(req)
		v := proc.run(p.ctx, req.job, req.source, p.cfg.WorkerMemory)
		p.tally.end(req, v.cpu)
		switch {
		case v.closed:
			req.done <- v
			return CauseClosed, nil
		case v.fault == "":
			proc.failed = v.result.Code != Converted && v.result.Code != NotSmaller
			req.done <- v
		case !v.started && v.fault == CauseCrash && req.attempts < attemptsMost:
			return CauseIdle, req
		case !v.started && v.fault == CauseStopped && req.attempts < attemptsMost:
			return CauseStopped, req
		default:
			req.done <- v
			return v.fault, nil
		}
	}
	proc.stop(CauseRecycled)
	return CauseRecycled, nil
}
