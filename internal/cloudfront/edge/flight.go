package edge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"karui/internal/cloudfront"
)

// window is how much of a body that is not kept is held before the slowest
// reader, in bytes.
const window = 256 << 10

// maxFlight bounds one request to the origins with its body, however slowly it
// comes. Concluded: CloudFront has such bounds too; this one is out of the way.
const maxFlight = time.Hour

var (
	errNobody  = errors.New("every viewer left")
	errTooLong = errors.New("the body took too long as a whole")
)

// flight is one request to the origins and those who wait for it.
type flight struct {
	key, distribution, target string
	config                    *cloudfront.Config
	origin                    string // a behaviour's target
	errand                    errand
	ttls                      ttls
	prior                     *object // expired, to be revalidated
	store                     bool    // whether any answer may be kept

	ctx    context.Context
	cancel context.CancelCauseFunc
	landed chan struct{} // closed when the answer's head is known

	// Known after landed.
	object *object // nil: nobody was there to wait for it
	result string
	stale  bool
	shared bool // others may have it too
	kept   bool // to be stored when it is whole
	tries  []Try

	viewers   int  // guarded by Edge.mu
	satisfied bool // likewise: one of them got what it wanted of an answer to be kept

	mu   sync.Mutex
	lead *reader // of the viewer that began it
	gone bool    // that viewer left, or there is none
}

// takeLead hands the first viewer its reader.
func (f *flight) takeLead() *reader {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.lead
	f.lead = nil
	return r
}

func (f *flight) abandonLead() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	if f.lead != nil {
		f.lead.close()
		f.lead = nil
	}
}

// openLead opens the reader of the first viewer before anything is written, so
// that it misses nothing.
func (f *flight) openLead(s *spool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.gone {
		f.lead, _ = s.open() // an empty spool can always be opened
	}
}

// begin starts a flight; viewers is 0 for one in the background. Callers hold mu.
func (e *Edge) begin(f *flight, listed bool, viewers int) {
	f.ctx, f.cancel = context.WithCancelCause(e.ctx)
	f.landed = make(chan struct{})
	f.viewers, f.gone = viewers, viewers == 0
	if listed {
		e.flights[f.key] = f
	}
	e.wg.Add(1)
	go func() {
		defer e.wg.Done()
		limit := time.AfterFunc(maxFlight, func() { f.cancel(errTooLong) })
		defer limit.Stop()
		defer f.cancel(nil)
		e.fly(f)
	}()
}

// leave takes one viewer off. Documented: what nobody waits for any more is not
// kept. Concluded: the request to the origin is given up as well. A viewer that
// had all it wanted is no reason for that.
func (e *Edge) leave(f *flight, satisfied bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f.satisfied = f.satisfied || satisfied
	if f.viewers--; f.viewers == 0 && !f.satisfied {
		e.unlist(f)
		f.cancel(errNobody)
	}
}

func (e *Edge) unlist(f *flight) {
	if e.flights[f.key] == f {
		delete(e.flights, f.key)
	}
}

func (e *Edge) unlistNow(f *flight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unlist(f)
}

func (f *flight) land(o *object, result string, shared bool) {
	f.object, f.result, f.shared = o, result, shared
	close(f.landed)
}

// fly asks the origins and follows the answer to its end.
func (e *Edge) fly(f *flight) {
	defer e.unlistNow(f)
	since := e.store.position()
	a := f.errand
	if f.prior != nil {
		a.header = revalidating(a.header, f.prior)
	}
	out := e.ask(f.ctx, f.config, f.origin, a)
	e.counters.asked(out.tries)
	f.tries = out.tries
	now := e.now()
	status := statusOf(out.failure)
	if out.resp != nil {
		status = out.resp.StatusCode
		defer func() {
			out.resp.Body.Close()
			out.watch.stop(context.Canceled)
		}()
	}
	switch {
	case f.ctx.Err() != nil && out.resp == nil:
		f.land(nil, Error, false)
	case f.prior != nil && f.prior.onError(now) && status >= http.StatusInternalServerError:
		// Documented: an expired object goes out instead of a 5xx or a timeout, and
		// for the error caching minimum TTL nobody is asked again.
		o := *f.prior
		o.quiet = now.Add(f.config.ErrorTTL(status))
		e.store.replace(f.prior, &o)
		f.stale = true
		f.land(&o, Hit, true)
	case out.resp == nil:
		f.land(e.failed(f, out, now, since))
	case status == http.StatusNotModified && f.prior != nil:
		f.land(e.refreshed(f, out, now, since), RefreshHit, true)
	default:
		e.receive(f, out, now, since)
	}
}

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
