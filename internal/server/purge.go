package server

import (
	"context"

	"karui/internal/invalidation"
	"karui/internal/purging"
)

// startPurging makes what purges the proxy and the edge, and its page. It goes on with
// what was unfinished at the edge before a restart.
func (s *server) startPurging() (err error) {
	if s.purgePage, err = purging.Page(s.log); err != nil {
		return err
	}
	s.purging = purging.New(purging.Options{Proxy: purger{s}, Sites: s.purgeSites, Dir: s.stateDir(), Log: s.log})
	return nil
}

// purger purges the proxy, which tells the backlog, and notes it for people.
type purger struct{ *server }

// Purge implements purging.Proxy.
func (p purger) Purge(ctx context.Context, site string, prefixes []string) (remark string, err error) {
	if remark, err = p.proxy.Purge(ctx, site, prefixes); err != nil {
		return "", err
	}
	p.notePurge(site, prefixes)
	return remark, nil
}

// purgeSites gives the sites in force with their edges.
func (s *server) purgeSites() []purging.Site {
	sites := s.inForce().Sites
	list := make([]purging.Site, len(sites))
	for i, site := range sites {
		d := site.Distribution
		list[i] = purging.Site{
			ID:      site.ID,
			Hosts:   site.Hosts,
			Default: site.Default,
			Target:  invalidation.Target{Distribution: d.ID, RoleARN: d.RoleARN, ExternalID: d.ExternalID},
			Queries: site.Query.All || len(site.Query.Names) > 0,
		}
	}
	return list
}

// collectEdge is about purges at the edge.
func collectEdge(all map[string]purging.Stats, counter, gauge send) {
	running := describe("purges_edge_running", "Purges of a site that are not done at the edge yet.", "site")
	ended := describe("purges_edge_total", "Purges of a site that have ended at the edge, by how: done or failed.", "site", "result")
	for site, s := range all {
		gauge(running, float64(s.Running), site)
		counter(ended, float64(s.Done), site, string(purging.Done))
		counter(ended, float64(s.Failed), site, string(purging.Failed))
	}
}
