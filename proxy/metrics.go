package proxy

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karui/convert/header"
	"karui/proxy/origin"
)

// metrics are the proxy's own. Labels are site ids of the configuration and fixed
// words, never anything that a viewer or an origin sends.
type metrics struct {
	requests    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	firstByte   *prometheus.HistogramVec
	making      *prometheus.HistogramVec
	sent        prometheus.Counter
	saved       *prometheus.CounterVec
	fetches     *prometheus.CounterVec
	conversions *prometheus.CounterVec
	active      prometheus.Gauge
	pings       *prometheus.CounterVec
	variants    *prometheus.CounterVec
	moves       *prometheus.CounterVec
	remade      prometheus.Counter
	unwaited    prometheus.Counter
	purges      *prometheus.CounterVec

	// times are the children of duration and firstByte that were in use.
	times sync.Map // outcome to *observers
	mu    sync.Mutex
	sites map[string]*counts
	// none counts requests that belong to no site.
	none *counts
}

func newMetrics(registry prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "karui", Name: name, Help: help}, labels)
	}
	m := &metrics{
		sites:    map[string]*counts{},
		variants: counter("variants_sent_total", "Answers with a variant by site and format.", "site", "format"),
		requests: counter("requests_total", "Requests by site and by what was answered.", "site", "outcome"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karui", Name: "request_duration_seconds",
			Help:    "Time from a request's head to the end of its answer, by what was answered.",
			Buckets: []float64{.001, .005, .025, .1, .3, 1, 3, 10, 60},
		}, []string{"outcome"}),
		firstByte: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karui", Name: "response_first_byte_seconds",
			Help:    "Time from a request's head to the first byte of its answer, by what was answered.",
			Buckets: []float64{.001, .005, .025, .1, .3, 1, 3, 8},
		}, []string{"outcome"}),
		making: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karui", Name: "conversion_seconds",
			Help:    "Time from wanting a variant to having it, waiting for a worker included, by format.",
			Buckets: []float64{.03, .1, .3, 1, 3, 10, 30},
		}, []string{"format"}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "karui", Name: "sent_bytes_total", Help: "Bytes of bodies sent to viewers.",
		}),
		saved:       counter("saved_bytes_total", "Bytes that variants saved viewers, against the originals.", "site"),
		fetches:     counter("origin_fetches_total", "Requests to origins by site and result: a class of status or a kind of failure.", "site", "result"),
		conversions: counter("conversions_total", "Decisions about originals by site, format and code.", "site", "format", "code"),
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "karui", Name: "requests_in_flight", Help: "Requests being answered.",
		}),
		pings: counter("ping_conversions_total", "Conversions behind the ping by result.", "result"),
		moves: counter("dial_moves_total", "Moves of the dial by cause.", "cause"),
		remade: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "karui", Name: "variants_remade_total", Help: "Variants of a dial level above 0 that were begun to be made again at level 0.",
		}),
	}
	m.unwaited = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "karui", Name: "unwaited_total",
		Help: "Viewers who got the original at once, since first_response.wait would have been in vain.",
	})
	m.purges = counter("purges_total", "Prefixes that were purged, by site.", "site")
	registry.MustRegister(m.purges, m.unwaited, m.requests, m.duration, m.sent, m.saved, m.fetches, m.conversions, m.active, m.pings, m.variants, m.moves, m.remade, m.firstByte, m.making)
	m.none = m.of("")
	return m
}

func (m *metrics) answered(x *exchange, took time.Duration) {
	c := m.none
	if x.site != nil {
		c = x.site.counts
	}
	c.answered(x.did)
	if x.variant != header.Unknown && x.bytes > 0 {
		c.sent(x.variant, x.saved)
	}
	o := m.observers(x.did)
	o.duration.Observe(took.Seconds())
	if x.begun {
		o.firstByte.Observe(x.firstByte.Seconds())
	}
	m.sent.Add(float64(x.bytes))
}

// observers are the histograms of one outcome.
type observers struct{ duration, firstByte prometheus.Observer }

func (m *metrics) observers(did outcome) *observers {
	if known, ok := m.times.Load(did); ok {
		return known.(*observers) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	o := &observers{m.duration.WithLabelValues(string(did)), m.firstByte.WithLabelValues(string(did))}
	m.times.Store(did, o)
	return o
}

func (m *metrics) fetched(site string, response *origin.Response, err error) {
	result := "error"
	switch {
	case err == nil:
		result = strconv.Itoa(response.Status/100) + "xx"
	case origin.KindOf(err) != 0:
		result = origin.KindOf(err).String()
	}
	m.fetches.WithLabelValues(site, result).Inc()
}
