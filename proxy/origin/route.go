package origin

import (
	"time"

	"karui/proxy/origin/retry"
)

// spot is one address of one place.
type spot struct{ place, address int }

// clock gives the second in which something happens, for the windows.
func (p *Places) clock() int64 { return int64(time.Since(p.began) / time.Second) }

// standing is how the places stand at one instant.
type standing struct {
	// usable places get requests; there is always one.
	usable []bool
	// sick ones of them get a trickle.
	sick []bool
}

// standing looks at all places. A place that operators took out, or that is out
// of use, is usable only when no other is. The lock is held.
func (p *Places) standing(now int64) standing {
	s := standing{make([]bool, len(p.places)), make([]bool, len(p.places))}
	switched := make([]bool, len(p.places))
	any := false
	for i, pl := range p.places {
		_, switched[i] = p.switches.Out(p.site, pl.name)
		any = any || !switched[i]
		s.sick[i] = pl.health.Sick(now)
	}
	found := false
	for i, pl := range p.places {
		s.usable[i] = (!switched[i] || !any) && !pl.health.Out()
		found = found || s.usable[i]
	}
	if !found {
		for i := range p.places {
			s.usable[i] = !switched[i] || !any
		}
	}
	return s
}

// among chooses one of the places for which in is true, -1 if there is none.
func (p *Places) among(s standing, in func(i int) bool) int {
	var list []retry.Candidate
	var index []int
	for i, pl := range p.places {
		if s.usable[i] && in(i) {
			list, index = append(list, retry.Candidate{Weight: pl.weight, Sick: s.sick[i]}), append(index, i)
		}
	}
	if n := retry.Choose(list, p.random()); n >= 0 {
		return index[n]
	}
	return -1
}

// first chooses the address for a new request.
func (p *Places) first() spot {
	if p.sole {
		return spot{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.among(p.standing(p.clock()), func(int) bool { return true })
	return spot{i, p.address(i, -1)}
}

// address gives the address of a place whose turn it is, leaving out one of them
// and those out of use. -1 means that there is none but those. With nothing left
// out, there always is one. The lock is held.
func (p *Places) address(i, except int) int {
	pl := p.places[i]
	n := len(pl.clients)
	turn := 0
	if n > 1 {
		turn = int(pl.turn.Add(1)-1) % n
	}
	for k := range n {
		if a := (turn + k) % n; a != except && !pl.health.AddressOut(a) {
			return a
		}
	}
	if except < 0 {
		return turn
	}
	return -1
}

// around tells where a second try after one at a place and address could go. The
// lock is held.
func (p *Places) around(s standing, at spot) (a retry.Around) {
	for i := range p.places {
		a.Place = a.Place || i != at.place && s.usable[i] && !p.places[i].health.Out()
	}
	for i := range p.places[at.place].clients {
		a.URL = a.URL || i != at.address && !p.places[at.place].health.AddressOut(i)
	}
	return a
}

// mode gives retry.mode, or what an operator set in its place.
func (p *Places) mode() string {
	if set, ok := p.switches.Retry(p.site); ok {
		return set.Mode
	}
	return p.retry.Mode
}

// policy gives what is allowed now. The lock is held.
func (p *Places) policy() retry.Policy {
	return retry.Policy{Level: p.retry.Level, Off: p.cut || p.mode() == "off"}
}

// mayFollow tells whether a second try at another address may follow one at a
// spot, and else whether one at the same address may, over a new connection.
func (p *Places) mayFollow(at spot) (follow, again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	policy := p.policy()
	again = !policy.Off && policy.Level > retry.LevelNone
	if p.sole {
		return false, again
	}
	s := p.standing(p.clock())
	return retry.MayFollow(policy, s.sick[at.place], p.around(s, at)), again
}

// after decides what follows a try, and where.
func (p *Places) after(at spot, f retry.Fate) (spot, retry.Next) {
	if f == retry.Answered || f == retry.Void {
		return spot{}, retry.Stop
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.standing(p.clock())
	next := retry.After(p.policy(), f, s.sick[at.place], p.around(s, at))
	switch next {
	case retry.SamePlace:
		return spot{at.place, p.address(at.place, at.address)}, next
	case retry.AnotherPlace:
		well := func(i int) bool { return i != at.place && !s.sick[i] && !p.places[i].health.Out() }
		i := p.among(s, well)
		if i < 0 {
			i = p.among(s, func(i int) bool { return i != at.place && !p.places[i].health.Out() })
		}
		return spot{i, p.address(i, -1)}, next
	}
	return spot{}, retry.Stop
}

// record counts how a try ended, and what follows for the place and for retries.
func (p *Places) record(at spot, f retry.Fate) {
	pl := p.places[at.place]
	pl.fates[f].Add(1)
	if f == retry.Void {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	if p.sole || p.retry.Level <= retry.LevelNone {
		pl.health.Count(now, f)
	} else {
		out, back := pl.health.Record(now, at.address, f)
		p.moved(at, out, back)
	}
	p.judge(now)
}

// failed notes why a try failed, where its fate says that it did.
func (p *Places) failed(at spot, f retry.Fate, why string) {
	if f != retry.Answered && f != retry.Void {
		p.places[at.place].failure.Store(&why)
	}
}

// moved logs that an address went out of use or came back, and starts the
// heartbeat that brings it back. The lock is held.
func (p *Places) moved(at spot, out, back bool) {
	pl := p.places[at.place]
	switch {
	case out:
		p.log.Warn("an address of an origin is out of use until a heartbeat succeeds: it was unavailable several times in a row",
			"site", p.site, "place", pl.name, "address", at.address, "in a row", retry.OutAfter)
		p.beat()
	case back:
		p.log.Info("an address of an origin is in use again", "site", p.site, "place", pl.name, "address", at.address)
	}
}

// judge takes another look at sickness and at the cut-off, and logs changes. The
// lock is held.
func (p *Places) judge(now int64) {
	s := p.standing(now)
	var full, all retry.Counts // of the places that get all of their share, and of all in use
	well := false
	for i, pl := range p.places {
		c := pl.health.LastMinute(now)
		if s.sick[i] != pl.sick && !p.sole {
			pl.sick = s.sick[i]
			p.log.Warn("an origin fails too often, or no longer does", "site", p.site, "place", pl.name, "sick", pl.sick,
				"tries", c.Tries, "timed out", c.TimedOut, "failed", c.Failed())
		}
		if !s.usable[i] {
			continue
		}
		all = all.Add(c)
		if !s.sick[i] {
			full, well = full.Add(c), true
		}
	}
	if !well {
		full = all
	}
	cut := p.cutOff.Judge(full)
	if cut != p.cut {
		p.log.Warn("the share of failed tries crossed the limit", "site", p.site, "retries", !cut,
			"tries", full.Tries, "failed", full.Failed())
	}
	p.cut = cut
}
