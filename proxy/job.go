package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"karui/cache"
	"karui/convert"
	"karui/convert/header"
	"karui/proxy/flight"
	"karui/proxy/origin"
	"karui/proxy/rules"
)

// job is the work behind one flight: getting the original, be it from the origin
// or from the cache, and making of it what the viewers of the flight take.
type job struct {
	p   *Proxy
	set *settings
	// fetch may change from what the flight was started with to where the answer
	// belongs.
	fetch fetch
	board *board
	// done counts the job out of the workload.
	done func()
	// start is that of the fetch which the original came from, or was last
	// confirmed by.
	start time.Time
}

// obtain is the fetch of the flight. It looks into the cache a second time, since
// an entry may have been stored between the viewer's look and the flight's start.
func (j *job) obtain(ctx context.Context) (response *origin.Response, err error) {
	j.done = sync.OnceFunc(j.p.work.attend())
	defer func() {
		if response == nil {
			j.done()
		}
	}()
	j.fetch = j.p.simplify(j.fetch)
	held, ok := j.p.find(j.fetch.form(formOriginal))
	if !ok {
		return j.p.ask(ctx, j.fetch.site, j.fetch.request())
	}
	response, err = j.withHeld(ctx, held)
	if j.board.replayed == nil {
		closeEntry(held.Entry)
	}
	return response, err
}

// withHeld gets the original where something is stored under its key.
func (j *job) withHeld(ctx context.Context, held found) (*origin.Response, error) {
	ttl := j.set.ttl
	if held.record.kind == gone {
		ttl = remembered(held.record)
	}
	fresh := ttl.Left(held.record.freshness, j.p.now()) > 0
	switch {
	case held.record.kind == original && fresh:
		j.p.align(j.fetch, held)
		return j.replay(held, held.record, held.Meta.FetchStart)
	case held.record.kind == original:
		return j.revalidate(ctx, held)
	case fresh:
		return nil, flight.ErrStored
	}
	return j.p.ask(ctx, j.fetch.site, j.fetch.request())
}

// replay lets the stored original stand in for the origin's answer, or says that
// the cache has all that the leader takes.
func (j *job) replay(held found, r *record, start time.Time) (*origin.Response, error) {
	if !r.transformable || j.p.resolved(j.fetch, j.board.leader, r.source) {
		return nil, flight.ErrStored
	}
	j.board.replayed, j.start = r, start
	return &origin.Response{
		Head: origin.Head{
			Status: http.StatusOK, Header: r.header, Length: held.Size(), Framing: origin.Length, Start: start,
		},
		Body: entryBody{held.Reader(), held.Entry},
	}, nil
}

// entryBody is a stored body that closes its entry.
type entryBody struct {
	io.Reader
	entry *cache.Entry
}

func (b entryBody) Close() error { return b.entry.Close() }

// revalidate asks the origin whether the stored original still holds.
func (j *job) revalidate(ctx context.Context, held found) (*origin.Response, error) {
	p, f := j.p, j.fetch
	j.board.previous = held.record
	request, conditional := f.conditional(held.record)
	response, err := p.ask(ctx, f.site, request)
	if err != nil {
		p.resting.rest(f.key, j.set.ttl.Short)
		return nil, err
	}
	switch status := response.Status; {
	case status == http.StatusNotModified && conditional:
		_ = response.Body.Close() // a 304 has no body
		if shared, _ := rules.Shareable(response.Header, f.varies()); !shared {
			p.forget(f, response.Start)
			return p.ask(ctx, f.site, f.request())
		}
		r := p.extend(j.set, f, held, &response.Head)
		return j.replay(held, r, response.Start)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		p.forget(f, response.Start)
	case status == http.StatusNotFound, status == http.StatusGone:
		// What is remembered of it takes the original's place.
		p.forgetVariants(f, response.Start)
	case status != http.StatusOK:
		p.resting.rest(f.key, j.set.ttl.Short)
	}
	return response, nil
}

// shareable is the flight's question about the head.
func (j *job) shareable(head *origin.Head) bool {
	if j.board.replayed != nil {
		return true
	}
	r, shared := judge(j.fetch, head)
	if shared && !j.fetch.named && r == rowImage {
		shared = convertibleType(head.Header)
	}
	if !shared {
		if j.board.previous != nil && head.Status == http.StatusOK {
			j.p.forget(j.fetch, head.Start)
		}
		j.done()
	}
	return shared
}

// convertibleType tells whether the declared type is that of an image with variants.
func convertibleType(h http.Header) bool {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	for _, f := range []header.Format{header.JPEG, header.PNG, header.GIF} {
		if media == f.ContentType() || alias(media, f) {
			return true
		}
	}
	return false
}

// run is the task of the flight, from its head to the last entry that is stored.
func (j *job) run(ctx context.Context, fl *flight.Flight) {
	defer j.done()
	defer j.board.close()
	if r := j.board.replayed; r != nil {
		j.board.announce(&announced{record: r, content: inspectStored(r)})
		if body, err := fl.Whole(ctx, int64(j.set.convert.MaxBytes)); err == nil {
			j.make(ctx, body, r, func() {})
		} else if errors.Is(err, flight.ErrTooLarge) {
			j.keep(r, convert.Decide(convert.TooLarge, "over convert.max_bytes"))
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

// receive works on an original that comes from the origin.
func (j *job) receive(ctx context.Context, fl *flight.Flight, head *origin.Head) {
	c, err := peek(ctx, fl, head.Header)
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
		return
	}
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
			j.keep(r, convert.Decide(convert.TooLarge, "over convert.max_bytes"))
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
	if old := j.board.previous; old != nil && r.digest == old.digest && old.digest != (rules.Digest{}) {
		// The same picture again: what was made of it still holds.
		r.source = old.source
		j.p.confirm(j.set, j.fetch, r, head.Start)
	}
	var storing sync.WaitGroup
	storing.Go(func() {
		j.p.put(j.fetch.form(formOriginal), j.start, j.set.ttl.Useless(r.freshness), r, body)
	})
	defer storing.Wait()
	if decided {
		storing.Wait()
		j.keep(r, kept)
		return
	}
	j.make(ctx, body, r, storing.Wait)
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
// out every format of the site.
func (j *job) planEarly(ctx context.Context, fl *flight.Flight, head *origin.Head, r *record) (convert.Decision, bool) {
	if !r.transformable {
		return convert.Decide(convert.NotConvertible, "another kind of file, or the origin forbids changes"), true
	}
	prefix := convert.NewPrefix(head.Length, j.fetch.site.options(j.fetch.site.formats), j.set.convert)
	for n := header.SniffLen; n <= maxHeader; n *= 2 {
		b, err := fl.Prefix(ctx, n)
		if err != nil {
			break
		}
		plan, decided := prefix.Decide(b)
		if decided {
			return plan.Decision, plan.Keep
		}
		if len(b) < n {
			break
		}
	}
	return convert.Decision{}, false
}

// settleAll writes one decision up for every format of the site.
func (j *job) settleAll(d convert.Decision) {
	for _, f := range j.fetch.site.formats {
		j.board.settle(f, result{decision: d})
	}
}

// keep settles that the original is kept, and stores markers that say so.
func (j *job) keep(r *record, d convert.Decision) {
	j.settleAll(d)
	j.p.metrics.decided(j.fetch.site.config.ID, d.Code)
	if d.Settled && r.transformable {
		j.mark(j.fetch.site.formats, r, d)
	}
}

// mark stores markers for the formats.
func (j *job) mark(formats []header.Format, r *record, d convert.Decision) {
	for _, f := range formats {
		m := &record{kind: marker, source: r.source, code: d.Code, freshness: r.freshness}
		j.p.put(j.fetch.form(f.String()), j.start, j.set.ttl.Useless(r.freshness), m, nil)
	}
}

// make converts for the viewers of the flight until no wish is left. Stored
// waits until the original can be found in the cache.
func (j *job) make(ctx context.Context, body []byte, r *record, stored func()) {
	for {
		wanted, ok := j.board.pending()
		if !ok {
			stored()
			if wanted, ok = j.board.next(); !ok {
				return
			}
		}
		if !j.fromStore(wanted[0], r) {
			j.convert(ctx, wanted, body, r)
		}
	}
}

// fromStore writes up what the cache has of the format, if it is of this original.
func (j *job) fromStore(f header.Format, r *record) bool {
	e, ok := j.p.find(j.fetch.form(f.String()))
	if !ok {
		return false
	}
	defer closeEntry(e.Entry)
	if e.record.source != r.source {
		return false
	}
	if e.record.kind == marker {
		j.board.settle(f, result{decision: convert.Decide(e.record.code, "decided before")})
		return true
	}
	body, err := e.body()
	if err != nil {
		return false
	}
	j.board.settle(f, result{record: e.record, body: body, decision: convert.Decide(convert.Converted, "")})
	return true
}

// convert makes the first format among wanted that the picture allows, and writes
// up and stores what came of it.
func (j *job) convert(ctx context.Context, wanted []header.Format, body []byte, r *record) {
	made, err := j.p.convert.Convert(ctx, body, j.fetch.site.options(wanted))
	if err != nil {
		made = convert.Result{Decision: convert.Decide(convert.Unavailable, err.Error())}
	}
	j.p.metrics.decided(j.fetch.site.config.ID, made.Decision.Code)
	at := slices.Index(wanted, made.Format)
	if made.Decision.Code != convert.Converted || len(made.Body) == 0 || at < 0 {
		j.unconverted(wanted, made.Decision, r)
		return
	}
	v := &record{
		kind: variant, status: http.StatusOK, source: r.source, saved: int64(len(body) - len(made.Body)),
		freshness: r.freshness, etag: rules.DigestOf(made.Body).ETag(),
		header: variantFields(r.header, j.fetch.key.Path, made.Format),
	}
	passed := convert.Decide(convert.TooSlow, "another format was chosen")
	for _, f := range wanted[:at] {
		j.board.settle(f, result{decision: passed})
	}
	j.board.settle(made.Format, result{record: v, body: made.Body, decision: made.Decision})
	j.mark(wanted[:at], r, passed)
	j.p.put(j.fetch.form(made.Format.String()), j.start, j.set.ttl.Useless(r.freshness), v, made.Body)
}

// unconverted notes that the original is answered instead: for good where the
// decision would be the same tomorrow, else for a moment.
func (j *job) unconverted(wanted []header.Format, d convert.Decision, r *record) {
	if d.Settled {
		j.mark(wanted, r, d)
	} else {
		for _, f := range wanted {
			key := j.fetch.form(f.String())
			j.p.resting.rest(key, j.set.ttl.Short)
			if old := j.board.previous; old != nil && old.source != r.source {
				// The picture has changed, so the one before must not be answered any more.
				j.p.drop(key, j.start)
			}
		}
	}
	for _, f := range wanted {
		j.board.settle(f, result{decision: d})
	}
}
