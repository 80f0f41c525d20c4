package proxy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"karui/cache"
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
	// done counts the job out of the workload, and first says that the origin's first
	// byte is here, or will not come. Both may be called again.
	done, first func()
	// again is whether what was made at a level of the dial above 0 is made again, and
	// spare whether that is only done while no viewer needs the workers.
	again, spare bool
	// start is that of the fetch which the original came from, or was last
	// confirmed by.
	start time.Time
	// born is when the fetch began that the bytes of a stored original came from; zero
	// for those that the job has fetched itself. began is when the job did.
	born, began time.Time
}

// obtain is the fetch of the flight. It looks into the cache a second time, since
// an entry may have been stored between the viewer's look and the flight's start.
func (j *job) obtain(ctx context.Context) (response *origin.Response, err error) {
	j.began = j.p.now()
	left := j.p.work.attend()
	j.first = func() {}
	j.done = sync.OnceFunc(func() {
		j.first()
		left()
	})
	defer func() {
		if response == nil {
			j.done()
		}
	}()
	j.fetch = j.p.simplify(j.fetch)
	held, ok := j.p.find(j.fetch.form(formOriginal))
	if !ok {
		return j.ask(ctx, j.fetch.request())
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
		if !j.p.align(j.fetch, held) {
			j.p.drop(j.fetch.form(formOriginal), held.Meta.FetchStart)
			return j.ask(ctx, j.fetch.request())
		}
		return j.replay(held, held.record, held.Meta.FetchStart)
	case held.record.kind == original:
		return j.revalidate(ctx, held)
	case fresh:
		return nil, flight.ErrStored
	}
	return j.ask(ctx, j.fetch.request())
}

// ask asks the origin, and begins to count how long it takes. An origin that cannot
// be reached is left alone for a while by those whose refresh this was.
func (j *job) ask(ctx context.Context, r origin.Request) (*origin.Response, error) {
	p, timing := j.p, j.fetch.site.misses.Begin(j.p.now())
	j.first()
	j.first = sync.OnceFunc(func() { timing.End(p.now()) })
	response, err := p.ask(ctx, j.fetch.site, r)
	if err != nil {
		p.resting.rest(j.fetch.key, j.set.ttl.Short)
	}
	if err != nil || response.Status != http.StatusOK {
		j.first()
	}
	return response, err
}

// replay lets the stored original stand in for the origin's answer, or says that
// the cache has all that the leader takes.
func (j *job) replay(held found, r *record, start time.Time) (*origin.Response, error) {
	if !r.transformable || !j.again && j.p.resolved(j.set, j.fetch, j.board.leader, r.source) {
		return nil, flight.ErrStored
	}
	j.board.replayed, j.start, j.born = r, start, held.Meta.Born()
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
	request, conditional := f.conditional(held.record)
	response, err := j.ask(ctx, request)
	if err != nil || response.Status != http.StatusNotModified || !conditional {
		return response, err
	}
	_ = response.Body.Close() // a 304 has no body
	if shared, _ := rules.Shareable(response.Header, f.varies()); !shared {
		p.forget(f, response.Start)
		return j.ask(ctx, f.request())
	}
	r := p.extend(j.set, f, held, &response.Head)
	return j.replay(held, r, response.Start)
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
	switch {
	case r == rowUnavailable:
		// The origin is in trouble, or makes no sense: what is stored goes on.
		j.p.resting.rest(j.fetch.key, j.set.ttl.Short)
	case r == rowImage && shared:
		// The body decides.
	default:
		// The origin was reached, and this is what it has under that name now. Its other
		// viewers see the same.
		j.p.forget(j.fetch, head.Start)
	}
	if !shared {
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

// request gives the shared request of the fetch, without conditions.
func (f fetch) request() origin.Request {
	return origin.Request{Method: http.MethodGet, Target: f.target, Header: f.header()}
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
