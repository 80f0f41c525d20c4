package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"karui/proxy/success"
)

// The browser's script has times written in its own zone, and else they are in the
// server's; the offset stands beside the clock.
func TestTimesAreInTheBrowsersZone(t *testing.T) {
	h := pinned().handler(t)
	for query, want := range map[string][]string{
		"":                {"<b>12:00:25 UTC</b>", "until 14:00:25 (in 2 h)", ">11:20:25</td>", "11:46</span>", "Times are in UTC."},
		"?offset=540":     {"<b>21:00:25 UTC+09:00</b>", "until 23:00:25 (in 2 h)", ">20:20:25</td>", "20:46</span>", "Times are in UTC+09:00."},
		"?offset=-210":    {"<b>08:30:25 UTC-03:30</b>", "until 10:30:25 (in 2 h)", ">07:50:25</td>", "08:16</span>"},
		"?offset=841":     {"<b>12:00:25 UTC</b>"},
		"?offset=nothing": {"<b>12:00:25 UTC</b>"},
	} {
		_, body := ask(t, h, Path+"/live"+query)
		var live struct {
			Fragments map[string]struct{ HTML string }
		}
		if err := json.Unmarshal([]byte(body), &live); err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, f := range live.Fragments {
			all.WriteString(html.UnescapeString(f.HTML))
		}
		for _, words := range want {
			if !strings.Contains(all.String(), words) {
				t.Errorf("%s: the page lacks %q", query, words)
			}
		}
	}
}

// The minute under way is in no count: it may still become better or worse.
func TestMinuteUnderWayIsNotCounted(t *testing.T) {
	s := told(tell(5*time.Minute, func(at time.Time) Facts { return healthy(at, 1) }))
	s.minutes = func(_ string, n int) []success.Minute {
		out := make([]success.Minute, n)
		out[n-2] = success.Minute{Share: success.Share{Good: 9, Total: 9}}
		out[n-1] = success.Minute{Share: success.Share{Good: 1, Total: 2}}
		return out
	}
	r := good()
	r.Minutes, r.MinutesMissed = 1, 0
	s.success[""] = r
	m := newMaker(s.recorder.picture(everyone{}), s.recorder.sources)
	c := m.successes()
	if len(c.Keys) != 3 || c.Keys[0].Value != "1" || c.Keys[1].Value != "0" || c.Keys[2].Value != "50.0 %" {
		t.Errorf("%+v", c.Keys)
	}
}

// The chart and the table of the dial can be compared.
func TestMovesAreToldApart(t *testing.T) {
	at := func(back time.Duration) time.Time { return noon().Add(-back) }
	moves := []Move{{At: at(time.Minute)}, {At: at(2 * time.Minute), Site: "shop"}, {At: at(3 * time.Minute)}, {At: at(2 * time.Hour)}}
	for n, want := range map[int]string{
		1: "1 of all sites within the last hour",
		3: "2 of all sites within the last hour, 1 of single sites",
		4: "2 of all sites within the last hour, 1 before, 1 of single sites",
	} {
		if got := moveWords(moves[:n], noon()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCausesAreWords(t *testing.T) {
	for _, cause := range []string{"load", "calm", "pin", "expiry", "schedule", "config", "restart"} {
		if got := causeOf(Move{Cause: cause}); got == cause || !strings.Contains(got, " ") {
			t.Errorf("%s: %q", cause, got)
		}
		if got := causeOf(Move{Cause: cause, Detail: "an operator has set it"}); got != "an operator has set it" {
			t.Errorf("%s: %q", cause, got)
		}
	}
}
