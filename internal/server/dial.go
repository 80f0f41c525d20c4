package server

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"karui/cache"
	"karui/convert"
	"karui/internal/api"
	"karui/proxy/dial"
	"karui/proxy/stress"
)

// DialAnswer is what GET /dial answers, and what a change leads to. A token for
// some sites sees of Sites, Shed and Stress only theirs.
type DialAnswer struct {
	dial.Status
	// Shed are the shares of requests that operators turn away, by site.
	Shed map[string]ShedShare `json:"shed"`
	// Stress are the groups of requests as they are judged, and Disk is whether all
	// requests are turned away for the disks.
	Stress []StressGroup `json:"stress"`
	Disk   bool          `json:"disk"`
	// Backlog counts the conversions that are to be made when workers are idle, by site.
	Backlog map[string]int `json:"backlog"`
}

// ShedShare is the share of a site's requests that is turned away.
type ShedShare struct {
	// Percent of the requests, First what of them is of classes that go before the others.
	Percent float64   `json:"percent"`
	First   float64   `json:"first"`
	Until   time.Time `json:"until,omitzero"`
}

// StressGroup is how long requests of one group take to their first byte.
type StressGroup struct {
	// Group is all, hits, or misses of Site.
	Group       string    `json:"group"`
	Site        string    `json:"site,omitempty"`
	Shedding    bool      `json:"shedding"`
	Since       time.Time `json:"since,omitzero"`
	MeanSeconds float64   `json:"mean_seconds"`
	Requests    int64     `json:"requests"`
}

// DialChange is the body of PUT /dial. What is left out stays.
type DialChange struct {
	// Level is the number or the name of a level, or auto.
	Level string `json:"level,omitempty" example:"2"`
	// Shed is a percentage such as 30%; 0% turns nothing away.
	Shed string `json:"shed,omitempty" example:"30%"`
	For  string `json:"for,omitempty" example:"2h"`
	// Site limits the change to one site; empty means all that the caller may change.
	Site string `json:"site,omitempty" example:"shop"`
}

// dialRoutes are the routes about the dial and shedding.
func (s *server) dialRoutes() []api.Route {
	return []api.Route{
		{Method: http.MethodGet, Pattern: "/dial", Right: api.Read, Handle: s.getDial},
		{Method: http.MethodPut, Pattern: "/dial", Right: api.Dial, MaxBody: 4 << 10, Handle: s.setDial},
	}
}

// getDial answers GET /dial.
func (s *server) getDial(c *api.Call) (any, error) {
	answer := DialAnswer{Status: s.proxy.Dial().Status(), Shed: map[string]ShedShare{}, Disk: s.proxy.DiskFull()}
	for id := range answer.Sites {
		if !c.May(id) {
			delete(answer.Sites, id)
		}
	}
	answer.History = slices.DeleteFunc(answer.History, func(m dial.Move) bool { return m.Site != "" && !c.May(m.Site) })
	for _, site := range s.inForce().Sites {
		if share := s.proxy.Shares().Of(site.ID); share.Percent > 0 && c.May(site.ID) {
			answer.Shed[site.ID] = ShedShare{Percent: share.Percent, First: share.First[site.ID], Until: share.Until}
		}
	}
	answer.Backlog = s.backlog.Counts()
	maps.DeleteFunc(answer.Backlog, func(id string, _ int) bool { return !c.May(id) })
	answer.Stress = []StressGroup{}
	for _, g := range s.proxy.Latency() {
		group := StressGroup{Group: g.Group, Shedding: g.Shedding, Since: g.Since, MeanSeconds: g.Mean.Seconds(), Requests: g.Samples}
		if g.Site {
			group.Group, group.Site = "misses", g.Group
		}
		if group.Site == "" || c.May(group.Site) {
			answer.Stress = append(answer.Stress, group)
		}
	}
	return answer, nil
}

// setDial answers PUT /dial.
func (s *server) setDial(c *api.Call) (any, error) {
	var change DialChange
	if err := c.Decode(&change); err != nil {
		return nil, err
	}
	if change.Level == "" && change.Shed == "" {
		return nil, api.Invalid("neither level nor shed is set", "send one of them")
	}
	until, err := s.until(change.For)
	if err != nil {
		return nil, err
	}
	if change.Level == "auto" && change.Shed == "" && change.For != "" {
		return nil, api.Invalid("auto needs no `for`", "leave it out")
	}
	level, err := s.levelOf(change.Level)
	if err != nil {
		return nil, err
	}
	share, err := percent(change.Shed)
	if err != nil {
		return nil, err
	}
	sites, whole, err := s.steered(c, change.Site)
	if err != nil {
		return nil, err
	}
	targets := sites
	if whole {
		targets = []string{""}
	}
	for _, site := range targets {
		switch {
		case change.Level == "auto":
			s.proxy.Dial().Unpin(site)
		case change.Level != "":
			if err := s.proxy.Dial().Pin(site, level, until); err != nil {
				return nil, api.Invalid(err.Error(), "GET /dial lists the levels")
			}
		}
		if change.Shed != "" {
			about := []string{site}
			if whole {
				about = sites
			}
			s.proxy.Shares().Set(site, share, until, about)
			s.log.Info("an operator has set what share of requests is turned away", "site", site, "percent", share, "for", change.For, "by", c.Caller)
		}
	}
	s.keepSwitches()
	return s.getDial(c)
}

// steered gives the sites that a change is about, and whether it is about all.
func (s *server) steered(c *api.Call, site string) (sites []string, whole bool, err error) {
	for _, configured := range s.inForce().Sites {
		if c.May(configured.ID) {
			sites = append(sites, configured.ID)
		}
	}
	if site == "" {
		return sites, c.Whole(), nil
	}
	if err := c.Require(site); err != nil {
		return nil, false, err
	}
	if !slices.Contains(sites, site) {
		return nil, false, api.NotFound(fmt.Sprintf("there is no site %q", site), "GET /stats lists them")
	}
	return []string{site}, false, nil
}

// levelOf reads the number or the name of a level.
func (s *server) levelOf(text string) (int, error) {
	if text == "" || text == "auto" {
		return 0, nil
	}
	names := s.proxy.Dial().Status().Levels
	if i := slices.Index(names, text); i >= 0 {
		return i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= len(names) {
		return 0, api.Invalid(fmt.Sprintf("level is %q", text),
			fmt.Sprintf("send auto, a number from 0 to %d, or one of %s", len(names)-1, strings.Join(names, ", ")))
	}
	return n, nil
}

// percent reads a percentage.
func percent(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, found := strings.CutSuffix(text, "%")
	p, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !found || math.IsNaN(p) || p < 0 || p > 100 {
		return 0, api.Invalid(fmt.Sprintf("shed is %q", text), "send a percentage from 0% to 100%, such as 30%")
	}
	return p, nil
}

// load gives the load of the workers as the dial takes it.
func (s *server) load() (fast, slow dial.Load) {
	of := func(l convert.Load) dial.Load {
		return dial.Load{Workers: l.Workers, BusyTime: l.BusyTime, Wait: l.OldestWait}
	}
	stats := s.pool.Stats()
	return of(stats.Load), of(stats.Slow)
}

// volumes gives the state of the cache's disks.
func (s *server) volumes() []stress.Volume {
	stats := s.cache.Stats()
	volumes := make([]stress.Volume, len(stats.Volumes))
	for i, v := range stats.Volumes {
		volumes[i] = stress.Volume{Used: v.UsedPercent, Out: v.State == cache.StateOut}
	}
	return volumes
}
