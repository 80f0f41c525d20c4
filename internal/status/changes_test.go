package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"karui/internal/api"
	"karui/proxy/origin"
)

// everyone may see everything, and these only some sites.
type everyone struct{}

func (everyone) Whole() bool     { return true }
func (everyone) May(string) bool { return true }

type these []string

func (these) Whole() bool            { return false }
func (s these) May(site string) bool { return slices.Contains(s, site) }

func TestChanges(t *testing.T) {
	at := noon().Add(time.Minute)
	for name, c := range map[string]struct {
		change func(f *Facts)
		// back is the event of the way back, empty for none.
		kind, tone, site, text, cause, back string
	}{
		"dial": {func(f *Facts) {
			f.Dial.Moves = []Move{{At: at, From: "full", To: "lean", Level: 1, Cause: "load", Detail: "busy"}}
		}, "dial", toneWarn, "", "from full to lean", "busy", ""},
		"dial of a site": {func(f *Facts) {
			f.Dial.Moves = []Move{{At: at, Site: "shop", From: "lean", To: "full", Cause: "pin"}}
		}, "dial", toneGood, "shop", "from lean to full", "an operator's word", ""},
		"share": {func(f *Facts) { f.Shed["shop"] = Shed{Percent: 30} }, "shedding", toneWarn, "shop", "30 % of requests", "until it is changed", "nothing away any more"},
		"latency of a site": {func(f *Facts) {
			f.Groups[2].Shedding, f.Groups[2].Since = true, at.Add(-3*time.Second)
		}, "shedding", toneBad, "shop", "Fetches of new pictures are turned away", "reached 3.0 s", "answered again"},
		"latency of all": {func(f *Facts) { f.Groups[0].Shedding = true }, "shedding", toneBad, "", "Requests of all kinds", "reached 3.0 s", "answered again"},
		"disk":           {func(f *Facts) { f.DiskFull = true }, "shedding", toneBad, "", "503 disk", "at 95 % and over", "answered again"},
		"ready":          {func(f *Facts) { f.Ready = false }, "health", toneBad, "", "Not ready", "drains", "succeed"},
		"volume":         {func(f *Facts) { f.Cache.Volumes[0].State = "out" }, "volume", toneBad, "", "/var/cache/karui is out of use", "errors", "in use again"},
		"volume read":    {func(f *Facts) { f.Cache.Volumes[0].State = "readonly" }, "volume", toneWarn, "", "is now readonly", "", "in use again"},
		"workers":        {func(f *Facts) { f.Workers.Ended["crash"] = 2 }, "workers", toneWarn, "", "2 worker processes ended", "crash: it died", ""},
		"quarantine": {func(f *Facts) {
			f.Quarantine = []api.Quarantined{{Digest: strings.Repeat("ab", 32), Cause: "crash", Held: true, Until: at.Add(time.Hour)}}
		}, "quarantine", toneWarn, "", "Original abababababab is left alone", "crash", "may be tried again"},
		"place out":  {func(f *Facts) { f.Places[0].Places[0].State = origin.StateOut }, "place", toneWarn, "shop", "Place tokyo is out", "an operator's word", "tokyo is in"},
		"place down": {func(f *Facts) { f.Places[0].Places[0].State = origin.StateDown }, "place", toneBad, "shop", "tokyo is down", "heartbeat", "tokyo is in"},
		"place sick": {func(f *Facts) { f.Places[0].Places[0].State = origin.StateSick }, "place", toneWarn, "shop", "tokyo is sick", "timed out", "tokyo is in"},
		"place silent": {func(f *Facts) {
			p := &f.Places[0].Places[0]
			p.Tries, p.Unavailable, p.LastFailure = 4, 4, "connection refused"
			f.silent = silentPlaces(nil, f.Places)
		}, "place", toneBad, "shop", "tokyo answers nothing", "4 of 4 tries within a minute failed: connection refused", "tokyo answers again"},
		"retries":    {func(f *Facts) { f.Places[0].Retries = "cut" }, "retries", toneWarn, "shop", "Second tries are cut", "too many", "are on"},
		"reload":     {func(f *Facts) { f.ReloadedAt = at.Add(-time.Second) }, "configuration", tonePlain, "", "was reloaded", "", "was reloaded"},
		"bad reload": {func(f *Facts) { f.Reloaded = false }, "configuration", toneBad, "", "cannot be used", "log", ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := healthy(noon(), 1), healthy(noon(), 1)
			before.At, after.At = noon(), at
			if got := changes(&before, &after); len(got) != 0 {
				t.Fatalf("nothing happened: %+v", got)
			}
			c.change(&after)
			got := changes(&before, &after)
			if len(got) != 1 {
				t.Fatalf("%d events: %+v", len(got), got)
			}
			if e := got[0]; e.Kind != c.kind || e.Tone != c.tone || e.Site != c.site || !strings.Contains(e.Text, c.text) || !strings.Contains(e.Cause, c.cause) ||
				e.At.After(at) || !e.At.After(noon()) {
				t.Errorf("%+v", e)
			}
			before.At = after.At.Add(time.Minute)
			again := changes(&after, &before)
			switch {
			case c.back == "" && len(again) != 0, c.back != "" && (len(again) != 1 || !strings.Contains(again[0].Text, c.back)):
				t.Errorf("on the way back: %+v", again)
			}
		})
	}
}

// A new site, place or volume is no event, and neither is one that is gone.
func TestWhatIsNewHasNotChanged(t *testing.T) {
	few, many := healthy(noon(), 1), healthy(noon(), 4)
	many.Places[2].Places[0].State = origin.StateDown
	if got := changes(&few, &many); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	many.Cache, many.Workers = nil, nil
	if got := changes(&many, &few); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestManyEventsAreBounded(t *testing.T) {
	before, after := healthy(noon(), 100), healthy(noon(), 100)
	for i := range after.Places {
		after.Places[i].Places[0].State = origin.StateDown
	}
	if got := changes(&before, &after); len(got) != maxAtOnce+1 || !strings.Contains(got[maxAtOnce].Text, "80 more") {
		t.Errorf("%d events", len(got))
	}
	var j journal
	for i := range 3 * maxEvents {
		j.add(Event{At: noon().Add(time.Duration(i%7) * time.Second), Text: strings.Repeat("長", 1000)})
	}
	if len(j.events) != maxEvents || len(j.events[0].Text) > maxText+len("…") {
		t.Errorf("%d events, the first of %d bytes", len(j.events), len(j.events[0].Text))
	}
	for i := range j.events[1:] {
		if j.events[i].At.After(j.events[i+1].At) {
			t.Fatal("events out of order")
		}
	}
}

// What one token or one site brings takes no place of what others have to know.
func TestNobodyFillsTheJournal(t *testing.T) {
	for name, flood := range map[string]func(i int) Event{
		"refused":  func(i int) Event { return Event{Kind: "operator", Caller: "blog", Site: "blog", Refused: true} },
		"done":     func(i int) Event { return Event{Kind: "operator", Caller: "blog", Site: "blog"} },
		"purges":   func(i int) Event { return Event{Kind: "purge", Site: "blog"} },
		"two ways": func(i int) Event { return Event{Kind: "operator", Site: "blog", Caller: []string{"blog", ""}[i%2]} },
	} {
		r := NewRecorder(Sources{Facts: func() Facts { return Facts{Ready: true} }}, noon)
		r.Note(Event{Kind: "volume", Text: "Volume /a is out of use", Machine: true})
		for i := range 30 {
			r.Note(Event{Kind: "purge", Site: "shop"})
			r.Note(Event{Kind: "operator", Caller: "ops", Text: fmt.Sprint(i)})
		}
		for i := range 3 * maxEvents {
			r.Note(flood(i))
		}
		kinds := map[party]int{}
		for _, e := range r.Events(everyone{}) {
			kinds[e.party()]++
		}
		if kinds[party{}] != 2 || kinds[party{site: "shop"}] != 30 || kinds[party{caller: "ops"}] != 30 || kinds[party{caller: "blog"}]+kinds[party{site: "blog"}] == 0 {
			t.Errorf("%s: %v", name, kinds)
		}
	}
}

// Refused requests of one token become one event, which counts them.
func TestRefusedRequestsAreMerged(t *testing.T) {
	now := noon()
	r := NewRecorder(Sources{Facts: func() Facts { return Facts{Ready: true} }}, func() time.Time { return now })
	refused := func(caller, text string) { r.Note(Event{Kind: "operator", Caller: caller, Refused: true, Text: text}) }
	for i := range 210 {
		now = now.Add(time.Minute)
		refused("blog", fmt.Sprint("request ", i))
	}
	refused("ops", "another's")
	r.Note(Event{Kind: "operator", Caller: "blog", Text: "allowed"})
	now = now.Add(mergeWithin + time.Second)
	refused("blog", "much later")
	var got []string
	for _, e := range r.Events(everyone{}) {
		got = append(got, fmt.Sprint(e.Text, " ", e.Times))
	}
	if want := "much later 1, allowed 0, another's 1, request 209 210, karui was started 0"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if rows := (&maker{picture: r.picture(everyone{})}).journal(); !strings.Contains(rows[3].Cause, "the last of 210") {
		t.Errorf("%+v", rows)
	}
}

// However many look, karui is looked at once a second; and it is looked at while
// nobody does.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		r := NewRecorder(Sources{Facts: func() Facts { return Facts{Ready: looks.Add(1) < 3} }}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		synctest.Wait()
		for range 100 {
			r.picture(everyone{})
		}
		if looks.Load() != 1 {
			t.Errorf("%d looks at once", looks.Load())
		}
		<-time.After(time.Minute + time.Second)
		cancel()
		<-done
		if looks.Load() != 31 {
			t.Errorf("%d looks within a minute", looks.Load())
		}
		if events := r.Events(everyone{}); len(events) != 2 || events[0].Kind != "health" || events[1].Kind != "start" {
			t.Errorf("%+v", events)
		}
	})
}
