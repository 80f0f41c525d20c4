package status

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"karui/internal/api"
)

func TestOutcomesOfAllWords(t *testing.T) {
	seen := map[outcome]string{}
	for _, word := range []string{
		"hit", "wait", "stale", "original", "miss", "bypass", "aborted",
		"503_origin", "503_latency", "503_disk", "503_shed", "503_drain", "503_route", "503_secret", "503_panic", "503_new",
	} {
		o, ok := outcomeOf(word)
		if other, twice := seen[o]; !ok || twice {
			t.Errorf("%s: %v %v, as %s", word, o, ok, other)
		}
		seen[o] = word
	}
	if len(seen) != int(outcomes) {
		t.Errorf("%d of %d outcomes", len(seen), outcomes)
	}
	for _, word := range []string{"ping", "503_ping"} {
		if _, ok := outcomeOf(word); ok {
			t.Errorf("%s is counted", word)
		}
	}
	if o, _ := outcomeOf("refused"); o != otherwise {
		t.Error("a method that is not served")
	}
	// A word of one kind is not that of the other.
	if o, _ := outcomeOf("origin"); o != otherwise {
		t.Errorf("origin without 503 is %v", o)
	}
}

// Whenever it is looked, the hour holds what was counted within its minutes, and no
// count is lost or counted twice.
func TestHourAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		began := noon()
		h := newHistory(began)
		now, total := began, uint64(0)
		type piece struct {
			at time.Time
			n  uint64
		}
		var pieces []piece
		for range rapid.IntRange(1, 40).Draw(t, "looks") {
			before := now
			now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 2, 10, 59, 61, 600, 3599, 3601, 9000}).Draw(t, "step")) * time.Second)
			n := rapid.Uint64Range(0, 1000).Draw(t, "n")
			total += n
			middle := now
			if h.before != nil {
				middle = before.Add(now.Sub(before) / 2)
			}
			pieces = append(pieces, piece{middle, n})
			h.observe(&Facts{At: now, Sites: []api.SiteStats{{ID: "a", Requests: map[string]uint64{"hit": total}, SavedBytes: 2 * total}}, Unrouted: map[string]uint64{"503_route": total}})
		}
		want := uint64(0)
		minute := now.Unix() / 60
		for _, p := range pieces {
			if minute-p.at.Unix()/60 < minutes {
				want += p.n
			}
		}
		hour, site := h.all.hour(minute), h.sites["a"].hour(minute)
		got, one := hourOf(&hour), hourOf(&site)
		if got[hit] != want || got[byRoute] != want || got.all() != 2*want || one.all() != want {
			t.Fatalf("%v and %v, want %d", got, one, want)
		}
		saved := uint64(0)
		for i := range hour {
			saved += hour[i].saved
		}
		if saved != 2*want {
			t.Fatalf("saved %d, want %d", saved, 2*want)
		}
	})
}

func TestStatesKeepTheWorstAndLeaveGaps(t *testing.T) {
	h := newHistory(noon())
	see := func(at time.Time, mean time.Duration, busy float64) {
		f := Facts{At: at, Workers: &api.WorkerStats{Fast: api.WorkerLoad{Workers: 2, BusySeconds: busy}}}
		if mean > 0 {
			f.Groups = []Group{{Name: "all", Mean: mean, Requests: 3}, {Name: "misses", Site: "a", Mean: 2 * mean, Requests: 1}}
		}
		h.observe(&f)
	}
	start := noon().Truncate(10 * time.Second)
	see(start.Add(1*time.Second), time.Second, 0)
	see(start.Add(3*time.Second), 5*time.Second, 2)
	see(start.Add(5*time.Second), time.Second, 4)
	see(start.Add(25*time.Second), 0, 4)
	now := start.Add(26 * time.Second)
	states := h.seen(now)
	i := int((start.Unix() - (now.Unix()/60-minutes+1)*60) / 10)
	if s := states[i]; !s.known || s.all != 5 || s.slowest != 10 || !math.IsNaN(s.hits) || s.busy[0] != 0.5 || !math.IsNaN(s.busy[1]) || !math.IsNaN(s.volumes[0]) {
		t.Errorf("%+v", s)
	}
	if states[i+1].known || states[i-1].known {
		t.Error("a slot in which nobody looked is known")
	}
	if s := states[i+2]; !s.known || !math.IsNaN(s.all) || s.busy[0] != 0 {
		t.Errorf("%+v", s)
	}
	// After more than an hour nothing of it is left.
	for _, s := range h.seen(now.Add(2 * time.Hour)) {
		if s.known {
			t.Fatal("a state of two hours ago")
		}
	}
	see(now.Add(2*time.Hour), time.Second, 5)
	known := 0
	for _, s := range h.seen(now.Add(2 * time.Hour)) {
		if s.known {
			known++
		}
	}
	if known != 1 {
		t.Errorf("%d slots are known", known)
	}
}

func TestClockThatGoesBackAndCountersThatFall(t *testing.T) {
	h := newHistory(noon())
	count := func(at time.Time, n uint64) {
		h.observe(&Facts{At: at, Sites: []api.SiteStats{{ID: "a", Requests: map[string]uint64{"hit": n}}}})
	}
	count(noon(), 5)
	count(noon().Add(-2*time.Hour), 9)
	count(noon().Add(time.Minute), 3)
	count(noon().Add(2*time.Minute), 10)
	hour := h.all.hour(noon().Add(2*time.Minute).Unix() / 60)
	if got := hourOf(&hour)[hit]; got != 16 {
		t.Errorf("%d", got)
	}
}

func TestSitesAreBounded(t *testing.T) {
	h := newHistory(noon())
	f := Facts{At: noon()}
	for i := range maxSites + 50 {
		f.Sites = append(f.Sites, api.SiteStats{ID: siteNamed(i + 10)})
	}
	h.observe(&f)
	if len(h.sites) > maxSites+1 {
		t.Errorf("%d sites", len(h.sites))
	}
}
