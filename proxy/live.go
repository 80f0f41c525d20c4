package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"karui/convert/header"
	"karui/proxy/flight"
	"karui/proxy/origin"
	"karui/proxy/rules"
)

// fromFlight answers from a fetch that is under way.
func (x *exchange) fromFlight(f fetch, wanted []header.Format, h *flight.Handle, head *origin.Head, err error) {
	defer h.Close()
	x.cameFrom(head, err)
	switch {
	case errors.Is(err, flight.ErrNotShared):
		x.alone(f)
		return
	case err != nil:
		if !x.standIn(f, wanted) {
			x.unreachable(err)
		}
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
		if !x.standIn(f, wanted) {
			x.unavailable(becauseOrigin)
		}
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
	rep.status, rep.did, rep.size, rep.body, rep.arriving = head.Status, didBypass, head.Length, h, true
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
		if !x.standIn(f, wanted) {
			x.unreachable(err)
		}
		return
	}
	ttl, rec := x.set.ttl, known.record
	x.negotiated = x.negotiated || f.named || known.content.format.Convertible()
	if !known.content.image {
		wanted = nil
	}
	v := b.wait(x.r.Context(), wanted, 0)
	did := didHit // made before this viewer came, and not in the cache yet
	if v.record == nil || h.Leader() {
		did = didWait
		v = b.wait(x.r.Context(), wanted, x.patience(f, wanted, b))
	}
	// The viewer that set the conversion off could have a variant of it only by
	// having waited, however shortly.
	hasty := x.set.wait == 0 && h.Leader()
	if hasty && v.record != nil {
		v = verdict{next: v.format}
	}
	now := x.p.now()
	switch {
	case v.record != nil && v.final && v.dialled:
		x.send(variantReply(v.result, did, ttl.DegradedAge(v.record.freshness, now)))
		return
	case v.record != nil && v.final:
		x.send(variantReply(v.result, did, ttl.LongAge(v.record.freshness, now)))
		return
	case v.record != nil:
		x.send(variantReply(v.result, did, ttl.ShortAge(v.record.freshness, now)))
		return
	case !v.settled && x.spare(f, wanted[slices.Index(wanted, v.next)+1:], b, rec, hasty):
		return
	}
	if err := failed(h.Flight()); err != nil {
		// Nothing was sent yet, so nothing needs to be cut off.
		if !x.standIn(f, wanted) {
			x.unreachable(err)
		}
		return
	}
	rep := reply{
		status: http.StatusOK, header: rec.header, etag: rec.etag, conditional: true,
		size: head.Length, body: h, arriving: true,
	}
	sure := v.settled && v.final
	switch {
	case !known.content.image:
		rep.did, rep.cacheControl = didBypass, ttl.ShortAge(rec.freshness, now)
	case sure && head.Framing == origin.UntilClose:
		// Nothing tells whether this will be all of it, so nobody may keep it for long.
		// It is not aborted either where it ends without its format's trailer: some
		// intact files have none, which the true origin's viewers see, and an aborted
		// connection would break them each time.
		rep.did, rep.kept, rep.cacheControl = didOriginal, v.decision.Code, ttl.ShortAge(rec.freshness, now)
	case sure:
		rep.did, rep.kept, rep.cacheControl = didOriginal, v.decision.Code, ttl.LongAge(rec.freshness, now)
	default:
		rep.did, rep.cacheControl = didMiss, ttl.ShortAge(rec.freshness, now)
	}
	x.send(rep)
}

// spare answers with a variant of a later format, for the short lifetime, while
// the one that the viewer would rather have is being made: it is lighter than the
// original, and there already.
func (x *exchange) spare(f fetch, later []header.Format, b *board, r *record, hasty bool) bool {
	if !r.transformable {
		return false
	}
	if made, ok := b.spare(later); ok && !hasty {
		x.send(variantReply(made, didHit, x.set.ttl.ShortAge(made.record.freshness, x.p.now())))
		return true
	}
	if b.replayed == nil {
		return false // of a new picture, the cache has only what the board has
	}
	for _, format := range later {
		e, ok := x.p.find(f.form(format.String()))
		if !ok {
			continue
		}
		defer closeEntry(e.Entry)
		if e.record.kind == variant && e.record.source == r.source {
			rep := storedReply(e, format)
			rep.did, rep.cacheControl = didHit, x.set.ttl.ShortAge(e.record.freshness, x.p.now())
			x.send(rep)
			return true
		}
	}
	return false
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
func variantReply(made result, did outcome, cacheControl string) reply {
	return reply{
		status: http.StatusOK, header: made.record.header, etag: made.record.etag, conditional: true,
		did: did, cacheControl: cacheControl, saved: made.record.saved, variant: made.format, dialled: made.record.level, size: int64(len(made.body)),
		body: inMemory(made.body),
	}
}

// inMemory is a body that is there as a whole.
type inMemory []byte

// WriteTo implements io.WriterTo.
func (b inMemory) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b)
	return int64(n), err
}

func (b inMemory) section(offset, length int64) io.Reader {
	return bytes.NewReader(b[offset : offset+length])
}
