package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"karui/proxy/stress"
)

// strainCollector shows the dial, and by what requests are turned away.
type strainCollector struct{ p *Proxy }

var (
	dialLevel  = strainDesc("dial_level", "Level of the dial, 0 for the best-looking; site is empty for all that have none of their own.", "site")
	dialPinned = strainDesc("dial_pinned", "1 while an operator holds the dial.", "site")
	shedding   = strainDesc("shedding", "1 while requests are turned away: group is all, hits, or misses of the site.", "reason", "group", "site")
	shedRatio  = strainDesc("shed_ratio", "Share of a site's requests that operators turn away, 0 to 1.", "site")
	pingUp     = strainDesc("ping_up", "1 while the ping answers 200, 0 while it answers 503: what the watchdog goes by.")
	draining   = strainDesc("draining", "1 while the process ends and new requests are turned away.")
	firstByte  = strainDesc("first_byte_seconds", "Mean time to the first byte that stress.latency is compared with; group is all, hits, or misses of the site.", "group", "site")
)

func strainDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("karui_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (strainCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{dialLevel, dialPinned, shedding, shedRatio, firstByte, pingUp, draining} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c strainCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	truth := map[bool]float64{true: 1}
	_, trouble := c.p.pong(c.p.set.Load())
	gauge(pingUp, truth[trouble == ""])
	gauge(draining, truth[c.p.draining()])
	status := c.p.dial.Status()
	gauge(dialLevel, float64(status.Level), "")
	gauge(dialPinned, truth[status.Mode == "pinned"], "")
	gauge(shedding, truth[c.p.DiskFull()], string(becauseDisk), stress.All, "")
	all := false
	for _, g := range c.p.Latency() {
		group, site := g.Group, ""
		if g.Site {
			group, site = "misses", g.Group
		}
		gauge(firstByte, g.Mean.Seconds(), group, site)
		if g.Shedding {
			all = all || group == stress.All
			gauge(shedding, 1, string(becauseLatency), group, site)
		}
	}
	if !all {
		gauge(shedding, 0, string(becauseLatency), stress.All, "")
	}
	for _, s := range c.p.set.Load().sites {
		id := s.config.ID
		gauge(shedRatio, c.p.shares.Of(id).Percent/100, id)
		if pin, own := status.Sites[id]; own {
			gauge(dialLevel, float64(pin.Level), id)
			gauge(dialPinned, 1, id)
		}
	}
}
