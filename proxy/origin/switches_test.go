package origin

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestSwitches(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	s := NewSwitches(func() time.Time { return now })
	out := func(site, place string, want bool) {
		t.Helper()
		if _, got := s.Out(site, place); got != want {
			t.Errorf("%s of %s is out: %t", place, site, got)
		}
	}
	retry := func(site, want string) {
		t.Helper()
		if set, ok := s.Retry(site); set.Mode != want || ok != (want != "") {
			t.Errorf("retries of %s: %+v, %t, want %q", site, set, ok, want)
		}
	}
	out("shop", "tokyo", false)
	retry("shop", "")

	s.SetPlace("", "tokyo", true, now.Add(time.Hour))
	s.SetPlace("shop", "tokyo", false, time.Time{}) // an exception
	s.SetPlace("news", "osaka", true, time.Time{})
	out("shop", "tokyo", false)
	out("news", "tokyo", true)
	out("news", "osaka", true)
	out("shop", "osaka", false)

	s.SetRetry("", "off", now.Add(time.Hour))
	s.SetRetry("shop", "", time.Time{}) // as configured
	retry("shop", "")
	retry("news", "off")

	// A copy elsewhere is the same, and later changes do not reach into it.
	b, err := json.Marshal(s.State())
	if err != nil {
		t.Fatal(err)
	}
	var state SwitchState
	if err := json.Unmarshal(b, &state); err != nil {
		t.Fatal(err)
	}
	copied := NewSwitches(func() time.Time { return now })
	copied.Restore(state)
	if got, want := copied.State(), s.State(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	held := s.State()
	s.SetPlace("", "tokyo", true, time.Time{}) // for all, the exception included
	s.SetRetry("", "off", now.Add(time.Hour))
	out("shop", "tokyo", true)
	retry("shop", "off")
	if again := copied.State(); !reflect.DeepEqual(again, held) {
		t.Errorf("a state changed after it was handed out: %+v", again)
	}

	now = now.Add(time.Hour)
	retry("news", "")
	if _, still := copied.Out("news", "tokyo"); still {
		t.Error("it holds beyond its time")
	}
	s.SetPlace("", "tokyo", false, time.Time{})
	s.SetPlace("news", "osaka", false, time.Time{})
	if left := s.State(); len(left.Out) != 0 || len(left.Retry) != 0 {
		t.Errorf("what says nothing is kept: %+v", left)
	}
	s.Restore(SwitchState{})
	out("shop", "tokyo", false)
	var nobody *Switches
	if _, ok := nobody.Out("shop", "tokyo"); ok {
		t.Error("no switches, and a place is out")
	}
	if _, ok := nobody.Retry("shop"); ok {
		t.Error("no switches, and retries are set")
	}
}
