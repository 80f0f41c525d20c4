package proxy

import (
	"time"

	"karui/convert"
	"karui/proxy/rules"
	"karui/proxy/stress"
)

// Site is one site of the configuration with the way to its origin.
type Site struct {
	Config SiteConfig
	Origin Fetcher
}

// Settings is what the proxy takes from karui.yaml. All of it can be changed
// while the proxy runs.
type Settings struct {
	Edge          EdgeConfig
	FirstResponse FirstResponseConfig
	TTL           TTLConfig
	Stress        StressConfig
	Dial          DialConfig
	Ping          PingConfig
	// DiskStress is the used share of every volume, in percent, from which on all
	// requests are turned away; 0 for never.
	DiskStress float64
	Limits     LimitsConfig
	Convert    convert.Config
	Sites      []Site
	// AccessLog writes a line for each request.
	AccessLog bool
}

// settings is Settings in the form that requests use; it never changes.
type settings struct {
	edge EdgeConfig
	wait time.Duration
	ttl  rules.TTL
	// stressAfter is how long everything must have been turned away for the ping to fail.
	stressAfter time.Duration
	diskStress  float64
	limits      LimitsConfig
	convert     convert.Config
	accessLog   bool
	router      *router
	secrets     secrets
	sites       []*site
}

func newSettings(s Settings, m *metrics, latency *stress.Latency) *settings {
	sites := make([]*site, len(s.Sites))
	for i := range s.Sites {
		sites[i] = newSite(s.Sites[i].Config, s.Sites[i].Origin, m.of(s.Sites[i].Config.ID))
		sites[i].misses = latency.Misses(s.Sites[i].Config.ID)
	}
	return &settings{
		edge: s.Edge, wait: s.FirstResponse.Wait, ttl: rules.TTL(s.TTL), limits: s.Limits, convert: s.Convert,
		accessLog: s.AccessLog, router: newRouter(s.Edge.RoutingHeader, sites), secrets: newSecrets(s.Edge.Secrets),
		sites: sites, stressAfter: s.Ping.StressAfter, diskStress: s.DiskStress,
	}
}
