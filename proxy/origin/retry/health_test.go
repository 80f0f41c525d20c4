package retry

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestWindowSumsTheLastSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type event struct {
			at   int64
			fate Fate
		}
		var w Window
		var all []event
		now := rapid.Int64Range(-100, 1e9).Draw(t, "start")
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			now += rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 30, 59, 60, 61, 1000}).Draw(t, "step")
			e := event{now, rapid.SampledFrom([]Fate{Answered, Unavailable, TimedOut, Overloaded, Void}).Draw(t, "fate")}
			w.Add(e.at, e.fate)
			all = append(all, e)
		}
		now += rapid.Int64Range(0, 70).Draw(t, "later")
		span := rapid.IntRange(1, Minute).Draw(t, "span")
		var want Counts
		for _, e := range all {
			if e.fate != Void && now-e.at < int64(span) {
				want.count(e.fate)
			}
		}
		if got := w.Sum(now, span); got != want {
			t.Fatalf("the last %d s: %+v, want %+v", span, got, want)
		}
	})
}

func TestAClockThatGoesBackLosesNothing(t *testing.T) {
	var w Window
	w.Add(100, TimedOut)
	w.Add(40, Answered)
	if got := w.Sum(50, Minute); got.Tries != 2 || got.TimedOut != 1 {
		t.Errorf("%+v", got)
	}
}

func TestAddressGoesOutAfterThreeInARow(t *testing.T) {
	h := NewHealth(2, 2)
	steps := []struct {
		address   int
		fate      Fate
		out, back bool
	}{
		{0, Unavailable, false, false},
		{0, Unavailable, false, false},
		{1, Answered, false, false}, // another address says nothing about this one
		{0, Overloaded, false, false},
		{0, Unavailable, false, false},
		{0, TimedOut, false, false}, // neither proves nor denies
		{0, Void, false, false},
		{0, Unavailable, false, false},
		{0, Unavailable, true, false},
		{0, Unavailable, false, false},
		{1, Unavailable, false, false},
		{1, Unavailable, false, false},
		{1, Unavailable, true, false},
		{0, Answered, false, true},
		{0, Answered, false, false},
	}
	for i, s := range steps {
		out, back := h.Record(int64(i), s.address, s.fate)
		if out != s.out || back != s.back {
			t.Fatalf("step %d: out %t, back %t", i, out, back)
		}
		if whole := i == 12; h.Out() != whole {
			t.Fatalf("step %d: the place is out: %t", i, h.Out())
		}
	}
	if h.AddressOut(0) || !h.AddressOut(1) {
		t.Error("the wrong address is out")
	}
	if !h.Back(1) || h.Back(1) || h.AddressOut(1) {
		t.Error("a heartbeat did not bring it back")
	}
}

func TestPlaceThatAnswersHeartbeatsAloneStaysSick(t *testing.T) {
	h := NewHealth(1, 2)
	for range 10 {
		h.Record(5, 0, Unavailable)
	}
	if !h.Back(0) || h.Out() || !h.Sick(6) || h.Sick(66) {
		t.Errorf("out %t, sick %t, a minute later %t", h.Out(), h.Sick(6), h.Sick(66))
	}
}

func TestSick(t *testing.T) {
	for _, tc := range []struct {
		name            string
		level           int
		old, fresh      int // answers, 30 s and 1 s ago
		oldOut, freshTO int // timeouts, 30 s and 1 s ago
		want            bool
	}{
		{"nothing known", 3, 0, 0, 0, 0, false},
		{"one timeout of one", 2, 0, 0, 0, 1, false},
		{"one timeout of one, leaving at once", 3, 0, 0, 0, 1, true},
		{"two timeouts of twenty", 2, 18, 0, 2, 0, true},
		{"two timeouts of twenty-one", 2, 19, 0, 2, 0, false},
		{"two timeouts of twenty at level 1", 1, 18, 0, 2, 0, false},
		{"two timeouts of twenty at level 0", 0, 18, 0, 2, 0, false},
		{"well for most of the minute, bad for seconds", 2, 1000, 50, 0, 10, true},
		{"bad half a minute ago", 2, 0, 1000, 50, 0, false},
		{"one in eleven, leaving at once", 3, 0, 10, 0, 1, false},
	} {
		h := NewHealth(1, tc.level)
		for range tc.old {
			h.Record(70, 0, Answered)
		}
		for range tc.oldOut {
			h.Record(70, 0, TimedOut)
		}
		for range tc.fresh {
			h.Record(99, 0, Answered)
		}
		for range tc.freshTO {
			h.Record(99, 0, TimedOut)
		}
		if got := h.Sick(100); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

func TestPlaceThatFailsInAnyWayIsSick(t *testing.T) {
	for _, f := range []Fate{Overloaded, Unavailable} {
		for _, tc := range []struct {
			tries, failed int
			want          bool
		}{{4, 4, false}, {5, 5, true}, {12, 5, true}, {13, 5, false}, {1000, 300, false}, {1000, 400, true}} {
			h := NewHealth(1, 2)
			for i := range tc.tries {
				fate := Answered
				if i < tc.failed {
					fate = f
				}
				h.Count(100, fate)
			}
			if got := h.Sick(100); got != tc.want {
				t.Errorf("%d of %d %s: %t", tc.failed, tc.tries, f, got)
			}
		}
	}
}

// A place that was well for most of the minute is not taken for well again as
// soon as the trickle is all that reaches it.
func TestSickPlaceStaysSickOnATrickle(t *testing.T) {
	h := NewHealth(1, 2)
	for now := range int64(60) {
		for range 10 {
			h.Record(now, 0, Answered)
		}
	}
	now := int64(60)
	for ; !h.Sick(now); now++ {
		for n := range 10 {
			h.Record(now, 0, []Fate{Answered, TimedOut}[n%2])
		}
	}
	if now > 63 {
		t.Errorf("sick after %d s", now-60)
	}
	for until := now + 300; now < until; now++ {
		if !h.Sick(now) {
			t.Fatalf("well again at %d", now)
		}
		if now%10 == 0 {
			h.Record(now, 0, []Fate{Answered, TimedOut}[now/10%2])
		}
	}
	for healed := now; h.Sick(now); now++ {
		if now > healed+60 {
			t.Fatal("still sick a minute after the last timeout")
		}
		if now%10 == 0 {
			h.Record(now, 0, Answered)
		}
	}
}

func TestCutOff(t *testing.T) {
	var c CutOff
	for i, s := range []struct {
		tries, failed int
		want          bool
	}{
		{19, 19, false},
		{20, 4, false},
		{20, 5, true},
		{100, 20, true}, // between the bounds it stays
		{100, 10, true},
		{100, 9, false},
		{100, 20, false},
		{100, 21, true},
		{19, 19, true}, // too few to judge by: it stays
		{17, 17, true},
		{1, 1, true},
		{11, 2, true},
		{11, 1, false}, // few, and well
		{19, 19, false},
		{1000, 1000, true},
		{19, 3, true},
		{0, 0, false}, // nothing to judge by
		{5, 5, false},
		{20, 20, true},
		{1, 0, false},
	} {
		n := s.failed / 3
		counts := Counts{Tries: s.tries, Unavailable: n, TimedOut: n, Overloaded: s.failed - 2*n}
		if got := c.Judge(counts); got != s.want {
			t.Errorf("step %d, %d of %d: %t", i, s.failed, s.tries, got)
		}
	}
}

// While everything fails, however many come, retries that were cut off stay so.
func TestCutOffDoesNotFlapWhileAllFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c CutOff
		var w Window
		cut := false
		now := int64(1000)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now += rapid.Int64Range(0, 20).Draw(t, "pause")
			w.Add(now, rapid.SampledFrom([]Fate{Unavailable, TimedOut, Overloaded}).Draw(t, "fate"))
			// A place that becomes sick forgets the older part of its minute.
			if rapid.Bool().Draw(t, "forgets") {
				w.Keep(now, recent)
			}
			was := cut
			if cut = c.Judge(w.Sum(now, Minute)); was && !cut {
				t.Fatalf("retries are on again with %+v", w.Sum(now, Minute))
			}
		}
	})
}

func TestChoose(t *testing.T) {
	for _, tc := range []struct {
		name string
		list []Candidate
		want []float64 // shares
	}{
		{"none", nil, nil},
		{"one", []Candidate{{1, false}}, []float64{1}},
		{"a sole sick one is not left", []Candidate{{1, true}}, []float64{1}},
		{"by weight", []Candidate{{1, false}, {3, false}}, []float64{0.25, 0.75}},
		{"a trickle", []Candidate{{1, false}, {3, true}}, []float64{0.98, 0.02}},
		{"the others in proportion", []Candidate{{1, false}, {5, true}, {3, false}}, []float64{0.245, 0.02, 0.735}},
		{"all sick", []Candidate{{1, true}, {3, true}}, []float64{0.25, 0.75}},
		{"many sick", append(sickOnes(50), Candidate{0.001, false}), append(shares(50, 0.01), 0.5)},
	} {
		const steps = 100000
		got := make([]int, len(tc.list))
		for i := range steps {
			n := Choose(tc.list, float64(i)/steps)
			if len(tc.list) == 0 {
				if n != -1 {
					t.Errorf("%s: chose %d", tc.name, n)
				}
				continue
			}
			got[n]++
		}
		for i, want := range tc.want {
			if math.Abs(float64(got[i])/steps-want) > 0.001 {
				t.Errorf("%s: place %d got %.4f, want %.4f", tc.name, i, float64(got[i])/steps, want)
			}
		}
	}
	if n := Choose([]Candidate{{0.1, false}, {0.2, false}}, math.Nextafter(1, 0)); n != 1 {
		t.Errorf("chose %d", n)
	}
}

func sickOnes(n int) []Candidate {
	list := make([]Candidate, n)
	for i := range list {
		list[i] = Candidate{1, true}
	}
	return list
}

func shares(n int, share float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = share
	}
	return list
}
