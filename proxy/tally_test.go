package proxy

import (
	"context"
	"net/http/httptest"
	"testing"
)

type countedTally struct {
	good map[string]int
	bad  map[string]int
}

func (c *countedTally) Good(site string)        { c.good[site]++ }
func (c *countedTally) Bad(site, reason string) { c.bad[site+" "+reason]++ }

func TestWhatCountsAsAnsweredWell(t *testing.T) {
	s := &site{config: SiteConfig{ID: "shop"}}
	for _, tc := range []struct {
		did      outcome
		unlogged bool
		left     bool
		good     string
		bad      string
	}{
		{did: didHit, good: "shop"},
		{did: didStale, good: "shop"},
		{did: didBypass, good: "shop"},
		{did: didBypass, left: true, good: "shop"}, // after the last byte
		{did: becauseOrigin.outcome(), bad: "shop origin"},
		{did: becauseDrain.outcome(), bad: "shop drain"},
		{did: didAbort, bad: "shop aborted"},
		{did: didAbort, left: true},
		{did: didPing, unlogged: true},
		{did: becausePing.outcome(), unlogged: true},
		{did: didRefuse},
		{did: becauseSecret.outcome()},
		{did: becauseRoute.outcome()},
		{did: becausePanic.outcome(), bad: "shop panic"},
	} {
		counts := &countedTally{map[string]int{}, map[string]int{}}
		ctx, cancel := context.WithCancel(t.Context())
		if tc.left {
			cancel()
		}
		x := &exchange{p: &Proxy{tally: counts}, r: httptest.NewRequestWithContext(ctx, "GET", "/", nil), site: s, did: tc.did, unlogged: tc.unlogged}
		x.tally()
		cancel()
		if counts.good[tc.good] != 1 && tc.good != "" || counts.bad[tc.bad] != 1 && tc.bad != "" || len(counts.good)+len(counts.bad) > 1 ||
			tc.good == "" && len(counts.good) > 0 || tc.bad == "" && len(counts.bad) > 0 {
			t.Errorf("%+v: %+v", tc, counts)
		}
	}
}
