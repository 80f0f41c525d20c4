package edge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// revalidating puts the conditions of an expired object in the place of the
// viewer's own. Documented: both the ETag and the date that came with it, whoever
// it came from.
func revalidating(h http.Header, prior *object) http.Header {
	h = h.Clone()
	for _, name := range conditions {
		h.Del(name)
	}
	if etag := prior.header.Get("Etag"); etag != "" {
		h.Set("If-None-Match", etag)
	}
	if date := prior.header.Get("Last-Modified"); date != "" {
		h.Set("If-Modified-Since", date)
	}
	return h
}

// failed is the edge's own page when no origin answered. It is kept like an
// answer of that status.
func (e *Edge) failed(f *flight, out answer, now time.Time, since uint64) (*object, string, bool) {
	status := statusOf(out.failure)
	header, body := page(status, whyFailed(out.failure), f.errand.header.Get("X-Amz-Cf-Id"))
	o := &object{
		key: f.key, distribution: f.distribution, target: f.target, status: status, header: header,
		body: fixed(body), length: int64(len(body)), stored: now,
	}
	o.lifetime = errorLifetime(status, header, f.ttls, f.config, now)
	o.expires = now.Add(o.lifetime.ttl)
	if f.store && o.lifetime.keep {
		e.store.put(o, since)
		return o, Error, true
	}
	return o, Error, false
}

// refreshed is the object before with the header of a 304.
func (e *Edge) refreshed(f *flight, out answer, now time.Time, since uint64) *object {
	o := *f.prior
	o.header = o.header.Clone()
	for name, values := range endToEnd(out.resp.Header) {
		switch name {
		case "Content-Length", "Content-Encoding", "Content-Type", "Content-Range":
		default:
			o.header[name] = values
		}
	}
	o.lifetime = successLifetime(o.header, f.ttls, now)
	o.stored, o.expires, o.quiet, o.age = now, now.Add(o.lifetime.ttl), time.Time{}, ageOf(o.header)
	if o.lifetime.keep {
		e.store.put(&o, since)
	}
	return &o
}

// receive makes an object of an answer, lets viewers have it and takes its body
// in.
func (e *Edge) receive(f *flight, out answer, now time.Time, since uint64) {
	resp := out.resp
	o := &object{
		key: f.key, distribution: f.distribution, target: f.target, status: resp.StatusCode,
		header: endToEnd(resp.Header), length: resp.ContentLength, member: out.member, stored: now, age: ageOf(resp.Header),
	}
	if f.errand.method == http.MethodHead {
		o.length = headLength(resp.Header)
	}
	result := Miss
	switch {
	case o.failed():
		result = Error
		o.lifetime = errorLifetime(o.status, o.header, f.ttls, f.config, now)
	case o.status != http.StatusPartialContent && o.status != http.StatusNotModified:
		o.lifetime = successLifetime(o.header, f.ttls, now)
	}
	o.expires = now.Add(o.lifetime.ttl)
	keep := f.store && o.lifetime.keep && (f.errand.method == http.MethodHead || o.length <= e.maxObject)
	if keep {
		o.body = newSpool(e.store.take, e.store.give)
	} else {
		o.body = newSpool(nil, nil)
		o.body.narrow(window)
	}
	f.openLead(o.body)
	f.kept = keep
	shared := keep && o.lifetime.ttl > 0
	// Whoever asks again after having it all finds it in the store: it gets there
	// before its end is told to anybody.
	if f.errand.method == http.MethodHead || resp.ContentLength == 0 {
		e.settle(o, keep, nil, since)
		f.land(o, result, shared)
		return
	}
	f.land(o, result, shared)
	if !shared {
		e.unlistNow(f)
	}
	whole, err := e.fill(f, o, out, keep)
	e.settle(o, whole, err, since)
}

// settle ends a body, and keeps its object if it came whole.
func (e *Edge) settle(o *object, whole bool, err error, since uint64) {
	kept := whole && err == nil && e.store.put(o, since)
	o.body.end(err)
	if !kept {
		o.body.drop()
	}
}

// fill takes a body in. whole tells whether all of it is held.
func (e *Edge) fill(f *flight, o *object, out answer, whole bool) (bool, error) {
	resp := out.resp
	blind := resp.ContentLength < 0 && !slices.Contains(resp.TransferEncoding, "chunked")
	buf := make([]byte, 32<<10)
	total := int64(0)
	for {
		out.watch.start()
		n, err := resp.Body.Read(buf)
		out.watch.pause()
		if n > 0 {
			total += int64(n)
			if whole && total > e.maxObject {
				whole = false
				e.unlistNow(f)
				o.body.narrow(window)
			}
			// The last bytes of an announced body are told of by its end.
			fits, lost := o.body.append(f.ctx, buf[:n], window, total == resp.ContentLength)
			if !fits {
				whole = false
				e.unlistNow(f)
			}
			if lost != nil {
				return false, lost
			}
		}
		switch {
		case total == resp.ContentLength:
			return whole, nil
		case err == nil:
		case err == io.EOF:
			return whole, nil
		case f.ctx.Err() != nil:
			return false, context.Cause(f.ctx)
		case errors.Is(context.Cause(resp.Request.Context()), errResponseTimeout):
			return false, errResponseTimeout
		case blind:
			// Documented: without a length nobody can tell a cut from an end, and the
			// object is kept as if it were whole.
			return whole, nil
		default:
			return false, err
		}
	}
}

// hopByHop are the fields of an answer that concern one connection, and those
// that CloudFront documents to remove.
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Via", "Proxy-Authenticate"}

func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	for _, line := range h["Connection"] {
		for _, name := range strings.Split(line, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		out.Del(name)
	}
	return out
}

func ageOf(h http.Header) time.Duration { return max(deltaSeconds(h.Get("Age")), 0) }

func headLength(h http.Header) int64 {
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		return n
	}
	return -1
}
