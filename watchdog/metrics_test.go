package watchdog

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"karui/internal/manual"
	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/store"
)

// emptyOutbox holds nothing.
type emptyOutbox struct{}

func (emptyOutbox) Enqueue(context.Context, event.Event) error { return nil }
func (emptyOutbox) Run(context.Context)                        {}
func (emptyOutbox) Flush(context.Context) error                { return nil }
func (emptyOutbox) Waiting() (int, time.Time, error)           { return 0, time.Time{}, nil }
func (emptyOutbox) Try(context.Context, event.Event) error     { return nil }

// Every metric of the watchdog is in the documentation, with its labels, and
// nothing else is. KARUI_UPDATE_DOCS=1 writes the table anew.
func TestMetricsAreDocumented(t *testing.T) {
	m := newMetrics()
	m.outbox(emptyOutbox{})
	m.configured(time.Minute)
	m.build.WithLabelValues("v1", "go1").Set(1)
	m.probe(event.Probe{OK: true})
	m.round("shop", Result{Round: store.Round{Verdict: machine.VerdictUp}, Health: machine.Up}, time.Second)
	m.swap("shop", event.OrderDirect, nil)
	m.expect("shop")
	gathered, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| metric | kind | labels | meaning |\n|---|---|---|---|\n")
	n := 0
	for _, f := range gathered {
		if !strings.HasPrefix(f.GetName(), "karui_watchdog_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
		n++
	}
	// A metric that was registered and has no value here would be left out.
	if n != 20 {
		t.Errorf("%d metrics; give each that is new a value above, and count it", n)
	}
	err = manual.Section(
		"../docs/metrics.md", "<!-- the table is written by KARUI_UPDATE_DOCS=1 go test ./watchdog -run MetricsAreDocumented -->",
		"<!-- end of the watchdog's table -->", table.String(), os.Getenv(manual.UpdateVariable) != "",
	)
	if err != nil {
		t.Error(err)
	}
}
