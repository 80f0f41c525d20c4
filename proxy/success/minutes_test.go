package success

import (
	"testing"
	"time"
)

func TestMinutes(t *testing.T) {
	c := newClock()
	l := New(c.now)
	l.Good("shop")
	l.Bad("shop", "disk")
	c.at = c.at.Add(2 * time.Minute)
	l.Good("news")
	l.Good("")

	want := map[string][]Share{"": {{}, {1, 2}, {}, {2, 2}}, "shop": {{}, {1, 2}, {}, {}}, "news": {{}, {}, {}, {1, 1}}, "nobody": {{}, {}, {}, {}}}
	for site, shares := range want {
		got := l.Minutes(site, len(shares))
		if len(got) != len(shares) {
			t.Fatalf("%q: %d minutes", site, len(got))
		}
		for i, m := range got {
			if at := c.at.Truncate(time.Minute).Add(time.Duration(i-3) * time.Minute); m.Share != shares[i] || m.Total > 0 && !m.Start.Equal(at) {
				t.Errorf("%q: minute %d is %+v, want %+v at %s", site, i, m, shares[i], at)
			}
		}
	}
	if n := len(l.Minutes("", 1e9)); n != maxMinutes {
		t.Errorf("%d minutes", n)
	}
	if n := len(l.Minutes("", -1)); n != 0 {
		t.Errorf("%d minutes", n)
	}
	// A day later nothing is left of it.
	c.at = c.at.Add(25 * time.Hour)
	for _, m := range l.Minutes("shop", maxMinutes) {
		if m.Total > 0 {
			t.Fatalf("%+v", m)
		}
	}
}

func TestRecordOfOneSite(t *testing.T) {
	l := New(newClock().now)
	l.Good("shop")
	l.Bad("news", "disk")
	all := l.Snapshot()
	for site, want := range map[string]Record{"": all.All, "shop": all.Sites["shop"], "news": all.Sites["news"]} {
		if got, ok := l.Of(site); !ok || got.LastDay != want.LastDay || len(got.Reasons) != len(want.Reasons) {
			t.Errorf("%q: %+v, want %+v", site, got, want)
		}
	}
	if _, ok := l.Of("nobody"); ok {
		t.Error("a record of nobody")
	}
}
