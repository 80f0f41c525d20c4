package proxy

import (
	"context"
	"errors"
	"io"
	"maps"
	"time"

	"karui/cache"
	"karui/convert/header"
	"karui/proxy/flight"
	"karui/proxy/origin"
	"karui/proxy/rules"
)

// put stores an entry. Whatever fails costs a later viewer a fetch, and nothing else.
func (p *Proxy) put(key cache.Key, start, expires time.Time, r *record, body []byte) {
	p.stored(p.store.Put(key, cache.Meta{FetchStart: start, Expires: expires, Attributes: r.encode()}, body))
}

// put stores what the job has for the key: an original, or what was made of it.
func (j *job) put(key cache.Key, r *record, body []byte) {
	if meta, ok := j.meta(r); ok {
		j.p.stored(j.p.store.Put(key, meta, body))
	}
}

// meta is what the cache is told of it; not ok is that it comes too late to be stored.
func (j *job) meta(r *record) (meta cache.Meta, ok bool) {
	return cache.Meta{
		FetchStart: j.start, BodyStart: j.born, Expires: j.set.ttl.Useless(r.freshness), Attributes: r.encode(),
	}, !j.overdue()
}

// overdue tells whether the cache may have forgotten a purge that hits what the job
// began with.
func (j *job) overdue() bool { return j.p.now().Sub(j.began) > cache.PurgeHold/2 }

// stored looks at what the cache said to a change.
func (p *Proxy) stored(err error) {
	switch {
	case err == nil,
		// Somebody fetched later, or the entry was evicted meanwhile.
		errors.Is(err, cache.ErrSuperseded), errors.Is(err, cache.ErrGone), errors.Is(err, cache.ErrClosed),
		errors.Is(err, cache.ErrTooLarge),
		// The cache has said once why a volume is out of use; a line for each entry
		// that it turns away meanwhile would crowd out what else there is to say.
		errors.Is(err, cache.ErrUnavailable):
	default:
		p.complain("cache cannot be written", "error", err)
	}
}

// drop removes what was fetched up to at.
func (p *Proxy) drop(key cache.Key, at time.Time) { p.stored(p.store.Delete(key, at)) }

// variantFormats are all that variants may have been made of, whatever the site
// lists now: it may list more again tomorrow.
var variantFormats = []header.Format{header.AVIF, header.HEIC, header.WebP}

// known gives the records of all that is stored of a fetch: the original or what
// stands in its place first, then variants and markers. Either may be there without
// the other, since each entry is evicted, or lost with its volume, by itself.
func (p *Proxy) known(f fetch) []*record {
	var records []*record
	look := func(key cache.Key) {
		if e, ok := p.find(key); ok {
			closeEntry(e.Entry)
			records = append(records, e.record)
		}
	}
	look(f.form(formOriginal))
	for _, format := range variantFormats {
		look(f.form(format.String()))
	}
	return records
}

// forget removes all that is stored of a fetch, if anything is, except for what
// the fetch that began at start brought itself.
func (p *Proxy) forget(f fetch, start time.Time) {
	if len(p.known(f)) == 0 {
		return
	}
	p.drop(f.form(formOriginal), before(start))
	for _, format := range variantFormats {
		p.drop(f.form(format.String()), before(start))
	}
}

// supersede sees to what is stored of a fetch that has brought an original anew. What
// was made of the same bytes holds on, under the name that r takes over. What is of
// another picture goes, its original too: that of r may find no room.
func (p *Proxy) supersede(set *settings, f fetch, r *record, start time.Time) {
	for _, old := range p.known(f) {
		if old.of(r) {
			r.source = old.source
			p.confirm(set, f, r, start)
			return
		}
	}
	p.forget(f, start)
}

// extend gives a stored original, and all that was made of it, the new life that
// a 304 brought, and returns the original's record.
func (p *Proxy) extend(set *settings, f fetch, held found, head *origin.Head) *record {
	r := *held.record
	r.freshness = rules.ParseFreshness(head.Header, head.Start)
	if len(head.Header["Cache-Control"]) == 0 && len(head.Header["Expires"]) == 0 {
		// A 304 need not repeat what has not changed (RFC 9110 section 15.4.5).
		r.freshness = held.record.freshness
		r.freshness.Base = head.Start
	}
	r.header = maps.Clone(held.record.header)
	for name, values := range withoutFields(withoutFields(head.Header, computed...), describing...) {
		if name == "Vary" {
			values = []string{rules.VaryAccept(values)}
		}
		r.header[name] = values
	}
	r.transformable = r.transformable && rules.Transformable(head.Header)
	if tag := head.Header.Get("Etag"); tag != "" {
		r.etag = tag
	}
	meta := cache.Meta{FetchStart: head.Start, Expires: set.ttl.Useless(r.freshness), Attributes: r.encode()}
	p.stored(p.store.Update(held.Entry, meta))
	p.confirm(set, f, &r, head.Start)
	return &r
}

// before gives the time up to which entries go that are of the picture before the
// one that was fetched at start: what is made of that one carries its start.
func before(start time.Time) time.Time { return start.Add(-1) }

// confirm gives the variants and markers that were made of an original its
// present life and fields, and removes those of another original.
func (p *Proxy) confirm(set *settings, f fetch, r *record, start time.Time) {
	for _, format := range variantFormats {
		key := f.form(format.String())
		e, ok := p.find(key)
		if !ok {
			continue
		}
		closeEntry(e.Entry)
		if !e.record.of(r) || !r.transformable {
			p.drop(key, before(start))
			continue
		}
		p.stored(p.store.Update(e.Entry, cache.Meta{
			FetchStart: start, Expires: set.ttl.Useless(r.freshness), Attributes: e.record.follow(r, f.key.Path, format).encode(),
		}))
	}
}

// of tells whether two entries are of one picture: of the same fetch, or of the same
// bytes, which two fetches brought side by side.
func (r *record) of(original *record) bool {
	return r.source == original.source || r.digest != (rules.Digest{}) && r.digest == original.digest
}

// follow gives the record of a variant or marker the life and fields of its original.
func (r *record) follow(original *record, path string, format header.Format) *record {
	next := *r
	next.source, next.freshness = original.source, original.freshness
	if r.kind == variant {
		next.header = variantFields(original.header, path, format)
	}
	return &next
}

// align gives variants that were stored after their original was last confirmed
// the life of the original, and removes those of another. It is false if one of them
// was fetched later, so that the original is the one that is out of date.
func (p *Proxy) align(f fetch, held found) bool {
	for _, format := range variantFormats {
		e, ok := p.find(f.form(format.String()))
		if !ok {
			continue
		}
		closeEntry(e.Entry)
		switch {
		case !e.record.of(held.record) && e.Meta.FetchStart.After(held.Meta.FetchStart):
			return false
		case !e.record.of(held.record):
			p.drop(f.form(format.String()), before(held.Meta.FetchStart))
		case e.record.source != held.record.source, e.record.freshness != held.record.freshness:
			p.stored(p.store.Update(e.Entry, cache.Meta{
				FetchStart: held.Meta.FetchStart, Expires: held.Meta.Expires,
				Attributes: e.record.follow(held.record, f.key.Path, format).encode(),
			}))
		}
	}
	return true
}

// storeLarge stores an original that is too large to be held in memory, and tells
// whether it is whole.
func (j *job) storeLarge(ctx context.Context, fl *flight.Flight, head *origin.Head, r *record, c content) bool {
	body, err := fl.Body(ctx)
	if err != nil {
		return false
	}
	if head.Framing == origin.UntilClose {
		end := make([]byte, min(body.Size(), header.TrailerLen))
		if _, err := body.ReadAt(end, body.Size()-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
			return false
		}
		if !header.HasTrailer(c.format, end) {
			return false
		}
	}
	meta, ok := j.meta(r)
	if !ok {
		return false
	}
	err = j.p.store.PutFrom(j.fetch.form(formOriginal), meta, body.Size(), body)
	j.p.stored(err)
	return err == nil
}
