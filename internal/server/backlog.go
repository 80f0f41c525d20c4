package server

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"karui/internal/api"
	"karui/proxy/backlog"
)

// backlogFile is the journal of what is to be made when the workers have time.
const backlogFile = "backlog.journal"

// backlogShown is how many entries of each site operators see.
const backlogShown = 10

// openBacklog reads back what was to be made before the restart.
func (s *server) openBacklog() {
	s.backlog = backlog.Open(backlog.Options{
		File: filepath.Join(s.stateDir(), backlogFile), Limits: backlog.DefaultLimits(), Log: s.log,
	})
}

// BacklogAnswer is what GET /backlog answers. A token for some sites sees only theirs.
type BacklogAnswer struct {
	// Entries are those of Sites together.
	Entries int           `json:"entries"`
	Sites   []BacklogSite `json:"sites"`
	// Bytes and the bounds are for those who may see all sites.
	Bytes      int64 `json:"bytes,omitempty"`
	MaxEntries int   `json:"max_entries,omitempty"`
	MaxBytes   int64 `json:"max_bytes,omitempty"`
	// Made and Dropped, by cause, are counted since the start.
	Made    uint64                   `json:"made,omitempty"`
	Dropped map[backlog.Cause]uint64 `json:"dropped,omitempty"`
}

// BacklogSite is what is to be made for one site.
type BacklogSite struct {
	Site    string    `json:"site"`
	Entries int       `json:"entries"`
	Oldest  time.Time `json:"oldest"`
	// WaitsFor is what keeps them from being made just now: drain, stress, dial, origin
	// or workers; empty for nothing.
	WaitsFor string `json:"waits_for,omitempty"`
	// Next are the first ones, in the order in which they are made.
	Next []BacklogEntry `json:"next"`
}

// BacklogEntry is one conversion that is to be made.
type BacklogEntry struct {
	// Path is with the query that belongs to the key.
	Path   string `json:"path"`
	Format string `json:"format"`
	// Asked counts the requests for it, each halved with every hour since.
	Asked float64   `json:"asked"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Failed is how often it failed, and After when it is tried again.
	Failed int       `json:"failed,omitempty"`
	After  time.Time `json:"after,omitzero"`
}

// BacklogCleared is what DELETE /backlog answers.
type BacklogCleared struct {
	Dropped int `json:"dropped"`
}

// backlogRoutes are the routes about what is to be made later.
func (s *server) backlogRoutes() []api.Route {
	return []api.Route{
		{Method: http.MethodGet, Pattern: "/backlog", Right: api.Read, Handle: s.getBacklog},
		{Method: http.MethodDelete, Pattern: "/backlog", Right: api.Dial, Handle: s.clearBacklog},
		{Method: http.MethodDelete, Pattern: "/backlog/{site}", Right: api.Dial, Handle: s.clearBacklog},
	}
}

// getBacklog answers GET /backlog.
func (s *server) getBacklog(c *api.Call) (any, error) {
	status := s.backlog.Status(backlogShown)
	answer := BacklogAnswer{Sites: []BacklogSite{}}
	for _, site := range status.Sites {
		if !c.May(site.Site) {
			continue
		}
		answer.Entries += site.Entries
		answer.Sites = append(answer.Sites, s.backlogOf(site))
	}
	if c.Whole() {
		answer.Bytes, answer.MaxEntries, answer.MaxBytes = status.Bytes, status.Limits.Entries, status.Limits.Bytes
		answer.Made, answer.Dropped = status.Made, status.Dropped
	}
	return answer, nil
}

func (s *server) backlogOf(site backlog.SiteStatus) BacklogSite {
	out := BacklogSite{
		Site: site.Site, Entries: site.Entries, Oldest: site.Oldest.UTC(), WaitsFor: s.proxy.PostponedWaitsFor(site.Site),
		Next: make([]BacklogEntry, 0, len(site.Next)),
	}
	for _, e := range site.Next {
		query, _, _ := strings.Cut(e.Key.Rest, "\n") // keyed headers may be nobody's business
		entry := BacklogEntry{
			Path: e.Key.Path + query, Format: e.Key.Form, Asked: e.Asked, First: e.First.UTC(), Last: e.Last.UTC(), Failed: e.Tries,
		}
		if !e.After.IsZero() {
			entry.After = e.After.UTC()
		}
		out.Next = append(out.Next, entry)
	}
	return out
}

// clearBacklog answers DELETE /backlog and DELETE /backlog/{site}: what is on the list
// is made when somebody asks for it.
func (s *server) clearBacklog(c *api.Call) (any, error) {
	counts := s.backlog.Counts()
	site := c.PathValue("site")
	if site != "" {
		if err := c.Require(site); err != nil {
			return nil, err
		}
		if _, listed := counts[site]; !listed && s.clients.find(site) == nil {
			return nil, api.NotFound(fmt.Sprintf("there is no site %q", site), "GET /stats lists them")
		}
		counts = map[string]int{site: 0}
	}
	answer := BacklogCleared{}
	for id := range counts {
		if c.May(id) {
			answer.Dropped += s.backlog.Clear(id)
		}
	}
	s.log.Info("an operator has emptied the backlog", "site", site, "entries", answer.Dropped, "by", c.Caller)
	return answer, nil
}

// backlogStats is the part of GET /stats for those who may see all sites.
func backlogStats(s backlog.Status) *api.BacklogStats {
	out := &api.BacklogStats{
		Entries: s.Entries, MaxEntries: s.Limits.Entries, Bytes: s.Bytes, MaxBytes: s.Limits.Bytes, Made: s.Made, Dropped: words(s.Dropped),
	}
	for _, site := range s.Sites {
		if out.Oldest.IsZero() || site.Oldest.Before(out.Oldest) {
			out.Oldest = site.Oldest.UTC()
		}
	}
	return out
}

// backlogNow gives what metrics show of the backlog.
func (s *server) backlogNow() (backlog.Status, []string) {
	return s.backlog.Status(0), s.inForce().ids()
}

// collectBacklog shows the backlog in metrics.
func collectBacklog(s backlog.Status, sites []string, counter, gauge send) {
	entries := describe("backlog_entries", "Conversions that are to be made when workers are idle.", "site")
	oldest := describe("backlog_oldest_timestamp_seconds", "When the longest waiting of a site's conversions that are to be made was first asked for, 0 for none.", "site")
	by := map[string]backlog.SiteStatus{}
	for _, site := range s.Sites {
		by[site.Site] = site
	}
	for _, id := range sites {
		gauge(entries, float64(by[id].Entries), id)
		at := 0.0
		if by[id].Entries > 0 {
			at = float64(by[id].Oldest.Unix())
		}
		gauge(oldest, at, id)
	}
	gauge(describe("backlog_bytes", "Memory that they take."), float64(s.Bytes))
	gauge(describe("backlog_max_entries", "How many there may be; the coldest goes first."), float64(s.Limits.Entries))
	counter(describe("backlog_made_total", "Variants that were made without a viewer waiting for them."), float64(s.Made))
	dropped := describe("backlog_dropped_total", "Conversions that were to be made later and were not, by cause.", "cause")
	for cause, n := range s.Dropped {
		counter(dropped, float64(n), string(cause))
	}
}
