package edge

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"karui/internal/cloudfront"
)

// keptFor finds out how long a first answer stays, by the second.
func keptFor(l *lab, path string, status int) time.Duration {
	l.t.Helper()
	before := len(l.karui.requests())
	if s := l.get(path); s.status != status {
		l.t.Fatalf("%s: %d, want %d", path, s.status, status)
	}
	for seconds := range 200 {
		l.get(path)
		if len(l.karui.requests()) > before+1 {
			return time.Duration(seconds) * time.Second
		}
		pass(time.Second)
	}
	return 200 * time.Second
}

func TestHowLongErrorsAreKept(t *testing.T) {
	const bare, asked = "", "max-age=60"
	for _, c := range []struct {
		name   string
		status int
		cc     string
		errors string
		want   time.Duration
	}{
		{"503 is kept 10 s unless set", 503, bare, "", 10 * time.Second},
		{"no-store does not help a 503", 503, "no-store", "", 10 * time.Second},
		{"private does not help a 503", 503, "private", "", 10 * time.Second},
		{"no-cache does not help a 502", 502, "no-cache", "", 10 * time.Second},
		{"max-age wins where it is longer", 503, asked, "", 60 * time.Second},
		{"s-maxage wins over max-age", 503, "max-age=120, s-maxage=30", "", 30 * time.Second},
		{"the error TTL wins where it is longer", 503, "max-age=3", "", 10 * time.Second},
		{"max-age wins over an error TTL of 0", 503, asked, "503:0", 60 * time.Second},
		{"an error TTL of 0 keeps nothing", 503, "no-store", "503:0", 0},
		{"an error TTL of 0 keeps nothing of a 500", 500, bare, "500:0", 0},
		{"an error TTL is set for its status only", 500, bare, "503:0", 10 * time.Second},
		{"an error TTL can be longer", 504, "no-store", "504:40", 40 * time.Second},
		{"404 is kept", 404, bare, "", 10 * time.Second},
		{"404 heeds no-store", 404, "no-store", "404:60", 0},
		{"404 heeds private", 404, "private", "", 0},
		{"410 heeds no-cache", 410, "no-cache", "", 0},
		{"414 heeds no-store", 414, "no-store", "", 0},
		{"501 heeds no-store", 501, "no-store", "", 0},
		{"403 is not kept of itself", 403, bare, "403:60", 0},
		{"403 is kept with max-age", 403, asked, "", 60 * time.Second},
		{"429 is never kept", 429, asked, "", 0},
		{"416 is never kept", 416, asked, "416:60", 0},
		{"MaxTTL caps an error's max-age", 503, "max-age=199", "", 100 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The first member's statuses lead nowhere, so that its errors come through.
			inLab(t, document{statuses: []int{400}, errors: c.errors}, func(l *lab) {
				l.policy(cloudfront.CachePolicy{DefaultTTL: time.Second, MaxTTL: 100 * time.Second, Headers: []string{"Accept"}})
				l.karui.says(c.status, "error", "Cache-Control: "+c.cc)
				if got := keptFor(l, "/img/a", c.status); got != c.want {
					t.Errorf("kept for %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestExpiresCountsForErrors(t *testing.T) {
	inLab(t, document{statuses: []int{400}}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
			tell(w, 503, "error", "Expires: "+time.Now().Add(25*time.Second).UTC().Format(http.TimeFormat))
		})
		if got := keptFor(l, "/img/a", 503); got != 25*time.Second {
			t.Errorf("kept for %v", got)
		}
	})
}

// A 503 that both members give is kept under the key although the first is well
// again: what the set-up without an error TTL of 0 would do.
func TestAKept503HidesARecoveredProxy(t *testing.T) {
	for errors, want := range map[string]string{"": Error, "503:0": Miss} {
		inLab(t, document{errors: errors}, func(l *lab) {
			l.karui.says(503, "busy", "Cache-Control: no-store")
			l.origin.says(503, "busy too", "Cache-Control: no-store")
			l.get("/img/a")
			l.karui.says(200, "well", "Cache-Control: max-age=60")
			if s := l.get("/img/a"); s.cache() != want {
				t.Errorf("with error TTLs %q: %d %s, want %s", errors, s.status, s.cache(), want)
			}
		})
	}
}

func TestAnExpiredObjectGoesOutOn5xxForTheErrorTTL(t *testing.T) {
	for _, status := range []int{500, 502, 503, 504} {
		inLab(t, document{statuses: []int{400}}, func(l *lab) {
			l.want("/img/a", "karui", Miss)
			pass(60 * time.Second)
			l.karui.says(status, "broken")
			s := l.want("/img/a", "karui", Hit)
			if s.status != 200 || !l.event().Stale || s.header.Get("Age") != "60" {
				t.Errorf("%d, %+v, Age %s", s.status, l.event(), s.header.Get("Age"))
			}
			pass(9 * time.Second)
			l.want("/img/a", "karui", Hit)
			l.asked(2, 0)
			pass(time.Second)
			l.want("/img/a", "karui", Hit)
			l.asked(3, 0)
			pass(10 * time.Second)
			l.karui.says(200, "healed", "Cache-Control: max-age=60")
			l.want("/img/a", "healed", Miss)
		})
	}
}

func TestAnExpiredObjectGoesOutOnTimeoutsAndRefusals(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.want("/img/a", "karui", Miss)
		pass(60 * time.Second)
		l.karui.down(refused)
		l.origin.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		begun := time.Now()
		l.want("/img/a", "karui", Hit)
		if took := time.Since(begun); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestWithAnErrorTTLOf0EveryRequestAsksAgainBeforeTheStaleObjectGoesOut(t *testing.T) {
	inLab(t, document{statuses: []int{400}, errors: "503:0"}, func(l *lab) {
		l.want("/img/a", "karui", Miss)
		pass(60 * time.Second)
		l.karui.says(503, "busy")
		for range 3 {
			l.want("/img/a", "karui", Hit)
		}
		l.asked(4, 0)
	})
}

// With a group the second member is asked before anything stale goes out.
func TestFailoverComesBeforeStale(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.want("/img/a", "karui", Miss)
		pass(60 * time.Second)
		l.karui.says(503, "busy")
		l.want("/img/a", "origin", Miss)
	})
}

func Test4xxPassesThroughAlthoughThereIsAnExpiredObject(t *testing.T) {
	for _, status := range []int{403, 404, 410, 429} {
		inLab(t, document{statuses: []int{400}}, func(l *lab) {
			l.want("/img/a", "karui", Miss)
			pass(60 * time.Second)
			l.karui.says(status, "no")
			if s := l.get("/img/a"); s.status != status || s.cache() != Error {
				t.Errorf("%d %s", s.status, s.cache())
			}
		})
	}
}

func TestStaleIfErrorBoundsStaleAnswers(t *testing.T) {
	for _, c := range []struct {
		seconds int
		want    []int // statuses 0, 20 and 40 s after expiry
	}{{0, []int{503, 503, 503}}, {30, []int{200, 200, 503}}, {90, []int{200, 200, 200}}} {
		inLab(t, document{statuses: []int{400}}, func(l *lab) {
			l.karui.says(200, "karui", fmt.Sprintf("Cache-Control: max-age=60, stale-if-error=%d", c.seconds))
			l.want("/img/a", "karui", Miss)
			pass(60 * time.Second)
			l.karui.says(503, "busy")
			for i, want := range c.want {
				if s := l.get("/img/a"); s.status != want {
					t.Errorf("stale-if-error=%d: step %d: %d, want %d", c.seconds, i, s.status, want)
				}
				pass(20 * time.Second)
			}
		})
	}
}

func TestStaleWhileRevalidateAnswersAtOnceAndRefreshesBehind(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(200, "old", "Cache-Control: max-age=60, stale-while-revalidate=30")
		l.want("/img/a", "old", Miss)
		pass(60 * time.Second)
		l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
			pass(5 * time.Second)
			tell(w, 200, "new", "Cache-Control: max-age=60, stale-while-revalidate=30")
		})
		begun := time.Now()
		l.want("/img/a", "old", Hit)
		l.want("/img/a", "old", Hit)
		if took := time.Since(begun); took != 0 {
			t.Errorf("took %v", took)
		}
		pass(5 * time.Second)
		l.event() // the background is done
		l.want("/img/a", "new", Hit)
		l.asked(2, 0)
		pass(91 * time.Second) // beyond both: the viewer waits
		begun = time.Now()
		l.want("/img/a", "new", Miss)
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
