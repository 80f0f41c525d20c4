package stress_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"karui/proxy/stress"
)

func TestShareIsEvenStableAndMonotone(t *testing.T) {
	const keys = 20_000
	for _, first := range []float64{0, 10, 50, 100} {
		shed := map[string]bool{}
		for _, percent := range []float64{0, 1, 20, 30, 50, 99, 100} {
			share := stress.Share{Percent: percent, First: map[string]float64{"shop": first}}
			n := 0
			for i := range keys {
				key := fmt.Sprintf("/photos/%d.jpg?v=%d", i, i%3)
				class := float64(i%100) < first
				got := share.Sheds("shop", key, class)
				if got != share.Sheds("shop", key, class) {
					t.Fatal("one key, two answers")
				}
				if shed[key] && !got {
					t.Fatalf("%s is turned away below %g %% and not at it", key, percent)
				}
				shed[key] = got
				if got {
					n++
				}
				if got && !class && percent <= first && first > 0 {
					t.Fatalf("%s is turned away before all of the class are, at %g %%", key, percent)
				}
			}
			if share := 100 * float64(n) / keys; math.Abs(share-percent) > 1.5 {
				t.Errorf("%g %% of them first: %g %% turned away, want %g %%", first, share, percent)
			}
		}
	}
}

func TestShareIsFixedOverVersions(t *testing.T) {
	// The nodes of a cluster, and karui before and after an upgrade, must agree.
	share := stress.Share{Percent: 50}
	got := ""
	for i := range 16 {
		got += map[bool]string{true: "x", false: "."}[share.Sheds("shop", fmt.Sprintf("/%d.jpg", i), false)]
	}
	if want := "x....x.xx..xxx.x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSharesOfSites(t *testing.T) {
	now := start
	s := stress.NewShares(func() time.Time { return now })
	sites := []string{"shop", "blog"}
	if s.Sheds("shop", "/a.jpg", false, false) {
		t.Error("sheds although nothing is set")
	}
	s.Set("", 100, time.Time{}, sites)
	s.Set("blog", 0, now.Add(time.Hour), []string{"blog"})
	if !s.Sheds("shop", "/a.jpg", false, false) || s.Sheds("blog", "/a.jpg", false, false) {
		t.Errorf("state: %+v", s.State())
	}
	now = now.Add(time.Hour)
	if !s.Sheds("blog", "/a.jpg", false, false) {
		t.Error("the setting for one site has run out, and that for all does not hold")
	}
	s.Set("", 0, time.Time{}, sites)
	if len(s.State()) != 0 {
		t.Errorf("state: %+v", s.State())
	}
}

func TestSharesKeepWhatAClassWas(t *testing.T) {
	s := stress.NewShares(nil)
	for i := range 1000 {
		s.Sheds("shop", "/", true, i%5 == 0)
	}
	s.Set("shop", 20, time.Time{}, []string{"shop"})
	before := s.Of("shop").First["shop"]
	if math.Abs(before-20) > 1 {
		t.Errorf("%g %% are of the class, want about 20", before)
	}
	for range 5000 {
		s.Sheds("shop", "/", true, true)
	}
	s.Set("shop", 30, time.Time{}, []string{"shop"})
	b, err := json.Marshal(s.State())
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]stress.Share
	if err := json.Unmarshal(b, &state); err != nil {
		t.Fatal(err)
	}
	again := stress.NewShares(nil)
	again.Restore(state)
	if got := again.Of("shop"); got.Percent != 30 || got.First["shop"] != before {
		t.Errorf("after a restart %+v, want 30 %% with %g %% first", got, before)
	}
}
