package proxy

import (
	"net/http"
	"time"

	"karui/convert/header"
	"karui/proxy/rules"
)

// fromCache answers from the cache if it can, and sets off a refresh for what is
// stale. Validated is whether the origin was just asked on behalf of this request.
func (x *exchange) fromCache(f fetch, wanted []header.Format, validated bool) bool {
	p, ttl, now := x.p, x.set.ttl, x.p.now()
	// source names the original that all markers passed were made from, and left
	// are the formats from the first one that nothing is known of.
	var source int64
	left := wanted
	for len(left) > 0 {
		e, ok := p.find(f.form(left[0].String()))
		if !ok {
			break
		}
		if e.record.kind == variant {
			defer closeEntry(e.Entry)
			return x.fromVariant(f, wanted, e, validated)
		}
		closeEntry(e.Entry)
		if source != 0 && source != e.record.source {
			break
		}
		source, left = e.record.source, left[1:]
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
		x.passThrough()
		return true
	case original:
	default:
		return false
	}
	x.negotiated = true
	rep := reply{
		status: http.StatusOK, header: e.record.header, etag: e.record.etag, conditional: true,
		size: e.Size(), write: e.WriteTo, section: e.section,
	}
	switch {
	case !fresh && !validated:
		if !ttl.Usable(e.record.freshness, now) {
			return false
		}
		p.refresh(x.set, f, wanted)
		rep.did, rep.cacheControl = didStale, ttl.ShortAge(e.record.freshness, now)
	case len(wanted) == 0, !e.record.transformable, len(left) == 0 && source == e.record.source:
		rep.did, rep.cacheControl = didOriginal, ttl.LongAge(e.record.freshness, now)
	case len(left) > 0 && p.resting.rests(f.form(left[0].String())):
		rep.did, rep.cacheControl = didMiss, ttl.ShortAge(e.record.freshness, now)
	default:
		return false
	}
	x.send(rep)
	return true
}

// fromVariant answers with a stored variant, unless it must not be used without
// asking the origin first.
func (x *exchange) fromVariant(f fetch, wanted []header.Format, e found, validated bool) bool {
	ttl, now := x.set.ttl, x.p.now()
	x.negotiated = true
	rep := reply{
		status: http.StatusOK, header: e.record.header, etag: e.record.etag, conditional: true, saved: e.record.saved,
		size: e.Size(), write: e.WriteTo, section: e.section,
		did: didHit, cacheControl: ttl.LongAge(e.record.freshness, now),
	}
	if ttl.Left(e.record.freshness, now) <= 0 && !validated {
		if !ttl.Usable(e.record.freshness, now) {
			return false
		}
		x.p.refresh(x.set, f, wanted)
		rep.did, rep.cacheControl = didStale, ttl.ShortAge(e.record.freshness, now)
	}
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
		cacheControl: remembered(e.record).LongAge(e.record.freshness, now), size: e.Size(), write: e.WriteTo,
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
