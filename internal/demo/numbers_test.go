package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNumbersOverTime(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	n := newNumbers(func() time.Time { return now })
	n.add(visit{Way: wayKarui, Format: "webp", Bytes: 100})
	n.save(900)
	n.save(-5)
	now = now.Add(slotLength)
	n.add(visit{Way: wayOrigin, Format: "jpeg", Bytes: 1000, Failover: true})
	n.add(visit{Way: wayNone, Format: "other", Bytes: 10})
	slots := n.over()
	last, before := slots[slotCount-1], slots[slotCount-2]
	if last.Ways[wayOrigin] != 1 || last.Ways[wayNone] != 1 || last.Failovers != 1 || last.Formats["other"] != 0 {
		t.Errorf("newest slot: %+v", last)
	}
	if before.Ways[wayKarui] != 1 || before.Saved != 900 || before.Formats["webp"] != 1 {
		t.Errorf("slot before: %+v", before)
	}
	if r := n.recent(4); r.Requests != 3 || r.Bytes != 1110 {
		t.Errorf("recent: %+v", r)
	}
	now = now.Add(4 * slotLength)
	if r := n.recent(4); r.Requests != 0 {
		t.Errorf("recent after a while: %+v", r)
	}
	now = now.Add(slotCount * slotLength)
	for _, s := range n.over() {
		if s.Requests != 0 {
			t.Errorf("old slots stay: %+v", s)
		}
	}
	if all := n.total(); all.Requests != 3 || all.Saved != 900 || all.Failovers != 1 {
		t.Errorf("total: %+v", all)
	}
	now = now.Add(-time.Hour) // a clock that is set back
	n.add(visit{Way: wayEdge, Format: "png"})
	if all := n.total(); all.Ways[wayEdge] != 1 {
		t.Errorf("total: %+v", all)
	}
}

func TestFailoversInVainAreCounted(t *testing.T) {
	n := newNumbers(time.Now)
	n.add(visit{Way: wayOrigin, Failover: true})
	n.add(visit{Way: wayEdge, Failover: true, Vain: true})
	n.add(visit{Way: wayNone, Failover: true, Vain: true})
	if all := n.total(); all.Failovers != 3 || all.Vain != 2 || all.Kept != 1 {
		t.Errorf("%+v", all)
	}
}

func TestCeiling(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 0.5: 1, 1: 1, 1.5: 2, 3: 3, 5: 6, 7: 8, 9: 10, 10: 10, 11: 20, 450: 600, 90_000: 100_000} {
		if got := ceiling(v); got != want {
			t.Errorf("ceiling(%g) = %g, want %g", v, got, want)
		}
	}
}

func TestChartsStackWhatWasCounted(t *testing.T) {
	slots := make([]tally, slotCount)
	for i := range slots {
		slots[i] = newTally()
	}
	slots[slotCount-1].Ways[wayKarui], slots[slotCount-1].Ways[wayEdge] = 3, 5
	slots[slotCount-1].Bytes, slots[slotCount-1].Saved = 250_000, 750_000
	all := charts(slots)
	if len(all) != 4 {
		t.Fatalf("%d charts", len(all))
	}
	byWay := string(all[0].SVG())
	// 5 of 8 and 3 of 8 of the height, the second on top of the first.
	for _, want := range []string{`class="s-edge" x="590.8" y="45.0" width="8.4" height="75.0"`, `class="s-karui" x="590.8" y="0.0" width="8.4" height="45.0"`} {
		if !strings.Contains(byWay, want) {
			t.Errorf("%s is missing in %s", want, byWay)
		}
	}
	if all[0].Series[0].Sum != "5" || all[2].Series[1].Sum != "750 kB" || all[2].Top != "1.0 MB" {
		t.Errorf("%+v", all)
	}
	if strings.Contains(byWay, "style=") {
		t.Error("the page's policy forbids style attributes")
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 42_640: "42.6 kB", 177_544: "178 kB", 1_900_000: "1.9 MB", 2_345_000_000: "2.35 GB"} {
		if got := bytesWords(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for _, tt := range []struct {
		bytes, saved int64
		want         string
	}{{100, 0, ""}, {0, 100, ""}, {25, 75, "75 % saved"}, {997, 3, "0 % saved"}} {
		if got := savedWords(tt.bytes, tt.saved); got != tt.want {
			t.Errorf("%d of which %d: %q", tt.bytes, tt.saved, got)
		}
	}
	if got := seconds(1500*time.Millisecond) + ", " + seconds(6*time.Second); got != "1.5 s, 6 s" {
		t.Error(got)
	}
}

func TestJournalIsBounded(t *testing.T) {
	j := &journal{now: time.Now}
	for i := range 3 * journalMax {
		j.note(tonePlain, fmt.Sprint(i))
	}
	all := j.all()
	if len(all) != journalMax || all[0].Text != fmt.Sprint(3*journalMax-1) || all[0].Number != 3*journalMax {
		t.Errorf("%d entries, newest %+v", len(all), all[0])
	}
}
