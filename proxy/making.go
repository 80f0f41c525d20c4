package proxy

import (
	"context"
	"net/http"
	"slices"

	"karui/convert"
	"karui/convert/header"
	"karui/proxy/rules"
)

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
