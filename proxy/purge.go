package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"karui/cache"
	"karui/cache/purge"
)

// Purge makes the proxy forget what it knows of a site's pictures under some prefixes
// (see package purge): originals, variants, markers, remembered 404s, whatever their
// query. Whoever asks after it has returned gets what the origin has by then, asked
// without conditions. What was fetched before, and is still on its way, being converted
// or waiting to be written, goes to the viewers who asked before, and is not stored.
//
// The head of an answer to them that leaves after the purge has returned says no-store,
// so that an edge which is purged next does not keep it either.
//
// For [purge.Margin] after it nothing under the prefixes is stored at all, since the
// clocks of the machines of a cluster differ; viewers get what the origin has.
//
// The remark, for people, says what could not be done though the purge holds. After an
// error nothing has been purged. Purge waits for the disks, some seconds at most.
func (p *Proxy) Purge(_ context.Context, site string, prefixes []string) (remark string, err error) {
	if p.set.Load().router.byID[site] == nil {
		return "", fmt.Errorf("there is no site %q: see sites in the configuration", site)
	}
	at := p.now()
	err = p.store.Purge(site, prefixes, at)
	switch {
	case errors.Is(err, cache.ErrUnavailable):
		remark = "the purge holds until the next start only, since it could not be written to any volume of the cache: " + err.Error() +
			"; make room there or mend the disk, and purge again before karui is started again"
	case err != nil:
		return "", err
	}
	p.forgetPurged(site, prefixes, at)
	p.purges.Add(1)
	p.metrics.purges.WithLabelValues(site).Add(float64(len(prefixes)))
	return remark, nil
}

// Purges gives the purges that are remembered, and how far they have got.
func (p *Proxy) Purges() []cache.PurgeState { return p.store.Purges() }

// forgetPurged lets nobody join a fetch that was begun before a purge, nor leaves
// anything alone because of what was before. It comes after the cache knows of the
// purge: a fetch that begins between the two finds nothing old there.
func (p *Proxy) forgetPurged(site string, prefixes []string, at time.Time) {
	list := make([]purge.Purge, len(prefixes))
	for i, prefix := range prefixes {
		list[i] = purge.Purge{Site: site, Prefix: prefix, At: at}
	}
	set := purge.NewSet(list)
	match := func(k cache.Key) bool { return set.Hits(k.Site, k.Path, at) }
	p.flights.Forget(match)
	p.resting.forget(match)
	if p.purged != nil {
		p.purged(match)
	}
}

// overtaken tells whether a purge of what is answered has come since the request began,
// so that the answer may be of before. It asks for any purge that is remembered, which
// only ever costs an edge one more request.
func (x *exchange) overtaken() bool {
	return x.site != nil && x.p.purges.Load() != x.purges && x.p.store.Purged(x.site.config.ID, x.target.Path)
}

// lifetimes are the fields that tell caches how long to keep an answer. The last two
// are for some of them alone, and go before Cache-Control there.
var lifetimes = []string{"Cache-Control", "Expires", "Surrogate-Control", "Cdn-Cache-Control"}

// forbidKeeping lets no cache keep the answer.
func forbidKeeping(h http.Header) {
	for _, name := range lifetimes {
		delete(h, name)
	}
	h["Cache-Control"] = []string{"no-store"}
}
