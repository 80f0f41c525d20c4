package convert

import (
	"context"
	"fmt"
	"time"

	"karui/internal/units"
)

const (
	// wallFactor: see settings.
	wallFactor = 3
	// takeLimit is how long a worker may take to read a job, which takes it a few milliseconds.
	takeLimit = 10 * time.Second
	// stoppedMost is how many times in a row, at watchEvery, a worker may be found stopped by a signal.
	stoppedMost = 2
)

// verdict is how one job on one process ended.
type verdict struct {
	result  result
	body    []byte
	cpu     time.Duration
	fault   Cause // "" when the worker answered and lives on
	started bool  // the worker had read the whole job
	detail  string
	closed  bool // the pool was closed meanwhile
	starved bool // it took so long since others had the processors
}

// run hands one job to the process and waits for its result. After a fault the process is dead and waited for.
func (p *process) run(ctx context.Context, j job, source []byte, memory units.Size) verdict {
	most := p.wallFactor * j.Timeout
	wall := time.NewTimer(most)
	defer wall.Stop()
	p.limit.Store(j.bodyMost(source))
	defer p.limit.Store(0)
	p.jobs++

	sent := make(chan error, 1)
	go func() { sent <- writeFrame(p.conn, frameJob, j, source) }()
	v := p.await(ctx, j, memory, wall.C, most)
	if v.fault != "" || v.closed {
		v.cpu = p.reap() // closes the connection, which ends the write
		_ = <-sent
		return v
	}
	if err := <-sent; err != nil { // cannot be, with a result to match
		p.kill(CauseGarbage)
		return verdict{cpu: p.reap(), fault: CauseGarbage, started: v.started, detail: err.Error()}
	}
	p.cpuUsed += v.cpu
	return v
}

// await reads frames until the result, and watches the process meanwhile.
func (p *process) await(ctx context.Context, j job, memory units.Size, wall <-chan time.Time, most time.Duration) verdict {
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	take := time.NewTimer(takeLimit)
	defer take.Stop()
	var v verdict
	var stopped int
	// To look for starvation takes a dozen files: only for what is about to be late.
	late := time.NewTimer(most / 2)
	defer late.Stop()
	var delay time.Duration // as of then
	fail := func(why Cause, detail string) verdict {
		p.kill(why)
		<-p.dead
		v.fault, v.detail = p.killedFor(), detail
		return v
	}
	for {
		select {
		case f, ok := <-p.frames:
			if !ok {
				return p.died(v)
			}
			if !v.started {
				var s started
				if err := f.decode(frameStarted, &s); err != nil {
					return fail(CauseGarbage, err.Error())
				}
				if s.ID != j.ID {
					return fail(CauseGarbage, fmt.Sprintf("job %d started where %d was sent", s.ID, j.ID))
				}
				v.started = true
				take.Stop()
				continue
			}
			if err := f.decode(frameResult, &v.result); err != nil {
				return fail(CauseGarbage, err.Error())
			}
			if why := implausible(v.result, f.body, j.ID); why != "" {
				return fail(CauseGarbage, why)
			}
			v.body, v.cpu = f.body, v.result.CPU
			return v
		case <-look.C:
			u, err := readUsage(p.cmd.Process.Pid)
			if err != nil {
				continue // it died: the socket says so next
			}
			if used := u.cpu - p.cpuUsed; used > j.Timeout {
				return fail(CauseTimeout, fmt.Sprintf("%s of CPU time used, and at most %s are given", used.Round(tick), j.Timeout))
			}
			if u.rss > int64(memory) {
				return fail(CauseMemory, fmt.Sprintf("%d MiB held, and at most %s are given", u.rss>>20, memory))
			}
			if stopped++; !u.stopped {
				stopped = 0
			}
			if stopped >= stoppedMost {
				return fail(CauseStopped, "the worker was stopped by a signal")
			}
		case <-late.C:
			delay = readDelay(p.cmd.Process.Pid)
		case <-take.C:
			return fail(CauseStopped, fmt.Sprintf("the worker did not take the job within %s", takeLimit))
		case <-wall:
			v.starved = readDelay(p.cmd.Process.Pid)-delay > most/4
			return fail(CauseTimeout, fmt.Sprintf("not done after %s on the clock", most))
		case <-ctx.Done():
			p.kill(CauseClosed)
			<-p.dead
			v.closed = true
			return v
		}
	}
}

// implausible says what is wrong with a result that decodes, "" when nothing is.
func implausible(r result, body []byte, id uint64) string {
	switch {
	case r.ID != id:
		return fmt.Sprintf("result of job %d where %d was sent", r.ID, id)
	case (r.Code == Converted) != (len(body) > 0):
		return fmt.Sprintf("code %q with a body of %d bytes", r.Code, len(body))
	case r.CPU < 0 || r.Bytes < 0:
		return "a negative amount"
	}
	switch r.Code {
	case Converted, NotSmaller, NotConvertible, OddCanvas, TooSlow, Graphic, NoEncoder, Broken, Truncated, DecodeFailed, EncodeFailed, Mismatch:
		return ""
	}
	return fmt.Sprintf("code %q, which workers do not use", r.Code) // it would become a label in metrics
}

// died tells apart why a process is gone that was not killed from here.
func (p *process) died(v verdict) verdict {
	if p.killedFor() == "" {
		// Its end may lag behind the end of its socket, or it closed the socket and goes on: either way it is over.
		timer := time.NewTimer(stopGrace)
		defer timer.Stop()
		select {
		case <-p.dead:
		case <-timer.C:
			_ = p.cmd.Process.Kill()
			<-p.dead
		}
	} else {
		<-p.dead
	}
	v.fault = p.killedFor()
	v.detail = p.cmd.ProcessState.String()
	if v.fault == "" {
		v.fault = p.causeOfDeath()
	}
	if v.fault == CauseGarbage && p.readErr != nil {
		v.detail = p.readErr.Error()
	}
	return v
}
