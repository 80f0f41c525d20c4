package proxy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"karui/convert"
	"karui/convert/header"
	"karui/proxy/flight"
	"karui/proxy/origin"
	"karui/proxy/rules"
)

// run is the task of the flight, from its head to the last entry that is stored.
func (j *job) run(ctx context.Context, fl *flight.Flight) {
	defer j.done()
	defer j.board.close()
	if r := j.board.replayed; r != nil {
		j.board.announce(&announced{record: r, content: inspectStored(r)})
		if body, err := fl.Whole(ctx, int64(j.set.convert.MaxBytes)); err == nil {
			j.make(ctx, body, r, func() {})
		} else if errors.Is(err, flight.ErrTooLarge) {
			j.keepAll(r, convert.Decide(convert.TooLarge, "over convert.max_bytes"))
		}
		return
	}
	head := fl.Head()
	j.start = head.Start
	switch r, _ := judge(j.fetch, head); r {
	case rowGone:
		j.rememberGone(ctx, fl, head)
	case rowImage:
		j.receive(ctx, fl, head)
	}
}

// inspectStored gives what is known of a stored original.
func inspectStored(r *record) content {
	media := r.header.Get("Content-Type")
	c := content{image: true, mediaType: media}
	for _, f := range []header.Format{header.JPEG, header.PNG, header.GIF} {
		if strings.HasPrefix(media, f.ContentType()) || alias(media, f) {
			c.format = f
		}
	}
	return c
}

// maxGoneBody bounds what is kept of the page that comes with a 404.
const maxGoneBody = 1 << 20

// rememberGone stores a 404 or 410 for the short lifetime, in place of the original.
func (j *job) rememberGone(ctx context.Context, fl *flight.Flight, head *origin.Head) {
	body, err := fl.Whole(ctx, maxGoneBody)
	if err != nil && !errors.Is(err, flight.ErrTooLarge) {
		return
	}
	life := j.set.ttl.Short
	if own := rules.ParseFreshness(head.Header, head.Start); own.Explicit && j.set.ttl.RespectOrigin {
		life = max(min(life, own.Lifetime), time.Second)
	}
	r := &record{
		kind: gone, status: head.Status, source: head.Start.UnixNano(), header: withoutFields(head.Header, computed...),
		freshness: rules.Freshness{Base: head.Start, Explicit: true, Lifetime: life},
	}
	j.p.put(j.fetch.form(formOriginal), head.Start, head.Start.Add(life), r, body)
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

// receive works on an original that comes from the origin.
func (j *job) receive(ctx context.Context, fl *flight.Flight, head *origin.Head) {
	c, err := peek(ctx, fl, head.Header)
	j.first()
	if err != nil {
		return
	}
	r := &record{
		kind: original, status: head.Status, source: head.Start.UnixNano(),
		transformable: rules.Transformable(head.Header) && c.format.Convertible(),
		sawOrigin:     j.fetch.origin,
		freshness:     rules.ParseFreshness(head.Header, head.Start),
		etag:          head.Header.Get("Etag"),
		lastModified:  head.Header.Get("Last-Modified"),
		header:        originalFields(head.Header, c),
	}
	j.board.announce(&announced{record: r, content: c})
	if !c.image {
		// The origin has something else under this name now.
		j.p.forget(j.fetch, head.Start)
		return
	}
	asked := j.fetch
	if r.independent() && j.fetch.origin {
		// Whoever comes next, with an Origin or without, is served from one place.
		j.fetch = j.fetch.withoutOrigin()
	}
	kept, decided := j.planEarly(ctx, fl, head, r)
	if decided {
		j.settleAll(kept)
	}
	body, err := fl.Whole(ctx, int64(j.set.convert.MaxBytes))
	switch {
	case errors.Is(err, flight.ErrTooLarge):
		if j.storeLarge(ctx, fl, head, r, c) {
			j.supersede(asked, r, head.Start)
			j.keepAll(r, convert.Decide(convert.TooLarge, "over convert.max_bytes"))
		}
		return
	case err != nil:
		return
	case head.Framing == origin.UntilClose && !header.HasTrailer(c.format, body[max(0, len(body)-header.TrailerLen):]):
		// Nothing tells whether this is all of it.
		return
	}
	if r.transformable {
		r.digest = rules.DigestOf(body)
	}
	j.supersede(asked, r, head.Start)
	var storing sync.WaitGroup
	storing.Go(func() {
		j.put(j.fetch.form(formOriginal), r, body)
	})
	defer storing.Wait()
	if decided {
		storing.Wait()
		j.keep(r, kept)
		return
	}
	j.make(ctx, body, r, storing.Wait)
}

// supersede sees to what is stored where the original goes, and where it was asked
// for, should that be another place.
func (j *job) supersede(asked fetch, r *record, start time.Time) {
	j.p.supersede(j.set, j.fetch, r, start)
	if asked.key != j.fetch.key {
		j.p.forget(asked, start)
	}
}

// peek reads as much of the body as it takes to tell what it is.
func peek(ctx context.Context, fl *flight.Flight, h http.Header) (content, error) {
	for n := 1; ; {
		prefix, err := fl.Prefix(ctx, n)
		if err != nil {
			return content{}, err
		}
		if len(prefix) < n || len(prefix) >= header.SniffLen || !identity(h) ||
			header.Sniff(prefix) != header.Unknown || !header.SniffMore(prefix) {
			return inspect(h, prefix), nil
		}
		n = len(prefix) + 1
	}
}

// maxHeader bounds the bytes in which a header is looked for before the body is
// whole; it covers what cameras write in front of the picture.
const maxHeader = 1 << 20

// planEarly tells from a body that is still arriving whether its header rules
// out every format of the site, and why each.
func (j *job) planEarly(ctx context.Context, fl *flight.Flight, head *origin.Head, r *record) ([]convert.Outcome, bool) {
	if !r.transformable {
		return j.fetch.site.all(convert.Decide(convert.NotConvertible, "another kind of file, or the origin forbids changes")), true
	}
	_, level := j.p.dial.Of(j.fetch.site.config.ID)
	prefix := convert.NewPrefix(head.Length, j.fetch.site.options(j.fetch.site.formats, level), j.set.convert)
	for n := header.SniffLen; n <= maxHeader; n *= 2 {
		b, err := fl.Prefix(ctx, n)
		if err != nil {
			break
		}
		plan, decided := prefix.Decide(b)
		if decided {
			return plan.Outcomes, plan.Keep
		}
		if len(b) < n {
			break
		}
	}
	return nil, false
}
