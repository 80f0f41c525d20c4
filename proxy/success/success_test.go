package success

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{time.Date(2026, 8, 1, 23, 58, 0, 0, time.UTC)} }

func TestRecordOfAMinuteAndADay(t *testing.T) {
	c := newClock()
	l := New(c.now)
	add := func(site string, good, bad int, reason string) {
		for range good {
			l.Good(site)
		}
		for range bad {
			l.Bad(site, reason)
		}
	}
	add("shop", 1000, 1, "503_origin")
	c.at = c.at.Add(time.Minute)
	add("shop", 500, 1, "503_origin")
	add("news", 10, 0, "")
	add("", 0, 2, "503_route")
	c.at = c.at.Add(time.Minute) // the next day
	add("shop", 100, 5, "503_shed")

	s := l.Snapshot()
	shop, news, all := s.Sites["shop"], s.Sites["news"], s.All
	if shop.LastMinute.Share != (Share{500, 501}) || shop.MinuteMet() || !shop.LastMinute.Start.Equal(time.Date(2026, 8, 1, 23, 59, 0, 0, time.UTC)) {
		t.Errorf("last minute: %+v", shop.LastMinute)
	}
	if shop.Minutes != 2 || shop.MinutesMissed != 1 || shop.Worst.Share != (Share{500, 501}) {
		t.Errorf("minutes: %+v", shop)
	}
	if shop.LastDay != (Share{1600, 1607}) || shop.DayMet() {
		t.Errorf("last day: %+v", shop.LastDay)
	}
	if want := []Day{{"2026-08-02", Share{100, 105}}, {"2026-08-01", Share{1500, 1502}}}; !reflect.DeepEqual(shop.Days, want) {
		t.Errorf("days: %+v", shop.Days)
	}
	if want := []Reason{{"503_shed", 5}, {"503_origin", 2}}; !reflect.DeepEqual(shop.Reasons, want) {
		t.Errorf("reasons: %+v", shop.Reasons)
	}
	if !news.MinuteMet() || !news.DayMet() || news.LastDay.Rate() != 1 || len(news.Reasons) != 0 {
		t.Errorf("news: %+v", news)
	}
	if all.LastDay != (Share{1610, 1619}) || len(s.Sites) != 2 {
		t.Errorf("all: %+v", all)
	}
	// Nothing asked is nothing missed.
	c.at = c.at.Add(2 * time.Minute)
	if r := l.Snapshot().All; r.LastMinute.Total != 0 || !r.MinuteMet() || r.Minutes != 3 {
		t.Errorf("a quiet minute: %+v", r)
	}
	c.at = c.at.Add(25 * time.Hour)
	if r := l.Snapshot().All; r.LastDay.Total != 0 || r.Minutes != 0 || r.Worst.Total != 0 || len(r.Reasons) != 0 || len(r.Days) != 2 {
		t.Errorf("a day later: %+v", r)
	}
	c.at = c.at.Add(31 * 24 * time.Hour)
	if r := l.Snapshot().All; len(r.Days) != 0 {
		t.Errorf("a month later: %+v", r)
	}
}

// Whatever is counted when, the last day is what was counted within it.
func TestLastDayAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		l := New(c.now)
		type event struct {
			minute int64
			good   bool
		}
		var events []event
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			c.at = c.at.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 59, 60, 61, 3600, 80000, 86400, 200000}).Draw(t, "step")) * time.Second)
			good := rapid.Bool().Draw(t, "good")
			events = append(events, event{c.at.Unix() / 60, good})
			if good {
				l.Good("a")
			} else {
				l.Bad("a", "x")
			}
			if rapid.IntRange(0, 9).Draw(t, "reload") == 0 {
				again := New(c.now)
				b, err := json.Marshal(file{Version: fileVersion, All: l.all.write(c.at.Unix() / 60), Sites: map[string]*fileSeries{"a": l.sites["a"].write(c.at.Unix() / 60)}})
				if err == nil {
					err = again.decode(b)
				}
				if err != nil {
					t.Fatal(err)
				}
				l = again
			}
		}
		var want Share
		days := map[string]Share{}
		for _, e := range events {
			day := time.Unix(e.minute*60, 0).UTC().Format(time.DateOnly)
			d := days[day]
			d.Total++
			if e.good {
				d.Good++
			}
			if c.at.Unix()/86400-e.minute/1440 < 31 {
				days[day] = d
			}
			if c.at.Unix()/60-e.minute < 1440 {
				want.Total++
				if e.good {
					want.Good++
				}
			}
		}
		for _, r := range []Record{l.Snapshot().All, l.Snapshot().Sites["a"]} {
			if r.LastDay != want {
				t.Fatalf("%+v, want %+v", r.LastDay, want)
			}
			got := map[string]Share{}
			for _, d := range r.Days {
				got[d.Date] = d.Share
			}
			if len(events) > 0 && !reflect.DeepEqual(got, days) {
				t.Fatalf("%+v, want %+v", got, days)
			}
			if len(events) == 0 {
				break
			}
		}
	})
}

func TestReasonsAndSitesAreBounded(t *testing.T) {
	l := New(newClock().now)
	for i := range 100 {
		l.Bad("a", fmt.Sprintf("reason %d", i))
	}
	l.Bad("a", string(make([]byte, 1000)))
	l.Bad("a", "")
	r := l.Snapshot().Sites["a"].Reasons
	if len(r) > maxReasons+1 || r[0].Word != otherReason || r[0].Count != 100-maxReasons+2 {
		t.Errorf("%d reasons, first %+v", len(r), r[0])
	}
	for i := range maxSites + 10 {
		l.Good(fmt.Sprintf("site %d", i))
	}
	if s := l.Snapshot(); len(s.Sites) != maxSites || s.All.LastDay.Total != 102+maxSites+10 {
		t.Errorf("%d sites, %d requests", len(s.Sites), s.All.LastDay.Total)
	}
}

func TestClockThatGoesBack(t *testing.T) {
	c := newClock()
	l := New(c.now)
	l.Good("a")
	c.at = c.at.Add(-time.Hour)
	l.Bad("a", "x")
	if s := l.Snapshot().Sites["a"].LastDay; s != (Share{1, 2}) {
		t.Errorf("%+v", s)
	}
}

func TestKeptOverARestart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state", "success.json")
	synctest.Test(t, func(t *testing.T) {
		l := New(nil)
		if err := l.Load(name); err != nil {
			t.Fatal(err)
		}
		l.Good("shop")
		l.Bad("shop", "503_disk")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Keep(ctx, name, time.Minute, func(err error) { t.Error(err) })
		}()
		<-time.After(90 * time.Second) // killed now, the first minute is there
		killed := New(nil)
		if err := killed.Load(name); err != nil || killed.Snapshot().All.LastDay != (Share{1, 2}) {
			t.Errorf("%+v, %v", killed.Snapshot().All, err)
		}
		l.Good("shop")
		cancel()
		<-done
		again := New(nil)
		if err := again.Load(name); err != nil || !reflect.DeepEqual(again.Snapshot(), l.Snapshot()) {
			t.Errorf("%+v, want %+v: %v", again.Snapshot(), l.Snapshot(), err)
		}
	})
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*")); err != nil || len(left) != 1 {
		t.Errorf("%q, %v", left, err)
	}
}

func TestFileThatCannotBeWrittenIsToldOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "taken")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		told := 0
		New(nil).Keep(ctx, filepath.Join(dir, "success.json"), time.Minute, func(error) { told++ })
		if told != 1 {
			t.Errorf("told %d times", told)
		}
	})
}

func TestFileThatIsNone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "success.json")
	for _, text := range []string{"", "{", "[]", `{"version": 2}`, `{"version": 1, "sites": 3}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l := New(newClock().now)
		l.Good("a")
		if err := l.Load(name); err == nil || errors.Is(err, fs.ErrNotExist) || l.Snapshot().All.LastDay.Total != 1 {
			t.Errorf("%q was read: %v", text, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	l := New(newClock().now)
	l.Good("a")
	l.Bad("b", "x")
	minute := newClock().at.Unix() / 60
	b, err := json.Marshal(file{Version: 1, All: l.all.write(minute), Sites: map[string]*fileSeries{"a": l.sites["a"].write(minute)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"version": 1, "all": {"minute": 99999999999, "minutes": [[1,2]]}, "sites": {"": null, "a": null, "b": {"minute": -1}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := New(newClock().now)
		if l.decode(text) != nil {
			return
		}
		l.Good("a")
		for _, r := range l.Snapshot().Sites {
			if r.LastDay.Good > r.LastDay.Total && r.LastDay.Total < 1<<60 {
				t.Fatalf("%+v", r.LastDay)
			}
		}
	})
}

func BenchmarkGood(b *testing.B) {
	l := New(nil)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Good("shop")
		}
	})
}
