package edge

import (
	"net/http"
	"slices"
)

// conditions are the headers that make a request ask for less than the object.
var conditions = []string{"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range"}

func (v *visit) conditional() bool {
	return slices.ContainsFunc(conditions, func(name string) bool { return v.header.Get(name) != "" })
}

// lookup answers from the store if it may, and from the origins else.
func (v *visit) lookup() {
	e, now := v.e, v.e.now()
	o := e.store.get(v.key)
	if v.r.Method == http.MethodHead {
		// A whole object answers HEAD as well.
		if whole := e.store.get(v.keyFor(http.MethodGet)); whole != nil && (whole.fresh(now) || now.Before(whole.quiet)) {
			o = whole
		}
	}
	switch {
	case o == nil:
	case o.fresh(now):
		v.hit(o)
		return
	case now.Before(o.quiet):
		v.event.Stale = true
		v.hit(o)
		return
	case o.whileRefreshing(now):
		v.refreshBehind(o)
		v.event.Stale = true
		v.hit(o)
		return
	case o.failed():
		o = nil
	}
	// Documented: without an object the viewer's conditions and range go to the
	// origin, so that the answer is only for this one.
	v.fetch(o, o == nil && v.conditional())
}

// newFlight is a request to the origins on behalf of this visit.
func (v *visit) newFlight(prior *object) *flight {
	return &flight{
		key: v.key, distribution: v.deployment.ID, target: v.target, config: v.deployment.Config,
		origin: v.behavior.Target, errand: v.errand, ttls: v.recipe.ttls, prior: prior,
		store: cachedMethod(v.behavior, v.r.Method),
	}
}

// refreshBehind revalidates in the background, once at a time.
func (v *visit) refreshBehind(o *object) {
	e := v.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flights[v.key] == nil && !e.closed {
		e.begin(v.newFlight(o), true, 0)
	}
}

// pass sends a request through that is never cached.
func (v *visit) pass() {
	if v.r.ContentLength != 0 {
		v.errand.body, v.errand.length = v.r.Body, v.r.ContentLength
	}
	v.fetch(nil, true)
}

// fetch waits for an answer of the origins, its own or one on its way.
func (v *visit) fetch(prior *object, alone bool) {
	e := v.e
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		v.event.Aborted = "edge closed"
		return
	}
	f := e.flights[v.key]
	joined := f != nil && !alone
	switch {
	case joined:
		f.viewers++
	case !alone:
		// The flight that was under way when the store was looked at may have
		// landed since.
		if o := e.store.get(v.key); o != nil && o != prior && o.fresh(e.now()) {
			e.mu.Unlock()
			v.hit(o)
			return
		}
		fallthrough
	default:
		f = v.newFlight(prior)
		e.begin(f, !alone, 1)
	}
	e.mu.Unlock()

	again := v.await(f, joined)
	e.leave(f, !again && v.event.Aborted == "" && f.kept)
	if again {
		// Documented: what may not be shared is fetched by each for itself.
		v.fetch(prior, true)
	}
}

// await serves what a flight brings. It tells whether this visit has to fetch for
// itself.
func (v *visit) await(f *flight, joined bool) (again bool) {
	if !joined {
		defer f.abandonLead()
	}
	select {
	case <-f.landed:
	case <-v.r.Context().Done():
		v.event.Aborted = "viewer left"
		return false
	}
	if joined && !f.shared {
		return true
	}
	o := f.object
	if o == nil {
		v.event.Aborted = "edge closed"
		return joined // the others of a flight left just now: this one did not
	}
	var rd *reader
	if joined {
		var ok bool
		if rd, ok = o.body.open(); !ok {
			return true
		}
		v.event.Joined = true
	} else if rd = f.takeLead(); rd == nil {
		if rd, _ = o.body.open(); rd == nil {
			v.event.Aborted = "body lost"
			return false
		}
	}
	defer rd.close()
	v.event.Aborted = ""
	v.event.Result, v.event.Stale = f.result, f.stale
	v.event.Tries, v.event.FailedOver = f.tries, failedOver(f.tries)
	v.write(o, rd)
	return false
}

// hit answers from the store.
func (v *visit) hit(o *object) {
	rd, ok := o.body.open()
	if !ok {
		v.event.Aborted = "body lost"
		return
	}
	defer rd.close()
	v.event.Result = Hit
	if o.failed() {
		v.event.Result = Error
	}
	v.write(o, rd)
}
