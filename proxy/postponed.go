package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"karui/cache"
	"karui/convert"
	"karui/convert/header"
	"karui/proxy/backlog"
	"karui/proxy/flight"
)

// postpone says of a variant that it can be made later.
func (p *Proxy) postpone(f fetch, format header.Format, ask backlog.Ask) {
	if p.postponed != nil {
		p.postponed(f.form(format.String()), ask)
	}
}

// postpone says of a format that it can be made later, unless the job comes from the
// backlog, which knows. Missing is whether its viewers get the original meanwhile.
func (j *job) postpone(f header.Format, missing bool) {
	switch {
	case j.spare:
	case missing:
		j.p.postpone(j.fetch, f, backlog.Missing)
	default:
		j.p.postpone(j.fetch, f, backlog.Degraded)
	}
}

// Postponed makes what was postponed; it is a backlog.Maker. What it makes goes the
// way of a viewer's request: it shares the flight of viewers who ask at the same
// time, takes the original from the cache if that has it, and stores what it makes.
// Only that it begins nothing while viewers need the workers.
func (p *Proxy) Postponed() backlog.Maker { return &maker{p} }

type maker struct{ p *Proxy }

// Idle implements backlog.Maker.
func (m *maker) Idle() bool {
	p := m.p
	since, _ := p.stressed(p.now())
	return since.IsZero() && !p.draining() && p.spare(header.WebP) && p.flights.Stats().Flights < maxRefreshes
}

// Open implements backlog.Maker. A site that is not configured is open: what is left
// of it goes.
func (m *maker) Open(id string) bool {
	s := m.p.set.Load().router.byID[id]
	return s == nil || m.p.mayMake(s)
}

// mayMake tells whether something of the site may be made for viewers to come: as
// well as it can be, and without a burden for an origin that is slow already.
func (p *Proxy) mayMake(s *site) bool {
	n, level := p.dial.Of(s.config.ID)
	return n == 0 && !level.Deferred && !p.draining() && p.dial.Idle() && !s.misses.Sheds(p.now())
}

// spare tells whether there is a worker for a format that no viewer needs just now.
func (p *Proxy) spare(format header.Format) bool {
	if p.queues == nil {
		return true
	}
	fast, slow := p.queues()
	if fast.Waiting > 0 || slow.Waiting > 0 {
		return false
	}
	if quick(format) {
		return fast.spare()
	}
	return slow.spare()
}

// PostponedWaitsFor says in a word what keeps the postponed conversions of a site from
// being made just now: drain, stress, dial (it is above level 0), origin (it is slow) or
// workers (they have no time); "" for nothing.
func (p *Proxy) PostponedWaitsFor(id string) string {
	since, _ := p.stressed(p.now())
	n, level := p.dial.Of(id)
	s := p.set.Load().router.byID[id]
	switch {
	case p.draining():
		return "drain"
	case !since.IsZero():
		return "stress"
	case n > 0 || level.Deferred:
		return "dial"
	case s != nil && s.misses.Sheds(p.now()):
		return "origin"
	case !p.dial.Idle() || !p.spare(header.WebP):
		return "workers"
	}
	return ""
}

// Make implements backlog.Maker.
func (m *maker) Make(ctx context.Context, key cache.Key) backlog.Verdict {
	p := m.p
	set := p.set.Load()
	f, format, ok := set.router.postponed(key)
	if !ok {
		return backlog.Void
	}
	switch n, level := p.dial.Of(key.Site); {
	case n > 0:
		return backlog.Busy // it has moved since Open
	case !level.Makes(format):
		return backlog.Void // not even at its best
	}
	f = p.simplify(f)
	variantKey := f.form(format.String())
	switch {
	case p.final(variantKey):
		return backlog.Found
	case p.resting.rests(variantKey), p.resting.rests(f.key), !p.spare(format):
		return backlog.Busy
	}
	wanted := []header.Format{format}
	b := newBoard(wanted)
	job := &job{p: p, set: set, fetch: f, board: b, again: true, spare: true}
	h := p.flights.Join(ctx, f.key, job.request())
	if other, ok := h.State().(*board); ok && other != b {
		other.ask(wanted)
		b = other
	}
	head, err := h.Head(ctx)
	shared := h.Shared()
	_ = h.Close() // it never fails, and nobody is to be held up by somebody who does not read
	if err != nil {
		return p.missed(f, format, err)
	}
	if row, _ := judge(f, head); b.replayed == nil && (!shared || row == rowGone || row == rowAsIs) {
		return backlog.Missed
	}
	select {
	case <-h.Flight().Over():
	case <-ctx.Done():
		return backlog.Trouble
	}
	return p.verdict(f, format, b)
}

// verdict reads what became of a format of a flight that is over.
func (p *Proxy) verdict(f fetch, format header.Format, b *board) backlog.Verdict {
	v := b.wait(context.Background(), []header.Format{format}, 0)
	switch {
	case v.record != nil && v.record.level == 0:
		return backlog.Made
	case v.record != nil, v.decision.Code == convert.Deferred, v.decision.Code == convert.QueueFull:
		return backlog.Busy // there is less time than there was at the begin
	case v.settled && v.decision.Settled:
		return backlog.Settled
	case v.settled:
		return backlog.Trouble
	}
	if known := b.content(closed()); known != nil && (!known.content.image || !known.record.transformable) {
		return backlog.Missed
	}
	return p.missed(f, format, nil)
}

// closed is a context that has ended: for a look without waiting.
func closed() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// missed tells why a flight brought no result: by what the cache has of the fetch, and
// the flight's error.
func (p *Proxy) missed(f fetch, format header.Format, err error) backlog.Verdict {
	switch {
	case errors.Is(err, flight.ErrNotShared):
		return backlog.Missed // it is somebody's own
	case p.final(f.form(format.String())):
		return backlog.Found
	}
	if e, ok := p.find(f.form(formOriginal)); ok {
		defer closeEntry(e.Entry)
		if e.record.kind != original || !e.record.transformable {
			return backlog.Missed
		}
	}
	if errors.Is(err, flight.ErrStored) {
		return backlog.Busy // it was a viewer's flight, to whom something else was enough
	}
	return backlog.Trouble
}

// final tells whether a variant or a marker is there that need not be made again.
func (p *Proxy) final(key cache.Key) bool {
	e, ok := p.find(key)
	if !ok {
		return false
	}
	defer closeEntry(e.Entry)
	return e.record.kind == variant && e.record.level == 0 || e.record.kind == marker && !p.lapsed(e.record)
}

// postponed gives the fetch that a variant's key came from. The key holds all that
// tells one picture from another, so nothing else had to be remembered; the headers
// that say nothing of the picture are not sent. False is for a site, a format or a
// path that the configuration has no variants of any more.
func (r *router) postponed(key cache.Key) (f fetch, format header.Format, ok bool) {
	s := r.byID[key.Site]
	format, known := header.ParseFormat(key.Form)
	if s == nil || !known || !slices.Contains(s.formats, format) || !s.included(key.Path) {
		return f, format, false
	}
	query, lines, keyed := strings.Cut(key.Rest, "\n")
	viewer := http.Header{"User-Agent": {"karui"}} // some origins refuse who has none
	for line := range strings.SplitSeq(lines, "\n") {
		name, value, found := strings.Cut(line, ":")
		if keyed && !found {
			return f, format, false
		}
		if keyed {
			viewer.Add(name, value)
		}
	}
	f = fetch{
		site: s, key: key, target: key.Path + query, viewer: viewer,
		origin: len(viewer["Origin"]) > 0 && !slices.Contains(s.keyed, "origin"),
		named:  s.convertible(key.Path),
	}
	f.key.Form = ""
	// Where headers join the key by other rules now, nobody will look for it there.
	again := query
	for _, name := range s.keyed {
		again += keyedHeader(name, viewer)
	}
	if f.origin {
		again += keyedHeader("origin", viewer)
	}
	return f, format, again == key.Rest && (f.named || s.config.Extensionless)
}
