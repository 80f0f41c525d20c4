package proxy

import "strings"

// Tally is told of every request of a viewer whether it was answered well.
// success.Ledger is one.
type Tally interface {
	Good(site string)
	Bad(site, reason string)
}

// noTally is for a proxy that nobody counts for.
type noTally struct{}

func (noTally) Good(string)        {}
func (noTally) Bad(string, string) {}

// tally counts the exchange. Left out are pings, requests that no proxy could
// serve, those without the edge's secret or for a site that is not configured, and
// viewers that went away before the end: none of them says anything about karui,
// and whoever finds its address could make its numbers what he likes. The metrics
// of requests have all of them.
func (x *exchange) tally() {
	id := ""
	if x.site != nil {
		id = x.site.config.ID
	}
	reason, failed := strings.CutPrefix(string(x.did), "503_")
	switch {
	case x.unlogged, x.did == didPing, x.did == didRefuse, x.did == didAbort && x.r.Context().Err() != nil,
		x.did == becauseRoute.outcome(), x.did == becauseSecret.outcome():
	case failed:
		x.p.tally.Bad(id, reason)
	case x.did == didAbort:
		x.p.tally.Bad(id, string(didAbort))
	default:
		x.p.tally.Good(id)
	}
}
