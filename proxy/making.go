package proxy

import (
	"context"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"karui/convert"
	"karui/convert/header"
	"karui/proxy/backlog"
	"karui/proxy/dial"
	"karui/proxy/rules"
)

// keep settles what was decided about every format of the site, and stores
// markers that say so.
func (j *job) keep(r *record, outcomes []convert.Outcome) {
	for _, o := range outcomes {
		j.note(r, o)
	}
}

// keepAll is keep with one decision for every format.
func (j *job) keepAll(r *record, d convert.Decision) { j.keep(r, j.fetch.site.all(d)) }

// all gives one decision as that about every format of the site.
func (s *site) all(d convert.Decision) []convert.Outcome {
	outcomes := make([]convert.Outcome, len(s.formats))
	for i, f := range s.formats {
		outcomes[i] = convert.Outcome{Format: f, Decision: d}
	}
	return outcomes
}

// settleAll writes up what was decided, before anything is stored.
func (j *job) settleAll(outcomes []convert.Outcome) {
	for _, o := range outcomes {
		j.board.settle(o.Format, result{decision: o.Decision})
	}
}

// note writes up that a format is not made, and sees to it that the next viewers
// know: by a marker where the decision would be the same tomorrow, else by a short
// rest. Nothing that happens to one format touches another.
func (j *job) note(r *record, o convert.Outcome) {
	key := j.fetch.form(o.Format.String())
	j.fetch.site.counts.decided(o.Format, o.Decision.Code)
	switch {
	case !r.transformable:
		// The original says so itself.
	case o.Decision.Settled:
		m := &record{kind: marker, source: r.source, digest: r.digest, code: o.Decision.Code, freshness: r.freshness}
		if passes(o.Decision.Code) {
			m.noted = j.p.now()
		}
		j.put(key, m, nil)
	default:
		if o.Decision.Code != convert.Deferred {
			j.p.resting.rest(key, j.set.ttl.Short)
		}
	}
	j.board.settle(o.Format, result{decision: o.Decision})
}

// make converts for the viewers of the flight until no wish is left, every format
// once and each by itself: who takes the quick one does not wait for the slow one
// that somebody else takes. Stored waits until the original can be found in the
// cache.
func (j *job) make(ctx context.Context, body []byte, r *record, stored func()) {
	var making sync.WaitGroup
	defer making.Wait()
	for {
		f, changed := j.board.claim()
		switch {
		case f != header.Unknown:
			making.Go(func() { j.makeOne(ctx, f, body, r) })
		case changed != nil:
			<-changed
		default:
			stored()
			making.Wait()
			if j.board.finish() {
				return
			}
		}
	}
}

// makeOne sees to it that there is a result for the format.
func (j *job) makeOne(ctx context.Context, f header.Format, body []byte, r *record) {
	defer func() {
		if v := recover(); v != nil {
			j.p.log.Error("panic while making a variant", "format", f.String(), "panic", v, "stack", string(debug.Stack()))
			j.board.settle(f, result{decision: convert.Decide(convert.Unavailable, "a fault inside karui")})
		}
	}()
	n, level := j.p.dial.Of(j.fetch.site.config.ID)
	switch {
	case j.fromStore(f, r):
	case !level.Makes(f):
		j.postpone(f, level.Deferred)
		j.note(r, convert.Outcome{Format: f, Decision: convert.Decide(convert.Deferred, "the dial is at "+level.Name)})
	case j.p.resting.rests(j.fetch.form(f.String())):
		j.board.settle(f, result{decision: convert.Decide(convert.QueueFull, "it was tried a moment ago")})
	case j.spare && !j.board.isVisited() && !j.p.spare(f):
		j.board.settle(f, result{decision: convert.Decide(convert.Deferred, "the workers are needed for viewers")})
	default:
		j.convert(ctx, f, body, r, n, level)
	}
}

// fromStore writes up what the cache has of the format, if it is of this original.
func (j *job) fromStore(f header.Format, r *record) bool {
	e, ok := j.p.find(j.fetch.form(f.String()))
	if !ok {
		return false
	}
	defer closeEntry(e.Entry)
	if !e.record.of(r) || j.p.lapsed(e.record) || j.again && e.record.level > 0 {
		return false
	}
	if e.record.kind == marker {
		j.board.settle(f, result{decision: convert.Decision{Code: e.record.code, Reason: "decided before", Settled: true}})
		return true
	}
	body, err := e.body()
	if err != nil {
		return false
	}
	j.board.settle(f, result{record: e.record, format: f, body: body, decision: convert.Decide(convert.Converted, "")})
	return true
}

// convert makes one format at a level of the dial, and writes up and stores what
// came of it.
func (j *job) convert(ctx context.Context, f header.Format, body []byte, r *record, n int, level *dial.Level) {
	began := time.Now()
	made, err := j.p.convert.Convert(ctx, body, j.fetch.site.options([]header.Format{f}, level))
	if err == nil && made.Decision.Code == convert.Converted {
		j.p.metrics.making.WithLabelValues(f.String()).Observe(time.Since(began).Seconds())
	}
	switch {
	case err != nil:
		j.note(r, convert.Outcome{Format: f, Decision: convert.Decide(convert.Unavailable, err.Error())})
		return
	case made.Decision.Code != convert.Converted || len(made.Body) == 0 || made.Format != f:
		if made.Decision.Code == convert.QueueFull {
			j.postpone(f, true)
		}
		j.note(r, convert.Outcome{Format: f, Decision: made.Decision})
		if unreadable(made.Decision.Code) {
			// Decoding it again for another format would find the same.
			for _, o := range j.fetch.site.all(made.Decision) {
				if j.board.take(o.Format) && !j.fromStore(o.Format, r) {
					j.note(r, o)
				}
			}
		}
		return
	}
	j.fetch.site.counts.decided(f, made.Decision.Code)
	v := &record{
		kind: variant, status: http.StatusOK, level: n, source: r.source, digest: r.digest, saved: int64(len(body) - len(made.Body)),
		freshness: r.freshness, etag: rules.DigestOf(made.Body).ETag(),
		header: variantFields(r.header, j.fetch.key.Path, f),
	}
	j.board.settle(f, result{record: v, format: f, body: made.Body, decision: made.Decision})
	j.put(j.fetch.form(f.String()), v, made.Body)
	if n > 0 {
		j.p.postpone(j.fetch, f, backlog.Degraded)
	}
}

// unreadable tells whether a worker found the picture itself wanting. Whatever
// else keeps a format from being made is known from the header, or may be
// otherwise for another format.
func unreadable(c convert.Code) bool {
	return slices.Contains([]convert.Code{convert.Broken, convert.Truncated, convert.DecodeFailed, convert.OddCanvas}, c)
}

// passes tells whether a decision holds for a while only, whatever the origin says
// of the picture's lifetime: it is about this machine, or the quarantine.
func passes(c convert.Code) bool {
	return slices.Contains([]convert.Code{
		convert.Crashed, convert.OutOfMemory, convert.Timeout, convert.Quarantined, convert.NoEncoder,
	}, c)
}
