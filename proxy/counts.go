package proxy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/api"
)

// counts are the counters of one site ("" for requests of none). Each is looked
// up once in its metric, so that a request hashes no labels; they live on over
// reloads.
type counts struct {
	metrics *metrics
	site    string
	saved   prometheus.Counter

	mu        sync.RWMutex
	requests  map[outcome]prometheus.Counter
	variants  map[header.Format]prometheus.Counter
	decisions map[decided]prometheus.Counter
}

// decided is what was decided about one format.
type decided struct {
	format header.Format
	code   convert.Code
}

// of gives the counters of a site.
func (m *metrics) of(site string) *counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.sites[site]
	if c == nil {
		c = &counts{
			metrics: m, site: site, saved: m.saved.WithLabelValues(site), requests: map[outcome]prometheus.Counter{},
			variants: map[header.Format]prometheus.Counter{}, decisions: map[decided]prometheus.Counter{},
		}
		m.sites[site] = c
	}
	return c
}

// counter gives one of the counters, made at its first use: most of the words
// never happen to most sites.
func counter[K comparable](c *counts, in map[K]prometheus.Counter, k K, make func() prometheus.Counter) prometheus.Counter {
	c.mu.RLock()
	found := in[k]
	c.mu.RUnlock()
	if found != nil {
		return found
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if in[k] == nil {
		in[k] = make()
	}
	return in[k]
}

func (c *counts) answered(did outcome) {
	counter(c, c.requests, did, func() prometheus.Counter {
		return c.metrics.requests.WithLabelValues(c.site, string(did))
	}).Inc()
}

// sent counts an answer with a variant.
func (c *counts) sent(f header.Format, saved int64) {
	counter(c, c.variants, f, func() prometheus.Counter {
		return c.metrics.variants.WithLabelValues(c.site, f.String())
	}).Inc()
	c.saved.Add(float64(saved))
}

// decided counts what was decided about a format.
func (c *counts) decided(f header.Format, code convert.Code) {
	counter(c, c.decisions, decided{f, code}, func() prometheus.Counter {
		return c.metrics.conversions.WithLabelValues(c.site, f.String(), string(code))
	}).Inc()
}

// stats reads the counters.
func (c *counts) stats() api.SiteStats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := api.SiteStats{
		ID: c.site, SavedBytes: value(c.saved),
		Requests: map[string]uint64{}, Variants: map[string]uint64{}, Decisions: map[string]map[string]uint64{},
	}
	for did, n := range c.requests {
		s.Requests[string(did)] = value(n)
	}
	for f, n := range c.variants {
		s.Variants[f.String()] = value(n)
	}
	for d, n := range c.decisions {
		codes := s.Decisions[d.format.String()]
		if codes == nil {
			codes = map[string]uint64{}
			s.Decisions[d.format.String()] = codes
		}
		codes[string(d.code)] = value(n)
	}
	return s
}

// value reads a counter.
func value(c prometheus.Counter) uint64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		return 0 // a counter of this library cannot fail to write itself
	}
	return uint64(m.GetCounter().GetValue())
}

// Sites gives the counts of the sites in force since the start, in their order.
func (p *Proxy) Sites() []api.SiteStats {
	sites := p.set.Load().sites
	all := make([]api.SiteStats, len(sites))
	for i, s := range sites {
		all[i] = s.counts.stats()
	}
	return all
}

// Unrouted gives the counts of requests that belong to no site, with an empty id.
func (p *Proxy) Unrouted() api.SiteStats { return p.metrics.none.stats() }
