package origin

import (
	"testing"
	"testing/synctest"
	"time"
)

// A place says why its last try failed, for a minute, and nothing while all is well.
func TestPlacesSayWhyTheyFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 2, []int{1})
		last := func() string { return p.Status().Places[0].LastFailure }
		ask := func() { _, _ = fetch(t.Context(), p, "/a.jpg") } // whether it fails is not asked here
		if ask(); last() != "" {
			t.Errorf("%q while all is well", last())
		}
		f := fakes[0]
		for _, tc := range []struct{ answer, want string }{
			{reset, "connection lost"},
			{hang, "no answer in time"},
			{"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "it answers 503"},
			{"nonsense\r\n\r\n", "no valid answer"},
			{"refuse", "connection refused"},
		} {
			f.always(tc.answer)
			f.refuse.Store(tc.answer == "refuse")
			if ask(); last() != tc.want {
				t.Errorf("%q, want %q", last(), tc.want)
			}
		}
		f.always(fine)
		f.refuse.Store(false)
		pass(time.Minute)
		if ask(); last() != "" {
			t.Errorf("%q a minute later", last())
		}
		settle(p)
	})
}

// While a sole place refuses, retries are cut off once and stay so, also when fewer
// requests come than the cut-off needs.
func TestRetriesStayCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fakes := newPlaces(t, 2, []int{1})
		fakes[0].refuse.Store(true)
		load(t.Context(), p, 30, 1)
		if got := p.Status().Retries; got != "cut" {
			t.Fatalf("retries are %s", got)
		}
		for range 40 {
			pass(5 * time.Second)
			load(t.Context(), p, 1, 1)
			if got := p.Status().Retries; got != "cut" {
				t.Fatalf("retries are %s with %d tries", got, p.Status().Places[0].Tries)
			}
		}
		fakes[0].refuse.Store(false)
		pass(55 * time.Second)
		load(t.Context(), p, 12, 1)
		pass(10 * time.Second)
		if got := p.Status().Retries; got != "on" {
			t.Errorf("retries are %s while all is well", got)
		}
		settle(p)
	})
}
