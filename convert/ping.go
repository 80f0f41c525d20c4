package convert

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"karui/convert/header"
)

// pingPNG is a drawn landscape of 160 x 120 px.
//
//go:embed ping.png
var pingPNG []byte

// pingTimeout bounds the conversion of the built-in picture while a worker starts; it takes some hundredths of a second.
const pingTimeout = time.Minute

// pingJob is the conversion of the built-in picture to a JPEG.
func pingJob(id uint64, timeout time.Duration) (job, []byte) {
	info, _ := header.Parse(pingPNG)
	plan := Plan{Source: header.PNG, Target: header.JPEG, Quality: 80}
	return job{ID: id, Info: info, Plan: plan, Timeout: timeout}, pingPNG
}

// pinger has a worker of its own, started with the first ping, so that a ping never waits behind conversions.
type pinger struct {
	pool *Pool
	turn chan struct{} // holds one token
	proc *process
}

func newPinger(p *Pool) *pinger {
	g := &pinger{pool: p, turn: make(chan struct{}, 1)}
	g.turn <- struct{}{}
	return g
}

// Ping converts a small built-in picture to a JPEG now, in a worker beside the queue, and returns the JPEG. Pings at
// the same time wait for each other. The error says what is wrong with the workers.
func (p *Pool) Ping(ctx context.Context) ([]byte, error) {
	select {
	case <-p.pinger.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !p.enter() {
		p.pinger.turn <- struct{}{}
		return nil, ErrClosed
	}
	type answer struct {
		body []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() { // goes on when the caller leaves, so that its worker lives on
		defer p.leave()
		body, err := p.pinger.ping()
		p.pinger.turn <- struct{}{}
		answers <- answer{body, err}
	}()
	select {
	case a := <-answers:
		return a.body, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g *pinger) ping() ([]byte, error) {
	p := g.pool
	g.checkup()
	if g.proc == nil {
		proc, _, err := p.launch(seat{class: Fast})
		if err != nil {
			return nil, fmt.Errorf("ping: %w", err)
		}
		g.proc = proc
	}
	j, source := pingJob(p.lastID.Add(1), p.cfg.Timeout)
	v := g.proc.run(p.ctx, j, source, p.cfg.WorkerMemory)
	if v.fault != "" || v.closed {
		g.proc = nil
		if v.closed {
			return nil, ErrClosed
		}
		p.tally.lost(v.fault)
		return nil, fmt.Errorf("ping: the worker ended (%s): %s", v.fault, v.detail)
	}
	if v.result.Code != Converted {
		return nil, fmt.Errorf("ping: %s: %s", v.result.Code, v.result.Reason)
	}
	if _, err := inspect(header.JPEG, v.body); err != nil {
		return nil, fmt.Errorf("ping: %w", err)
	}
	return v.body, nil
}

// checkup gets rid of a worker that is gone or has done its share.
func (g *pinger) checkup() {
	if g.proc == nil {
		return
	}
	select {
	case <-g.proc.dead:
		g.proc.reap()
		g.pool.tally.lost(CauseIdle)
		g.proc = nil
		return
	default:
	}
	if g.proc.jobs >= g.pool.cfg.Recycle {
		g.proc.stop(CauseRecycled)
		g.pool.tally.lost(CauseRecycled)
		g.proc = nil
	}
}

// close ends the worker; the pool's context is done.
func (g *pinger) close() {
	<-g.turn
	if g.proc != nil {
		g.proc.stop(CauseClosed)
		g.proc = nil
	}
	g.turn <- struct{}{}
}
