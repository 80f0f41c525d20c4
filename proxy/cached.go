package proxy

import (
	"net/http"
	"time"

	"karui/convert"
	"karui/convert/header"
	"karui/proxy/backlog"
	"karui/proxy/rules"
)

// fromCache answers from the cache if it can, and sets off a refresh for what is
// stale. Validated is whether the origin was just asked on behalf of this request.
func (x *exchange) fromCache(f fetch, wanted []header.Format, validated bool) bool {
	p, ttl, now := x.p, x.set.ttl, x.p.now()
	s := p.search(x.set, f, wanted)
	if s.variant.Entry != nil {
		defer closeEntry(s.variant.Entry)
		return x.fromVariant(f, wanted, s, validated)
	}
	e, ok := p.find(f.form(formOriginal))
	if !ok {
		return false
	}
	defer closeEntry(e.Entry)
	fresh := ttl.Left(e.record.freshness, now) > 0
	switch e.record.kind {
	case gone:
		return x.fromGone(e, now)
	case foreign:
		if !fresh {
			return false
		}
		x.untimed()
		x.passThrough()
		return true
	case original:
	default:
		return false
	}
	x.negotiated = true
	rep := storedReply(e, header.Unknown)
	switch {
	case !fresh && !validated:
		if !ttl.Usable(e.record.freshness, now) {
			return false
		}
		p.refresh(x.set, f, wanted)
		rep.did, rep.cacheControl = didStale, ttl.ShortAge(e.record.freshness, now)
	case len(wanted) == 0:
		rep.did, rep.kept, rep.cacheControl = didOriginal, convert.NotAccepted, ttl.LongAge(e.record.freshness, now)
	case !e.record.transformable:
		rep.did, rep.kept, rep.cacheControl = didOriginal, convert.NotConvertible, ttl.LongAge(e.record.freshness, now)
	case s.unknown, s.source != 0 && s.source != e.record.source:
		return false
	case s.resting, s.dialled:
		rep.did, rep.cacheControl = didMiss, ttl.ShortAge(e.record.freshness, now)
		defer s.postpone(p, f, backlog.Missing)
	default:
		rep.did, rep.kept, rep.cacheControl = didOriginal, s.code, ttl.LongAge(e.record.freshness, now)
	}
	x.send(rep)
	return true
}

// searched is what the cache knows about the formats that a viewer takes.
type searched struct {
	// variant is the first there is, of format; its Entry is nil for none.
	variant found
	format  header.Format
	// unknown is whether there is a better format than that of which nothing is
	// known, resting whether there is one that failed a moment ago.
	unknown, resting bool
	// dialled is whether there is one that is not made where the dial is.
	dialled bool
	// wish is the first that rests or is not made where the dial is.
	wish header.Format
	// source names the original that the markers passed were made from, 0 for no
	// markers, and code is the last one's.
	source int64
	code   convert.Code
}

// search goes through the formats, best first, up to a variant.
func (p *Proxy) search(set *settings, f fetch, wanted []header.Format) searched {
	var s searched
	for _, format := range wanted {
		key := f.form(format.String())
		e, ok := p.find(key)
		switch {
		case ok && e.record.kind == variant && (s.source == 0 || s.source == e.record.source) && !p.contradicted(set, f, e):
			s.variant, s.format = e, format
			return s
		case ok && e.record.kind == marker && !p.lapsed(e.record) && (s.source == 0 || s.source == e.record.source):
			s.source, s.code = e.record.source, e.record.code
		case !p.makes(f.site, format):
			s.dialled = true
			s.want(format)
		case p.resting.rests(key):
			s.resting = true
			s.want(format)
		default:
			// Also what was decided about another original: nobody knows which is right.
			s.unknown = true
		}
		if ok {
			closeEntry(e.Entry)
		}
	}
	return s
}

func (s *searched) want(format header.Format) {
	if s.wish == header.Unknown {
		s.wish = format
	}
}

// postpone says that the wish was asked for again. What failed a moment ago is not put
// on the list for that: it was, if a worker was all that it lacked.
func (s *searched) postpone(p *Proxy, f fetch, ask backlog.Ask) {
	if !s.dialled {
		ask = backlog.Again
	}
	p.postpone(f, s.wish, ask)
}

// contradicted tells whether a stale variant is not of what is stored in the
// original's place. Every answer of the origin that changes that removes the variants
// of before, so this only matters where a removal was lost. Fresh ones are not asked:
// the original would be opened, and verified as a whole, for every hit.
func (p *Proxy) contradicted(set *settings, f fetch, v found) bool {
	if set.ttl.Left(v.record.freshness, p.now()) > 0 {
		return false
	}
	e, ok := p.find(f.form(formOriginal))
	if !ok {
		return false
	}
	closeEntry(e.Entry)
	if e.record.kind == original {
		return !v.record.of(e.record)
	}
	return e.Meta.FetchStart.After(v.Meta.FetchStart)
}

// makes tells whether the format is made where the dial is.
func (p *Proxy) makes(s *site, format header.Format) bool {
	_, level := p.dial.Of(s.config.ID)
	return level.Makes(format)
}

// storedReply answers with a stored body: a variant of the format, or the original.
func storedReply(e found, format header.Format) reply {
	return reply{
		status: http.StatusOK, header: e.record.header, etag: e.record.etag, conditional: true,
		saved: e.record.saved, variant: format, dialled: e.record.level, size: e.Size(), body: e,
	}
}

// fromVariant answers with a stored variant, unless it must not be used without
// asking the origin first, or a better one is to be made.
func (x *exchange) fromVariant(f fetch, wanted []header.Format, s searched, validated bool) bool {
	ttl, now := x.set.ttl, x.p.now()
	freshness := s.variant.record.freshness
	rep := storedReply(s.variant, s.format)
	switch {
	case ttl.Left(freshness, now) <= 0 && !validated:
		if !ttl.Usable(freshness, now) {
			return false
		}
		x.p.refresh(x.set, f, wanted)
		rep.did, rep.cacheControl = didStale, ttl.ShortAge(freshness, now)
	case s.unknown && x.p.hasOriginal(x.set, f):
		// It stands in only once the viewer has waited for the better one.
		return false
	case s.unknown:
		// Only the origin has what the better one is made of, and what is here is no
		// worse for that.
		x.p.refresh(x.set, f, wanted)
		rep.did, rep.cacheControl = didHit, ttl.ShortAge(freshness, now)
	case s.resting:
		rep.did, rep.cacheControl = didHit, ttl.ShortAge(freshness, now)
		defer s.postpone(x.p, f, backlog.Degraded)
	case s.variant.record.level > 0:
		rep.did, rep.cacheControl = didHit, ttl.DegradedAge(freshness, now)
		defer x.p.remake(x.set, f, s.format)
	case s.dialled:
		rep.did, rep.cacheControl = didHit, ttl.DegradedAge(freshness, now)
		defer s.postpone(x.p, f, backlog.Degraded)
	default:
		rep.did, rep.cacheControl = didHit, ttl.LongAge(freshness, now)
	}
	x.negotiated = true
	x.send(rep)
	return true
}

// hasOriginal tells whether the original is at hand, in the cache or on its way, so
// that nobody has to wait for the origin.
func (p *Proxy) hasOriginal(set *settings, f fetch) bool {
	if fl := p.flights.Known(f.key); fl != nil && fl.Head() != nil {
		return true
	}
	e, ok := p.find(f.form(formOriginal))
	if !ok {
		return false
	}
	defer closeEntry(e.Entry)
	return e.record.kind == original && set.ttl.Left(e.record.freshness, p.now()) > 0
}

// standIn answers with whatever variant the cache has, where the better one's way
// has failed.
func (x *exchange) standIn(f fetch, wanted []header.Format) bool {
	ttl, now := x.set.ttl, x.p.now()
	s := x.p.search(x.set, f, wanted)
	if s.variant.Entry == nil {
		return false
	}
	defer closeEntry(s.variant.Entry)
	freshness := s.variant.record.freshness
	fresh := ttl.Left(freshness, now) > 0
	if !fresh && !ttl.Usable(freshness, now) {
		return false
	}
	rep := storedReply(s.variant, s.format)
	rep.did, rep.cacheControl = didHit, ttl.ShortAge(freshness, now)
	if !fresh {
		rep.did = didStale
	}
	x.negotiated = true
	x.send(rep)
	return true
}

// fromGone answers with a remembered 404 or 410.
func (x *exchange) fromGone(e found, now time.Time) bool {
	if remembered(e.record).Left(e.record.freshness, now) <= 0 {
		return false
	}
	x.send(reply{
		status: e.record.status, header: e.record.header, did: didBypass,
		cacheControl: remembered(e.record).LongAge(e.record.freshness, now), size: e.Size(), body: e,
	})
	return true
}

// remembered gives the lifetimes of a 404: the short one with which it was
// stored, whatever the settings say of long ones.
func remembered(r *record) rules.TTL {
	return rules.TTL{RespectOrigin: true, Max: r.freshness.Lifetime}
}

// simplify leaves the Origin out of a fetch where a stored answer proves that it
// makes no difference.
func (p *Proxy) simplify(f fetch) fetch {
	if !f.origin {
		return f
	}
	without := f.withoutOrigin()
	e, ok := p.find(without.form(formOriginal))
	if !ok {
		return f
	}
	closeEntry(e.Entry)
	if e.record.independent() {
		return without
	}
	return f
}

// independent tells whether an answer is good for every Origin: it names none,
// and says so to everybody, or was asked with one.
func (r *record) independent() bool {
	if r.kind != original || rules.VariesBy(r.header, "origin") {
		return false
	}
	switch r.header.Get("Access-Control-Allow-Origin") {
	case "*":
		return true
	case "":
		return r.sawOrigin
	}
	return false
}
