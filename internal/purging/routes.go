package purging

import (
	"fmt"
	"net/http"
	"strconv"

	"karui/internal/api"
)

// maxBody bounds a request: its prefixes as they are typed, which Prefix may make
// shorter (a whole URL) or longer.
const maxBody = 2 << 20

// Routes are the API's routes about purges.
func (s *Service) Routes() []api.Route {
	return []api.Route{
		{Method: http.MethodGet, Pattern: "/purge", Right: api.Purge, Handle: s.list},
		{Method: http.MethodPost, Pattern: "/purge", Right: api.Purge, MaxBody: maxBody, Handle: s.purge},
		{Method: http.MethodGet, Pattern: "/purge/{id}", Right: api.Purge, Handle: s.show},
	}
}

// list answers with the last purges, as many as the parameter limit says.
func (s *Service) list(c *api.Call) (any, error) {
	limit := 100
	if text := c.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxRecords {
			return nil, api.Invalid(fmt.Sprintf("limit is %s", quote(text)), fmt.Sprintf("send a number from 1 to %d", maxRecords))
		}
		limit = n
	}
	return s.List(c.May, limit), nil
}

func (s *Service) purge(c *api.Call) (any, error) {
	var q Request
	if err := c.Decode(&q); err != nil {
		return nil, err
	}
	if q.Site == "" {
		return nil, api.Invalid("there is no site", `send one, such as "site": "shop"`)
	}
	// Before anything that tells whether there is such a site.
	if err := c.Require(q.Site); err != nil {
		return nil, err
	}
	p, err := s.Purge(c.Context(), q, c.Caller)
	if err != nil {
		return nil, err
	}
	s.log.Info("purge", "purge", p.ID, "site", p.Site, "prefixes", p.brief().Prefixes, "count", p.Count, "exact", p.Exact, "edge", p.Edge.State, "token", c.Caller)
	return p, nil
}

func (s *Service) show(c *api.Call) (any, error) {
	id := c.PathValue("id")
	p, known := s.Find(id)
	// A token for other sites cannot tell it from one that there is not.
	if !known || !c.May(p.Site) {
		return nil, api.NotFound(fmt.Sprintf("there is no purge %q that this token may see", shorten(id)), "`karui purge --list` lists them; old ones are forgotten")
	}
	return p, nil
}
