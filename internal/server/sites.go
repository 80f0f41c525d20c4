package server

import (
	"log/slog"
	"reflect"
	"sync"

	"karui/internal/config"
	"karui/proxy"
	"karui/proxy/origin"
)

// clients are the ways to the origins of the sites in force. A reload keeps those
// whose settings are the same, with their connections.
type clients struct {
	// switches are what operators set; they outlive the clients.
	switches *origin.Switches
	log      *slog.Logger
	mu       sync.Mutex // guards byID, which is written by build alone
	byID     map[string]*client
}

type client struct {
	*origin.Places
	options origin.PlacesOptions // less what is the same for all
}

// build makes what the proxy takes from the configuration. The clients that are
// no longer needed are to be closed with the returned function, once the settings
// are in force.
func (c *clients) build(cfg Config) (settings proxy.Settings, closeOld func(), err error) {
	next := map[string]*client{}
	settings = proxy.Settings{
		Edge: cfg.Edge, FirstResponse: cfg.FirstResponse, TTL: cfg.TTL, Limits: cfg.Limits, Convert: cfg.Convert,
		Stress: cfg.Stress, Dial: cfg.Dial, Ping: cfg.Ping, DiskStress: float64(cfg.Disk.Stress), AccessLog: cfg.Log.Access,
	}
	for i, site := range cfg.Sites {
		options := origin.PlacesOptions{
			Site: site.ID, Config: cfg.Origin, Retry: cfg.Retry, Places: site.Origins,
			Strip: []string{cfg.Edge.RoutingHeader, proxy.KeyHeader},
		}
		made := c.byID[site.ID]
		if made == nil || !reflect.DeepEqual(made.options, options) {
			whole := options
			whole.Switches, whole.Log = c.switches, c.log
			fresh, err := origin.NewPlaces(whole)
			if err != nil {
				for id, m := range next {
					if c.byID[id] != m {
						m.Close()
					}
				}
				return proxy.Settings{}, nil, config.Invalid(config.Key("sites", i, "origins"), nil, "places that can be used: "+err.Error())
			}
			made = &client{Places: fresh, options: options}
		}
		next[site.ID] = made
		settings.Sites = append(settings.Sites, proxy.Site{Config: site, Origin: made})
	}
	old := c.byID
	c.mu.Lock()
	c.byID = next
	c.mu.Unlock()
	return settings, func() {
		for id, m := range old {
			if next[id] != m {
				m.Close()
			}
		}
	}, nil
}

// find gives the way to the origin of a site, nil for a site that there is not.
func (c *clients) find(site string) proxy.Fetcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.byID[site]; made != nil {
		return made
	}
	return nil
}

func (c *clients) close() {
	for _, m := range c.byID {
		m.Close()
	}
}
