package proxy

import (
	"context"
	"errors"

	"karui/convert/header"
	"karui/proxy/flight"
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
		x.timing = x.p.latency.Hits().Begin(x.p.now())
		if x.fromCache(f, wanted, validated) {
			return
		}
		x.untimed()
		if !named && (x.r.Header.Get("Range") != "") {
			x.passThrough()
			return
		}
		if x.p.flights.Stats().Flights >= x.set.limits.Connections {
			// Flights outlive their viewers, so viewers who leave must not heap them up.
			break
		}
		if !x.mayFetch(f) {
			if !x.standIn(f, wanted) {
				x.unavailable(becauseLatency)
			}
			return
		}
		h := x.p.join(x.r.Context(), x.set, f, wanted)
		head, err := h.Head(x.r.Context())
		// A flight whose board is closed has stored all that it will.
		if errors.Is(err, flight.ErrStored) || err == nil && x.late(h, wanted, look) {
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

// late tells whether the viewer came to a flight after the work on it: what it has
// done is in the cache, and what it has not is for another flight, which late waits
// until it can be begun.
func (x *exchange) late(h *flight.Handle, wanted []header.Format, look int) bool {
	b, ok := h.State().(*board)
	if !ok || h.Leader() || !b.isClosed() {
		return false
	}
	select {
	case <-h.Flight().Done():
	default:
		return look == 0 // its body is still on its way, and good for every viewer
	}
	if look > 0 && b.wait(x.r.Context(), wanted, 0).settled {
		return false
	}
	select {
	case <-h.Flight().Over():
	case <-x.r.Context().Done():
	}
	return true
}

// join makes the viewer one of those who wait for the fetch.
func (p *Proxy) join(ctx context.Context, set *settings, f fetch, wanted []header.Format) *flight.Handle {
	b := newBoard(wanted)
	job := &job{p: p, set: set, fetch: f, board: b}
	h := p.flights.Join(ctx, f.key, job.request())
	if other, ok := h.State().(*board); ok && other != b {
		other.ask(wanted)
	}
	return h
}

// request is the job as a flight takes it.
func (j *job) request() flight.Request {
	return flight.Request{Fetch: j.obtain, Shareable: j.shareable, State: j.board, Task: j.run}
}

// maxRefreshes bounds the flights beside which a refresh is still begun. The stale
// image goes on being answered, and its next viewer tries again.
const maxRefreshes = 1000

// refresh asks the origin in the background whether what is stored still holds, if
// the origin has time for that.
func (p *Proxy) refresh(set *settings, f fetch, wanted []header.Format) {
	if p.draining() || p.resting.rests(f.key) || p.flights.Stats().Flights >= maxRefreshes || !f.site.misses.Admit(p.now()) {
		return
	}
	_ = p.join(context.Background(), set, f, wanted).Close()
}
