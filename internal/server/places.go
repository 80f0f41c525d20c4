package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"karui/internal/api"
	"karui/proxy/origin"
)

// PlacesAnswer is what GET /places answers, and what a change of places or
// retries leads to: how the fetching of each site stands.
type PlacesAnswer struct {
	Sites []origin.PlacesStatus `json:"sites"`
}

// PlaceChange is the body of PUT /places/{name}.
type PlaceChange struct {
	// State is in or out.
	State string `json:"state" example:"out"`
	// For is how long it holds, such as 1h; empty means until it is changed.
	For string `json:"for,omitempty" example:"90m"`
	// Site limits the change to one site; empty means all that the caller may change.
	Site string `json:"site,omitempty" example:"shop"`
}

// RetryChange is the body of PUT /retry.
type RetryChange struct {
	// Mode is off or auto.
	Mode string `json:"mode" example:"off"`
	For  string `json:"for,omitempty" example:"6h"`
	Site string `json:"site,omitempty" example:"shop"`
}

// Bounds of an operator's word: what is to hold longer belongs in the configuration.
const (
	minHold = time.Second
	maxHold = 30 * 24 * time.Hour
)

// placeRoutes are the routes about places and retries.
func (s *server) placeRoutes() []api.Route {
	const body = 4 << 10
	return []api.Route{
		{Method: http.MethodGet, Pattern: "/places", Right: api.Read, Handle: s.places},
		{Method: http.MethodPut, Pattern: "/places/{name}", Right: api.Dial, MaxBody: body, Handle: s.setPlace},
		{Method: http.MethodGet, Pattern: "/retry", Right: api.Read, Handle: s.places},
		{Method: http.MethodPut, Pattern: "/retry", Right: api.Dial, MaxBody: body, Handle: s.setRetry},
	}
}

// places answers GET /places and GET /retry.
func (s *server) places(c *api.Call) (any, error) {
	answer := PlacesAnswer{Sites: []origin.PlacesStatus{}}
	for _, status := range s.clients.status() {
		if c.May(status.Site) {
			answer.Sites = append(answer.Sites, status)
		}
	}
	return answer, nil
}

// setPlace answers PUT /places/{name}.
func (s *server) setPlace(c *api.Call) (any, error) {
	name := c.PathValue("name")
	var change PlaceChange
	if err := c.Decode(&change); err != nil {
		return nil, err
	}
	if change.State != "in" && change.State != "out" {
		return nil, api.Invalid(fmt.Sprintf("state is %q", change.State), "send in or out")
	}
	until, err := s.until(change.For)
	if err != nil {
		return nil, err
	}
	if change.State == "in" && change.For != "" {
		return nil, api.Invalid("a place that is in needs no `for`", "leave it out")
	}
	sites, err := s.concerned(c, change.Site)
	if err != nil {
		return nil, err
	}
	sites = slices.DeleteFunc(sites, func(p origin.PlacesStatus) bool { return !hasPlace(p, name) })
	if len(sites) == 0 {
		return nil, api.NotFound(fmt.Sprintf("no site has a place %q", name), "`karui place` lists them (GET "+api.Prefix+"/places)")
	}
	if change.State == "out" {
		// Where it is the last one, nothing would be left to ask.
		sites = slices.DeleteFunc(sites, func(p origin.PlacesStatus) bool { return last(p, name) })
		if len(sites) == 0 {
			return nil, api.Conflict(fmt.Sprintf("%q is the last place that is in, and the last one is never left", name),
				"let another place in first")
		}
	}
	for _, site := range sites {
		s.clients.switches.SetPlace(site.Site, name, change.State == "out", until)
	}
	s.keepSwitches()
	return s.places(c)
}

// setRetry answers PUT /retry.
func (s *server) setRetry(c *api.Call) (any, error) {
	var change RetryChange
	if err := c.Decode(&change); err != nil {
		return nil, err
	}
	if change.Mode != "off" && change.Mode != "auto" {
		return nil, api.Invalid(fmt.Sprintf("mode is %q", change.Mode), "send off or auto")
	}
	until, err := s.until(change.For)
	if err != nil {
		return nil, err
	}
	mode := change.Mode
	if mode == s.inForce().Retry.Mode {
		if change.For != "" {
			return nil, api.Invalid(fmt.Sprintf("retries are %s by the configuration, so there is nothing that %s could end", mode, change.For),
				"leave `for` out")
		}
		mode = "" // what the configuration says anyway
	}
	sites, err := s.concerned(c, change.Site)
	if err != nil {
		return nil, err
	}
	if change.Site == "" && c.Whole() {
		s.clients.switches.SetRetry("", mode, until)
	} else {
		for _, site := range sites {
			s.clients.switches.SetRetry(site.Site, mode, until)
		}
	}
	s.keepSwitches()
	return s.places(c)
}

// concerned gives the sites that a change is about.
func (s *server) concerned(c *api.Call, site string) ([]origin.PlacesStatus, error) {
	all := s.clients.status()
	if site != "" {
		if err := c.Require(site); err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(p origin.PlacesStatus) bool { return p.Site != site })
		if len(all) == 0 {
			return nil, api.NotFound(fmt.Sprintf("there is no site %q", site), "`karui place` lists them (GET "+api.Prefix+"/places)")
		}
		return all, nil
	}
	return slices.DeleteFunc(all, func(p origin.PlacesStatus) bool { return !c.May(p.Site) }), nil
}

// until reads how long something is to hold; zero means until it is changed.
func (s *server) until(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < minHold || d > maxHold {
		return time.Time{}, api.Invalid(fmt.Sprintf("for is %q", text),
			fmt.Sprintf("send a time between %s and %s, such as 90m or 6h", minHold, maxHold))
	}
	return time.Now().Add(d), nil
}

func hasPlace(p origin.PlacesStatus, name string) bool {
	return slices.ContainsFunc(p.Places, func(pl origin.PlaceStatus) bool { return pl.Name == name })
}

// last tells whether no place but name is in by the operators' word.
func last(p origin.PlacesStatus, name string) bool {
	return !slices.ContainsFunc(p.Places, func(pl origin.PlaceStatus) bool {
		return pl.Name != name && pl.State != origin.StateOut
	})
}

// status looks at the places of all sites, in the order of their ids.
func (c *clients) status() []origin.PlacesStatus {
	c.mu.Lock()
	var all []origin.PlacesStatus
	for _, made := range c.byID {
		all = append(all, made.Status())
	}
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b origin.PlacesStatus) int { return cmp.Compare(a.Site, b.Site) })
	return all
}

// collectPlaces shows the places in metrics. Labels are names of the
// configuration and fixed words.
func collectPlaces(all []origin.PlacesStatus, counter, gauge send) {
	retries := describe("origin_retries_on", "1 while failed requests to a site's origins may be tried once more.", "site")
	second := describe("origin_second_tries_total", "Second tries by where they went.", "site", "to")
	tries := describe("origin_tries_total", "Requests to places by how they ended.", "site", "place", "result")
	state := describe("origin_place_state", "1 for the state that a place is in.", "site", "place", "state")
	inUse := describe("origin_place_in_use", "1 while a place gets new requests.", "site", "place")
	underWay := describe("origin_place_requests", "Requests to a place that are under way.", "site", "place")
	for _, site := range all {
		gauge(retries, truth(site.Retries == "on"), site.Site)
		for to, n := range site.SecondTries {
			counter(second, float64(n), site.Site, to)
		}
		for _, p := range site.Places {
			for result, n := range p.Total {
				counter(tries, float64(n), site.Site, p.Name, result)
			}
			for _, word := range origin.States() {
				gauge(state, truth(p.State == word), site.Site, p.Name, string(word))
			}
			gauge(inUse, truth(p.InUse), site.Site, p.Name)
			gauge(underWay, float64(p.UnderWay), site.Site, p.Name)
		}
	}
}
