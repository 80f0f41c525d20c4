package watchdog

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"karui/watchdog/event"
	"karui/watchdog/machine"
)

// metrics are the watchdog's own registry. The only label that grows is site,
// and the configuration bounds that.
type metrics struct {
	registry    *prometheus.Registry
	up          *prometheus.GaugeVec
	degraded    *prometheus.GaugeVec
	orderKnown  *prometheus.GaugeVec
	rounds      *prometheus.CounterVec
	lastRound   *prometheus.GaugeVec
	duration    prometheus.Histogram
	pings       *prometheus.CounterVec
	swaps       *prometheus.CounterVec
	events      *prometheus.CounterVec
	deploying   prometheus.Gauge
	stateErrors prometheus.Counter
	skipped     prometheus.Counter
	panics      prometheus.Counter
	heartbeats  *prometheus.CounterVec
	interval    prometheus.Gauge
	build       *prometheus.GaugeVec
	configGood  prometheus.Gauge
	configAt    prometheus.Gauge
}

func newMetrics() *metrics {
	name := func(n, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "karui_watchdog", Name: n, Help: help}
	}
	gauge := func(n, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts(name(n, help)), labels)
	}
	counters := func(n, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(name(n, help)), labels)
	}
	counter := func(n, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts(name(n, help)))
	}
	m := &metrics{
		registry:   prometheus.NewRegistry(),
		up:         gauge("up", "1 if the proxy was up in the last conclusive round, 0 if it was down.", "site"),
		degraded:   gauge("degraded", "1 while the true origin comes first in the origin group.", "site"),
		orderKnown: gauge("order_read", "1 if the order could be read in the last conclusive round.", "site"),
		rounds:     counters("rounds_total", "Rounds by verdict.", "site", "verdict"),
		lastRound:  gauge("last_round_timestamp_seconds", "When the last round ended.", "site"),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "karui_watchdog", Name: "round_duration_seconds", Help: "How long rounds take.",
			Buckets: []float64{.1, .5, 1, 5, 10, 20, 30, 40, 60, 120, 300, 600},
		}),
		pings:       counters("pings_total", "Pings by result: ok, or the kind of failure.", "result"),
		swaps:       counters("swaps_total", "Swaps by direction and outcome: ok, or the kind of error.", "site", "to", "outcome"),
		events:      counters("events_total", "Events told to operators, by site and kind.", "site", "kind"),
		deploying:   prometheus.NewGauge(prometheus.GaugeOpts(name("deploying", "Changes that have not reached the whole edge yet."))),
		stateErrors: counter("state_errors_total", "State files that could not be written."),
		skipped:     counter("rounds_skipped_total", "Rounds that could not be carried out, because another process was acting or for an error."),
		panics:      counter("panics_total", "Mistakes in the program that a round survived."),
		heartbeats:  counters("heartbeats_total", "Requests for heartbeat_url: ok or failed.", "outcome"),
		interval:    prometheus.NewGauge(prometheus.GaugeOpts(name("interval_seconds", "What lies between two rounds of a site: interval."))),
		build:       gauge("build_info", "1; the labels are the versions of karui-watchdog and of the Go it was built with.", "version", "go"),
		configGood:  prometheus.NewGauge(prometheus.GaugeOpts(name("config_last_reload_successful", "1 while the configuration in force is the one that was read last."))),
		configAt:    prometheus.NewGauge(prometheus.GaugeOpts(name("config_last_reload_success_timestamp_seconds", "When the configuration in force was read."))),
	}
	for _, outcome := range []string{"ok", "failed"} {
		m.heartbeats.WithLabelValues(outcome)
	}
	m.registry.MustRegister(
		m.up, m.degraded, m.orderKnown, m.rounds, m.lastRound, m.duration, m.pings, m.swaps, m.events, m.deploying,
		m.stateErrors, m.skipped, m.panics, m.heartbeats, m.interval, m.build, m.configGood, m.configAt,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// outbox shows what waits there.
func (m *metrics) outbox(o event.Outbox) {
	waiting := func() (float64, float64) {
		n, oldest, err := o.Waiting()
		if err != nil {
			return -1, 0
		}
		if oldest.IsZero() {
			return float64(n), 0
		}
		return float64(n), max(time.Since(oldest).Seconds(), 0)
	}
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "karui_watchdog", Name: "outbox_waiting", Help: "Mails that could not be sent yet; -1 if the outbox cannot be read.",
		}, func() float64 { n, _ := waiting(); return n }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "karui_watchdog", Name: "outbox_oldest_seconds", Help: "How long the oldest of them has waited.",
		}, func() float64 { _, age := waiting(); return age }),
	)
}

// expect begins the counters of a site at 0: of one that begins at 1, Prometheus does
// not see the increase.
func (m *metrics) expect(site string) {
	for _, kind := range event.Kinds() {
		m.events.WithLabelValues(site, string(kind))
	}
}

// configured notes a configuration that came into force.
func (m *metrics) configured(interval time.Duration) {
	m.interval.Set(interval.Seconds())
	m.configGood.Set(1)
	m.configAt.SetToCurrentTime()
}

func (m *metrics) probe(p event.Probe) {
	result := p.Kind
	if p.OK {
		result = "ok"
	}
	m.pings.WithLabelValues(result).Inc()
}

func (m *metrics) round(site string, r Result, took time.Duration) {
	m.duration.Observe(took.Seconds())
	m.lastRound.WithLabelValues(site).SetToCurrentTime()
	if r.Round.Verdict == "" {
		m.skipped.Inc()
		return
	}
	m.rounds.WithLabelValues(site, string(r.Round.Verdict)).Inc()
	if r.Round.Verdict == machine.Inconclusive {
		return
	}
	m.up.WithLabelValues(site).Set(flag(r.Health == machine.Up))
	m.degraded.WithLabelValues(site).Set(flag(r.Order == event.OrderDirect))
	m.orderKnown.WithLabelValues(site).Set(flag(r.Round.OrderError == ""))
}

func (m *metrics) swap(site string, to event.Order, err error) {
	outcome := "ok"
	if err != nil {
		outcome = failureKind(err)
	}
	m.swaps.WithLabelValues(site, string(to), outcome).Inc()
}

// forget drops a site that the configuration no longer has.
func (m *metrics) forget(site string) {
	for _, v := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.up, m.degraded, m.orderKnown, m.rounds, m.lastRound, m.swaps, m.events} {
		v.DeletePartialMatch(prometheus.Labels{"site": site})
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
