package proxy

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"karui/convert/header"
	"karui/proxy/backlog"
	"karui/proxy/dial"
	"karui/proxy/stress"
)

// strainEvery is how often the load of the workers and the disks are looked at.
const strainEvery = time.Second

// remadeEach is how many variants are made again in a second at most, while the
// workers have time: less than they can do, so that the dial does not notice.
const remadeEach = 2

// strain is what the proxy knows of its own state: by what requests are turned
// away, and how cheaply conversions are made.
type strain struct {
	latency *stress.Latency
	shares  *stress.Shares
	disk    stress.Disk
	dial    *dial.Dial
	remakes *rate.Limiter
	load    func() (fast, slow dial.Load)
	queues  func() (fast, slow Queue)
	volumes func() []stress.Volume
	since   diskSince
}

func (p *Proxy) newStrain(o *Options) {
	p.strain = strain{
		shares: stress.NewShares(p.now), remakes: rate.NewLimiter(remadeEach, remadeEach), load: o.Load, queues: o.Queues, volumes: o.Volumes,
	}
	p.latency = stress.NewLatency(stress.Config(o.Settings.Stress), p.now(), p.latencyChanged)
	p.dial = dial.New(o.Settings.Dial.settings(), p.now, p.dialMoved)
}

// watch looks at the load and the disks until ctx ends.
func (p *Proxy) watch(ctx context.Context) {
	tick := time.NewTicker(strainEvery)
	defer tick.Stop()
	for {
		p.look()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look takes in how the workers and the disks do.
func (p *Proxy) look() {
	var fast, slow dial.Load
	if p.load != nil {
		fast, slow = p.load()
	}
	p.dial.Observe(fast, slow)
	if limit := p.set.Load().diskStress; p.volumes != nil && limit > 0 {
		volumes := p.volumes()
		if sheds, changed := p.disk.Observe(limit, volumes); changed {
			p.since.set(sheds, p.now())
			if sheds {
				p.log.Warn("every disk of the cache is full or out of use, so all requests are turned away with 503: make room, see disk.stress",
					"volumes", volumes, "limit", limit)
			} else {
				p.log.Info("a disk of the cache has room again, so requests are answered")
			}
		}
	}
}

// Dial is the dial, for operators.
func (p *Proxy) Dial() *dial.Dial { return p.dial }

// Shares is what operators turn away.
func (p *Proxy) Shares() *stress.Shares { return p.shares }

// Latency tells how the groups of requests do that are judged by their latency.
func (p *Proxy) Latency() []stress.GroupState { return p.latency.State(p.now()) }

// DiskFull tells whether requests are turned away for the disks.
func (p *Proxy) DiskFull() bool { return !p.since.get().IsZero() }

func (p *Proxy) latencyChanged(c stress.Change) {
	group := []any{"group", c.Group, "mean", c.Mean.Round(time.Millisecond).String(), "requests", c.Samples}
	if c.Site {
		group[0], group[1] = "misses of site", c.Group
	}
	switch {
	case c.Shedding:
		p.log.Warn("requests take too long to their first byte, so they are turned away with 503", group...)
	case c.Idle:
		p.log.Info("no requests have come for a while, so the next ones are answered again", group...)
	default:
		p.log.Info("requests are quick again, so they are answered", group...)
	}
}

func (p *Proxy) dialMoved(m dial.Move) {
	p.metrics.moves.WithLabelValues(m.Cause).Inc()
	p.log.Info("the dial has moved", "site", m.Site, "from", m.FromName, "to", m.ToName, "level", m.To, "cause", m.Cause, "detail", m.Detail)
}

// turnedAway tells why a request of a site is not answered; "" if it is.
func (x *exchange) turnedAway() reason {
	p, s := x.p, x.site
	if p.DiskFull() {
		return becauseDisk
	}
	id := s.config.ID
	if classes := len(s.first) > 0; classes || p.shares.Of(id).Percent > 0 {
		key := x.target.Path + s.config.Query.Keyed(x.target.Query)
		if p.shares.Sheds(id, key, classes, s.goesFirst(x.target.Path)) {
			return becauseShed
		}
	}
	if !p.latency.Admit(p.now()) {
		return becauseLatency
	}
	return ""
}

// mayFetch tells whether a request that the cache cannot answer may go on: not if
// the origin takes too long, unless nobody has to wait for it.
func (x *exchange) mayFetch(f fetch) bool {
	now := x.p.now()
	return !x.site.misses.Sheds(now) || x.p.hasOriginal(x.set, f) || x.site.misses.Admit(now)
}

// stressed tells since when all requests are turned away, and why; zero while they
// are not. What an operator turns away is no stress.
func (p *Proxy) stressed(now time.Time) (time.Time, reason) {
	if since := p.since.get(); !since.IsZero() {
		return since, becauseDisk
	}
	return p.latency.Whole(now), becauseLatency
}

// remake makes a variant again that was made when the workers were busy, now that
// they have time; else it is postponed.
func (p *Proxy) remake(set *settings, f fetch, format header.Format) {
	if !p.mayMake(f.site) || !p.spare(format) || p.resting.rests(f.form(format.String())) || !p.remakes.Allow() {
		p.postpone(f, format, backlog.Degraded)
		return
	}
	p.metrics.remade.Inc()
	b := newBoard([]header.Format{format})
	job := &job{p: p, set: set, fetch: f, board: b, again: true, spare: true}
	// Where a flight is under way already, that one will do, or the next hit.
	_ = p.flights.Join(context.Background(), f.key, job.request()).Close()
}
