package origin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"karui/proxy/origin/retry"
)

// A heartbeat to an address that is out of use costs the origin one HEAD for its
// root.
const (
	heartbeatEvery = 5 * time.Second
	heartbeatTime  = 2 * time.Second // for one, if origin.deadline is not shorter
	heartbeatKey   = "/.karui/heartbeat"
)

// beat starts the heartbeat unless it runs. The lock is held.
func (p *Places) beat() {
	if p.beats || p.closed {
		return
	}
	p.beats = true
	p.wait.Go(p.heartbeat)
}

// heartbeat asks the addresses that are out of use until none is.
func (p *Places) heartbeat() {
	every := time.NewTicker(heartbeatEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-p.ctx.Done():
			return
		}
		var asking sync.WaitGroup
		for _, at := range p.outOfUse() {
			asking.Go(func() {
				if p.alive(at) {
					p.mu.Lock()
					p.moved(at, false, p.places[at.place].health.Back(at.address))
					p.mu.Unlock()
				}
			})
		}
		asking.Wait()
		p.mu.Lock()
		if p.allInUse() {
			p.beats = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// alive asks an address for an answer, any answer.
func (p *Places) alive(at spot) bool {
	ctx, cancel := context.WithTimeout(p.ctx, min(heartbeatTime, p.conf.Deadline))
	defer cancel()
	client := p.places[at.place].clients[at.address]
	target := "/"
	if client.bucket != nil {
		target = heartbeatKey // a bucket itself is not asked for
	}
	resp, err := client.Do(ctx, Request{Method: http.MethodHead, Target: target})
	if err != nil {
		return fateOf(ctx, err) == retry.Answered
	}
	_ = resp.Body.Close() // HEAD has none
	return true
}

// outOfUse lists the addresses to be asked. Those that an operator took out get
// nothing at all.
func (p *Places) outOfUse() []spot {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []spot
	for i, pl := range p.places {
		_, switched := p.switches.Out(p.site, pl.name)
		for a := range pl.clients {
			if pl.health.AddressOut(a) && !switched {
				list = append(list, spot{i, a})
			}
		}
	}
	return list
}

// allInUse tells whether no address is out of use. The lock is held.
func (p *Places) allInUse() bool {
	for _, pl := range p.places {
		for a := range pl.clients {
			if pl.health.AddressOut(a) {
				return false
			}
		}
	}
	return true
}
