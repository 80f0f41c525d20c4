package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"karui/proxy/origin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient are limits that a busy machine never meets by accident.
var patient = origin.Config{Deadline: time.Minute, Connect: time.Minute, Idle: time.Minute, Total: 2 * time.Minute}

// only gives the one cell of a fault and level.
func only(t *testing.T, r Report, f Fault, level int) Cell {
	t.Helper()
	i := slices.IndexFunc(r.Cells, func(c Cell) bool { return c.Fault == f && c.Level == level })
	if i < 0 {
		t.Fatalf("no cell for %s at level %d", f, level)
	}
	return r.Cells[i]
}

// One of two places is dead in each way that shows at once: from level 2 on,
// nobody notices, and little is added.
func TestOneOfTwoPlacesDead(t *testing.T) {
	faults := []Fault{Refuse, TLSError, Reset, Error503, Error429, CutEarly}
	calls := 0
	report, err := Run(t.Context(), Options{
		Faults: faults, Rates: []float64{1}, Requests: 200, PerSecond: 400, AtOnce: 4, limits: patient,
	}, func(done, all int) {
		if calls++; done != calls || all != 24 {
			t.Errorf("%d of %d after %d", done, all, calls)
		}
	})
	if err != nil || len(report.Cells) != 24 || calls != 24 {
		t.Fatalf("%d cells, %d calls, %v", len(report.Cells), calls, err)
	}
	for _, f := range faults {
		for _, level := range []int{2, 3} {
			// Tries that were under way when the place was left add a few.
			if c := only(t, report, f, level); c.Good != 1 || c.GoodAtEdge != 1 || c.Added > 0.3 || c.Added <= 0 || c.Retries != "on" {
				t.Errorf("%+v", c)
			}
		}
		c := only(t, report, f, 0)
		// The edge asks the dead place once more for what failed.
		if c.Good < 0.3 || c.Good > 0.7 || c.GoodAtEdge != c.Good || c.Added < 0.3 || c.Added > 0.7 || c.Retries != "off" {
			t.Errorf("%+v", c)
		}
	}
}

func TestPlaceThatHangsIsLeft(t *testing.T) {
	report, err := Run(t.Context(), Options{
		Faults: []Fault{Hang}, Rates: []float64{1}, Levels: []int{2}, Requests: 40, PerSecond: 100,
		limits: origin.Config{Deadline: 4 * time.Second, Connect: 4 * time.Second, Idle: time.Minute, Total: time.Minute},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := report.Cells[0]; c.Good != 1 || time.Duration(c.P99) < 2*time.Second || c.Added < 0.2 {
		t.Errorf("%+v", c)
	}
}

func TestWhatNoRetryMends(t *testing.T) {
	report, err := Run(t.Context(), Options{
		Faults: []Fault{Error500, CutLate}, Rates: []float64{0.5, 1}, Levels: []int{2}, Requests: 200, PerSecond: 1000, limits: patient, Both: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Cells {
		if c.Rate == 1 && (c.Good != 0 || c.GoodAtEdge != 0) || c.Rate < 1 && (c.Good < 0.3 || c.Good > 0.7) {
			t.Errorf("%+v", c)
		}
		// Half an image cannot be asked for again.
		if c.Fault == CutLate && (c.Added != 0 || c.Good != c.GoodAtEdge) {
			t.Errorf("%+v", c)
		}
		if c.Fault == Error500 && (math.Abs(c.Added-(1-c.Good)) > 1e-9 || c.Rate < 1 && c.GoodAtEdge <= c.Good) {
			t.Errorf("%+v", c)
		}
	}
}

func TestDrillEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	report, err := Run(ctx, Options{Faults: []Fault{Hang, Reset}, Requests: 20, PerSecond: 5000, AtOnce: 2, limits: patient}, func(done, _ int) {
		if done == 1 { // of the cells that hang at level 0
			cancel()
		}
	})
	cancel()
	if !errors.Is(err, context.Canceled) || len(report.Cells) >= 32 {
		t.Errorf("%d cells, %v", len(report.Cells), err)
	}
	if _, err := Run(ctx, Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for _, o := range []Options{
		{Faults: []Fault{"smoke"}}, {Rates: []float64{0}}, {Rates: []float64{1.1}}, {Levels: []int{4}}, {Requests: -1}, {Requests: 1e9}, {PerSecond: 1e6}, {AtOnce: 1000},
	} {
		if r, err := Run(t.Context(), o, nil); err == nil || len(r.Cells) > 0 {
			t.Errorf("%+v was drilled: %v", o, err)
		}
	}
}

func TestPrintedReport(t *testing.T) {
	r := Report{Deadline: Millis(2 * time.Second), Cells: []Cell{
		{Fault: Refuse, Rate: 0.01, Level: 2, Requests: 100000, Good: 0.99999, GoodAtEdge: 1, Added: 0.00001, P50: Millis(1200 * time.Microsecond), P99: Millis(time.Second), Retries: "on"},
		{Fault: Hang, Rate: 1, Level: 0, Requests: 10, Retries: "off"},
	}}
	var b bytes.Buffer
	if err := r.Print(&b, true); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"refuse │   1 % │     2 │ 99.99 %", "100.00 %", "+0.1 %", "1.2 ms", "1000.0 ms", "0.00 %", "one of two places misbehaves", "Limit to the first byte: 2s"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("without %q:\n%s", part, &b)
		}
	}
	j, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(j), `"p50_ms":1.2,"p99_ms":1000.0,"retries":"on"`) {
		t.Errorf("%s, %v", j, err)
	}
}

func TestPlan(t *testing.T) {
	site := func(level int, mode string, urls ...int) Site {
		s := Site{ID: "shop", Deadline: 8 * time.Second, Retry: origin.RetryConfig{Mode: mode, Level: level}}
		for _, n := range urls {
			s.Places = append(s.Places, origin.PlaceConfig{Name: "p", URLs: make([]string, n)})
		}
		return s
	}
	for _, tc := range []struct {
		site             Site
		fault            Fault
		next, sick, then string
		first            time.Duration
	}{
		{site(2, "auto", 1, 1), Refuse, "another place", "another place", "address out of use after 3 in a row, until a heartbeat succeeds", 4 * time.Second},
		{site(2, "auto", 1, 1), Hang, "another place", "another place", "from 10 % timeouts on it gets 2 % of new requests", 4 * time.Second},
		{site(2, "auto", 2, 1), Hang, "same place", "another place", "from 10 % timeouts on it gets 2 % of new requests", 4 * time.Second},
		{site(3, "auto", 2, 1), Hang, "another place", "another place", "from 10 % timeouts on it gets 2 % of new requests", 4 * time.Second},
		{site(2, "auto", 2), Error429, "stop", "stop", "asked on", 4 * time.Second},
		{site(2, "auto", 1, 1), Error500, "stop", "stop", "asked on", 4 * time.Second},
		{site(2, "auto", 1), Hang, "stop", "stop", "asked on: it is the only address", 8 * time.Second},
		{site(0, "auto", 1, 1), Refuse, "stop", "stop", "asked on: level 0 leaves nobody", 8 * time.Second},
		{site(2, "off", 1, 1), Refuse, "stop", "stop", "address out of use after 3 in a row, until a heartbeat succeeds", 8 * time.Second},
	} {
		steps := Plan([]Site{tc.site})
		if len(steps) != len(Faults())*len(tc.site.Places) {
			t.Fatalf("%d steps", len(steps))
		}
		i := slices.IndexFunc(steps, func(s Step) bool { return s.Fault == tc.fault })
		if s := steps[i]; s.Next != tc.next || s.WhileSick != tc.sick || s.Then != tc.then || time.Duration(s.FirstTry) != tc.first || s.Viewer == "" {
			t.Errorf("%+v: %+v", tc, s)
		}
	}
	var b bytes.Buffer
	if err := PrintPlan(&b, Plan([]Site{site(2, "auto", 1, 1)}), true); err != nil || !strings.Contains(b.String(), "connection refused") || !strings.Contains(b.String(), "4s") {
		t.Errorf("%v\n%s", err, &b)
	}
}
