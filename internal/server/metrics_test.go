package server

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"karui/cache"
	"karui/convert"
	"karui/internal/origintest"
	"karui/internal/purging"
	"karui/proxy/backlog"
	"karui/proxy/flight"
	"karui/proxy/origin"
	"karui/proxy/success"
)

// recorder is a registry that remembers what was registered.
type recorder struct {
	*prometheus.Registry
	all []prometheus.Collector
}

func (r *recorder) Register(c prometheus.Collector) error {
	r.all = append(r.all, c)
	return r.Registry.Register(c)
}

func (r *recorder) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// family is one line of docs/metrics.md.
type family struct{ name, kind, labels, help string }

// descText is how client_golang writes a Desc.
var descText = regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: "(.*?)"(?:, unit: ".*")?, constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

func familyOf(t *testing.T, d *prometheus.Desc, kind string) family {
	t.Helper()
	m := descText.FindStringSubmatch(d.String())
	if m == nil {
		t.Fatalf("%s is not as it was", d)
	}
	return family{name: m[1], help: m[2], labels: strings.ReplaceAll(m[3], ",", ", "), kind: kind}
}

// full is a collector of which every family has a value.
func full(places func() []origin.PlacesStatus) collector {
	return collector{
		cache: func() cache.Stats { return cache.Stats{Volumes: []cache.VolumeStats{{}}} },
		pool: func() convert.Stats {
			return convert.Stats{
				Ended:  map[convert.Cause]uint64{convert.CauseCrash: 1},
				Blamed: map[convert.Cause]uint64{convert.CauseCrash: 1}, Quarantined: map[convert.Cause]int{convert.CauseCrash: 1},
			}
		},
		flights: func() flight.Stats { return flight.Stats{} },
		self:    func() self { return self{} },
		edge:    func() map[string]purging.Stats { return map[string]purging.Stats{"shop": {}} },
		backlog: func() (backlog.Status, []string) {
			return backlog.Open(backlog.Options{}).Status(0), []string{"shop"}
		},
		places: func() []origin.PlacesStatus {
			all := places()
			for i := range all {
				for j := range all[i].Places {
					all[i].Places[j].Total = map[string]int64{"answered": 1}
				}
			}
			return all
		},
		success: func() success.Snapshot {
			l := success.New(nil)
			l.Good("shop")
			return l.Snapshot()
		},
	}
}

// kinds tells what a metric is by what it writes.
func kindOf(t *testing.T, m prometheus.Metric) string {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	switch {
	case out.Counter != nil:
		return "counter"
	case out.Gauge != nil:
		return "gauge"
	}
	return "histogram"
}

// families lists all of karui's own.
func families(t *testing.T) []family {
	t.Helper()
	r := &recorder{Registry: prometheus.NewRegistry()}
	s := &server{
		config: testConfig(t, origintest.New(t)), level: &slog.LevelVar{}, log: slog.New(slog.DiscardHandler),
		registry: r.Registry, register: r,
	}
	if err := s.build(); err != nil {
		t.Fatal(err)
	}
	defer s.teardown()
	var all []family
	for _, c := range r.all {
		if _, ok := c.(collector); ok {
			out := make(chan prometheus.Metric, 1000)
			full(s.clients.status).Collect(out)
			close(out)
			for m := range out {
				all = append(all, familyOf(t, m.Desc(), kindOf(t, m)))
			}
			continue
		}
		kind := "gauge"
		switch c.(type) {
		case *prometheus.CounterVec:
			kind = "counter"
		case *prometheus.HistogramVec, prometheus.Histogram:
			kind = "histogram"
		case prometheus.Gauge: // a gauge is a counter, too, by its methods
		case prometheus.Counter:
			kind = "counter"
		}
		descs := make(chan *prometheus.Desc, 1000)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			if strings.Contains(d.String(), `"karui_`) {
				all = append(all, familyOf(t, d, kind))
			}
		}
	}
	slices.SortFunc(all, func(a, b family) int { return strings.Compare(a.name, b.name) })
	return slices.Compact(all)
}

// Every metric is in the documentation, with its labels, and nothing else is.
// KARUI_UPDATE_DOCS=1 writes the table anew.
func TestMetricsAreDocumented(t *testing.T) {
	const begin, end = "<!-- the table is written by KARUI_UPDATE_DOCS=1 go test ./internal/server -run MetricsAreDocumented -->\n", "<!-- end of the table -->\n"
	var table strings.Builder
	table.WriteString("\n| metric | kind | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range families(t) {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.name, f.kind, f.labels, f.help)
	}
	table.WriteString("\n")
	file := filepath.Join("..", "..", "docs", "metrics.md")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	had, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no room for the table between %q and %q", file, begin, end)
	}
	if had == table.String() {
		return
	}
	if os.Getenv("KARUI_UPDATE_DOCS") == "" {
		t.Fatalf("%s does not have the metrics as they are; write it anew with KARUI_UPDATE_DOCS=1. They are:\n%s", file, table.String())
	}
	if err := os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
