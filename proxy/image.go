package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"karui/convert/header"
	"karui/proxy/flight"
	"karui/proxy/origin"
	"karui/proxy/rules"
)

// maxLooks bounds how often one request goes back to the cache because something
// was stored under its hands.
const maxLooks = 3

// image answers a GET or HEAD of something that may be an image with variants.
// Named is whether its name says so; otherwise only what the origin answers does.
func (x *exchange) image(named bool) {
	wanted := x.site.wanted(x.r.Header)
	validated := false
	var f fetch
	for look := range maxLooks {
		f = x.p.simplify(x.site.fetch(x.target, x.r.Header))
		f.named = named
		if x.fromCache(f, wanted, validated) {
			return
		}
		if !named && (x.r.Header.Get("Range") != "") {
			x.passThrough()
			return
		}
		if x.p.flights.Stats().Flights >= x.set.limits.Connections {
			// Flights outlive their viewers, so viewers who leave must not heap them up.
			break
		}
		h := x.p.join(x.r.Context(), x.set, f, wanted)
		head, err := h.Head(x.r.Context())
		// A flight whose board is closed has stored all that it will.
		if errors.Is(err, flight.ErrStored) || look == 0 && err == nil && isClosed(h) {
			validated = true
			_ = h.Close()
			continue
		}
		x.fromFlight(f, wanted, h, head, err)
		return
	}
	// Or what was stored is gone again each time it is looked for: the cache is
	// failing, or far too small.
	x.alone(f)
}

// isClosed tells whether the work on a flight is over.
func isClosed(h *flight.Handle) bool {
	b, ok := h.State().(*board)
	return ok && !h.Leader() && b.isClosed()
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

// join makes the viewer one of those who wait for the fetch.
func (p *Proxy) join(ctx context.Context, set *settings, f fetch, wanted []header.Format) *flight.Handle {
	b := newBoard(wanted)
	job := &job{p: p, set: set, fetch: f, board: b}
	h := p.flights.Join(ctx, f.key, flight.Request{
		Fetch: job.obtain, Shareable: job.shareable, State: b, Task: job.run,
	})
	if other, ok := h.State().(*board); ok && other != b {
		other.ask(wanted)
	}
	return h
}

// maxRefreshes bounds the flights beside which a refresh is still begun. The stale
// image goes on being answered, and its next viewer tries again.
const maxRefreshes = 1000

// refresh asks the origin in the background whether what is stored still holds.
func (p *Proxy) refresh(set *settings, f fetch, wanted []header.Format) {
	if p.draining() || p.resting.rests(f.key) || p.flights.Stats().Flights >= maxRefreshes {
		return
	}
	_ = p.join(context.Background(), set, f, wanted).Close()
}

// fromFlight answers from a fetch that is under way.
func (x *exchange) fromFlight(f fetch, wanted []header.Format, h *flight.Handle, head *origin.Head, err error) {
	defer h.Close()
	switch {
	case errors.Is(err, flight.ErrNotShared):
		x.alone(f)
		return
	case err != nil:
		x.unreachable(err)
		return
	}
	b, _ := h.State().(*board)
	if b != nil && b.replayed != nil {
		x.fromOriginal(f, wanted, h, head, b)
		return
	}
	r, shared := judge(f, head)
	short := x.set.ttl.ShortAge(rules.ParseFreshness(head.Header, head.Start), x.p.now())
	switch {
	case r == rowUnavailable:
		x.unavailable(becauseOrigin)
	case r == rowImage && h.Shared():
		x.fromOriginal(f, wanted, h, head, b)
	case r == rowGone:
		x.relay(h, head, reply{header: withoutFields(head.Header, computed...), cacheControl: short})
	case r == rowImage && f.named && shared:
		// Shareable after all; a later viewer will find the variant.
		x.relay(h, head, reply{
			header: withoutFields(head.Header, computed...), cacheControl: short,
			etag: head.Header.Get("Etag"), conditional: true,
		})
	default:
		if !f.named && r == rowImage {
			x.p.rememberForeign(x.set, f, head)
		}
		x.relay(h, head, reply{
			header: asIsFields(head.Header, x.negotiated), etag: head.Header.Get("Etag"),
			conditional: head.Status == http.StatusOK,
		})
	}
}

// alone asks the origin for this viewer only, by the terms of a shared fetch.
func (x *exchange) alone(f fetch) {
	h := x.p.flights.Alone(x.r.Context(), func(ctx context.Context) (*origin.Response, error) {
		return x.p.ask(ctx, f.site, f.request())
	})
	head, err := h.Head(x.r.Context())
	x.fromFlight(f, nil, h, head, err)
}

// relay answers with the bytes of the origin.
func (x *exchange) relay(h *flight.Handle, head *origin.Head, rep reply) {
	if _, err := h.Prefix(x.r.Context(), 1); err != nil {
		x.unreachable(err)
		return
	}
	rep.status, rep.did, rep.size, rep.write = head.Status, didBypass, head.Length, h.WriteTo
	if head.Status == http.StatusNoContent {
		rep.size = -1
	}
	x.send(rep)
}

// fromOriginal answers from a fetch that brings an original: with a variant if
// one is ready in time, else with the original.
func (x *exchange) fromOriginal(f fetch, wanted []header.Format, h *flight.Handle, head *origin.Head, b *board) {
	known := b.content(x.r.Context())
	if known == nil {
		// The body failed before it showed what it is.
		err := h.Flight().Err()
		if err == nil {
			err = context.Cause(x.r.Context())
		}
		if err == nil {
			err = errors.New("the work on the answer ended early")
		}
		x.unreachable(err)
		return
	}
	ttl, rec := x.set.ttl, known.record
	x.negotiated = x.negotiated || f.named || known.content.format.Convertible()
	if !known.content.image {
		wanted = nil
	}
	made, settled := b.wait(x.r.Context(), wanted, x.set.wait-time.Since(x.start))
	if x.set.wait == 0 && h.Leader() && made.record != nil {
		// The viewer that set the conversion off could have this variant only by
		// having waited for it, however shortly.
		made, settled = result{}, false
	}
	now := x.p.now()
	if made.record != nil {
		x.send(variantReply(made, ttl.LongAge(made.record.freshness, now)))
		return
	}
	if err := failed(h.Flight()); err != nil {
		// Nothing was sent yet, so nothing needs to be cut off.
		x.unreachable(err)
		return
	}
	rep := reply{
		status: http.StatusOK, header: rec.header, etag: rec.etag, conditional: true,
		size: head.Length, write: h.WriteTo,
	}
	switch {
	case !known.content.image:
		rep.did, rep.cacheControl = didBypass, ttl.ShortAge(rec.freshness, now)
	case settled && made.decision.Settled:
		rep.did, rep.cacheControl = didOriginal, ttl.LongAge(rec.freshness, now)
	default:
		rep.did, rep.cacheControl = didMiss, ttl.ShortAge(rec.freshness, now)
	}
	x.send(rep)
}

// failed gives the reason why a flight's body is not whole, nil while it may be.
func failed(f *flight.Flight) error {
	select {
	case <-f.Done():
		return f.Err()
	default:
		return nil
	}
}

// variantReply answers with a variant that was made a moment ago.
func variantReply(made result, cacheControl string) reply {
	body := made.body
	return reply{
		status: http.StatusOK, header: made.record.header, etag: made.record.etag, conditional: true,
		did: didWait, cacheControl: cacheControl, saved: made.record.saved, size: int64(len(body)),
		write: func(w io.Writer) (int64, error) {
			n, err := w.Write(body)
			return int64(n), err
		},
		section: func(offset, length int64) io.Reader { return bytes.NewReader(body[offset : offset+length]) },
	}
}

// request gives the shared request of the fetch, without conditions.
func (f fetch) request() origin.Request {
	return origin.Request{Method: http.MethodGet, Target: f.target, Header: f.header}
}

// conditional gives the shared request that asks whether r still holds; ok is
// false where the origin gave nothing to ask by.
func (f fetch) conditional(r *record) (request origin.Request, ok bool) {
	request = f.request()
	if r.etag == "" && r.lastModified == "" {
		return request, false
	}
	request.Header = request.Header.Clone()
	if r.etag != "" {
		request.Header.Set("If-None-Match", r.etag)
	}
	if r.lastModified != "" {
		request.Header.Set("If-Modified-Since", r.lastModified)
	}
	return request, true
}

// rememberForeign notes that a name without an extension is no image, so that
// its next viewers get the origin's word untouched, parts and conditions
// included.
func (p *Proxy) rememberForeign(set *settings, f fetch, head *origin.Head) {
	if shared, _ := rules.Shareable(head.Header, f.varies()); !shared || head.Status != http.StatusOK {
		return
	}
	freshness := rules.ParseFreshness(head.Header, head.Start)
	r := &record{kind: foreign, source: head.Start.UnixNano(), freshness: freshness}
	p.put(f.form(formOriginal), head.Start, set.ttl.Useless(freshness), r, nil)
}
