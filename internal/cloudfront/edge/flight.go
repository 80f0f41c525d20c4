package edge

import (
	"context"
	"errors"
	"net/http"
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
