package status

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"karui/internal/api"
	"karui/proxy/origin"
	"karui/proxy/success"
)

// The first thing on the page is the site that has lost its only origin, in red.
func TestSiteWithoutItsOriginComesFirst(t *testing.T) {
	s := noOrigin()
	_, body := ask(t, s.handler(t), Path)
	body = html.UnescapeString(body)
	for _, words := range []string{
		`<div class="banner bad">` + "\n" + `  <h1 id="verdict-title" data-announce>blog: its origin main answers nothing. One thing is to be looked at.</h1>`,
		`<ul class="concerns"><li><a class="pill bad" href="#places">site</a> <span>blog: its origin main answers nothing (11 of 11 in the last minute: connection refused); 0.0 % of 11 requests of the last full minute were answered well.</span>`,
		`three nines are aimed at. Most was lost at blog (origin).`,
		`<tr class="bad" data-site="blog"><th scope="row">blog</th>`,
		`<tr class="warn" data-site="shop"><th scope="row">shop</th>`,
		`under 99.99 % in 24 h`,
		`<tr class="bad" data-place="main">`,
		`Place main answers nothing <small>11 of 11 tries within a minute failed: connection refused</small>`,
	} {
		if !strings.Contains(body, words) {
			t.Errorf("the page lacks %s\n%s", words, body[strings.Index(body, "<section"):][:1500])
		}
	}
	if strings.Contains(body, "nothing is tried twice for") {
		t.Error("what follows from it is said beside it")
	}
}

func TestPlacesTrouble(t *testing.T) {
	place := func(name string, tries, failed int) origin.PlaceStatus {
		return origin.PlaceStatus{Name: name, InUse: true, State: origin.StateIn, Tries: tries, Unavailable: failed, LastFailure: "connection refused"}
	}
	full := place("main", 40, 0)
	full.Overloaded, full.LastFailure = 40, "it answers 503"
	out := place("spare", 0, 0)
	out.InUse = false
	for name, c := range map[string]struct {
		places     []origin.PlaceStatus
		silent     bool
		tone, text string
	}{
		"well":                   {[]origin.PlaceStatus{place("main", 100, 0)}, false, "", ""},
		"not asked":              {[]origin.PlaceStatus{place("main", 0, 0)}, true, "", ""},
		"one failure is chance":  {[]origin.PlaceStatus{place("main", 1, 1)}, false, "", ""},
		"one, after many":        {[]origin.PlaceStatus{place("main", 1, 1)}, true, toneBad, "its origin main answers nothing (1 of 1 in the last minute: connection refused)"},
		"all":                    {[]origin.PlaceStatus{place("main", 3, 3)}, false, toneBad, "its origin main answers nothing (3 of 3 in the last minute: connection refused)"},
		"overloaded":             {[]origin.PlaceStatus{full}, false, toneBad, "its origin main turns every request away (40 of 40 in the last minute: it answers 503)"},
		"half":                   {[]origin.PlaceStatus{place("main", 20, 10)}, false, toneBad, "its origin main fails (10 of 20 in the last minute: connection refused)"},
		"a tenth of a sole one":  {[]origin.PlaceStatus{place("main", 50, 5)}, false, toneWarn, "its origin main fails (5 of 50 in the last minute: connection refused)"},
		"less":                   {[]origin.PlaceStatus{place("main", 51, 5)}, false, "", ""},
		"one of two":             {[]origin.PlaceStatus{place("main", 5, 5), place("second", 100, 0)}, false, "", ""},
		"both":                   {[]origin.PlaceStatus{place("main", 5, 5), place("second", 9, 9)}, false, toneBad, "its 2 origins answer nothing (14 of 14 in the last minute: connection refused)"},
		"the one that is in use": {[]origin.PlaceStatus{out, place("second", 9, 9)}, false, toneBad, "its origin second answers nothing (9 of 9 in the last minute: connection refused)"},
	} {
		silent := map[placeName]bool{{"blog", "main"}: c.silent}
		got, ok := placesTrouble(origin.PlacesStatus{Site: "blog", Places: c.places}, silent)
		if ok != (c.tone != "") || got.tone != c.tone || got.text != c.text {
			t.Errorf("%s: %t %s %q", name, ok, got.tone, got.text)
		}
	}
}

// A place is silent from its third failure until it answers, however few are tried.
func TestSilentPlaces(t *testing.T) {
	var silent map[placeName]bool
	for i, c := range []struct {
		tries, failed int
		want          bool
	}{{2, 2, false}, {3, 2, false}, {3, 3, true}, {1, 1, true}, {0, 0, true}, {1, 1, true}, {2, 1, false}, {1, 1, false}, {20, 20, true}} {
		silent = silentPlaces(silent, []origin.PlacesStatus{{Site: "blog", Places: []origin.PlaceStatus{{Name: "main", Tries: c.tries, TimedOut: c.failed}}}})
		if got := silent[placeName{"blog", "main"}]; got != c.want {
			t.Errorf("step %d: %t", i, got)
		}
	}
	if len(silentPlaces(silent, nil)) != 0 {
		t.Error("a place that is gone is kept")
	}
}

func TestShareTrouble(t *testing.T) {
	minute := func(good, total uint64) success.Minute {
		return success.Minute{Share: success.Share{Good: good, Total: total}}
	}
	for name, c := range map[string]struct {
		last    success.Share
		before  []success.Minute
		refused counts
		text    string
		loses   int
	}{
		"well":            {success.Share{Good: 100, Total: 100}, nil, counts{}, "", 0},
		"missed by a few": {success.Share{Good: 90, Total: 100}, nil, counts{byOrigin: 10}, "", 0},
		"far below":       {success.Share{Good: 42, Total: 100}, nil, counts{byLatency: 58}, "42.0 % of 100 requests of the last full minute were answered well, mostly latency: it took too long", losesTime},
		"for the origin":  {success.Share{Good: 42, Total: 100}, nil, counts{byOrigin: 50, byPanic: 8}, "42.0 % of 100 requests of the last full minute were answered well, mostly origin: the origin could not be reached, or failed", losesPictures},
		"few at a time":   {success.Share{Total: 1}, []success.Minute{minute(0, 1), minute(1, 2), minute(0, 1), minute(0, 0), minute(0, 1), minute(0, 7)}, counts{}, "20.0 % of 5 requests of the last 5 minutes were answered well", losesTime},
		"one is chance":   {success.Share{Total: 2}, []success.Minute{minute(0, 2), minute(0, 3)}, counts{}, "", 0},
		"nobody asked":    {success.Share{}, nil, counts{}, "", 0},
	} {
		got, ok := shareTrouble("shop", recentOf(c.last, c.before), c.refused)
		if ok != (c.text != "") || got.text != c.text || got.loses != c.loses {
			t.Errorf("%s: %t %q %d", name, ok, got.text, got.loses)
		}
	}
}

// What viewers lose comes before what they wait for, and that before lost bytes; the
// worst of many sites are named one by one.
func TestConcernsAreRankedByWhatViewersLose(t *testing.T) {
	s := told(tell(20*time.Minute, func(at time.Time) Facts {
		f := healthy(at, 12)
		f.Workers.Fast.Alive = 0
		f.Cache.Volumes = append(f.Cache.Volumes, api.VolumeStats{Path: "/mnt/b", State: "out"})
		f.Groups[0].Shedding = true
		for i := range 6 {
			p := &f.Places[i]
			p.Places = p.Places[:1]
			p.Places[0].Tries, p.Places[0].TimedOut, p.Places[0].LastFailure = 10+i, 10+i, "no answer in time"
		}
		return f
	}))
	m := newMaker(s.recorder.picture(everyone{}), s.recorder.sources)
	var got []string
	for _, c := range m.judge() {
		if c.Tone == toneBad {
			got = append(got, c.Text)
		}
	}
	want := []string{"customer-005: its origin tokyo answers nothing", "recipes: ", "travel-jp: ", "Other sites do badly too: photos, news, shop.", "Requests of all kinds", "No worker process", "Out of use, since their disks"}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%d is %q, want %q", i, got[i], want[i])
		}
	}
	if _, title := verdict(m.judge()); title != "customer-005: its origin tokyo answers nothing. 6 more things are wrong." {
		t.Errorf("%q", title)
	}
}

// A place that answers every request with an error answers, and brings nothing all the same.
func TestOriginThatBringsNothingNew(t *testing.T) {
	for name, c := range map[string]struct {
		last counts
		want bool
	}{
		"hits hide it":   {counts{hit: 160, original: 3, byOrigin: 12}, true},
		"two are chance": {counts{hit: 160, byOrigin: 2}, false},
		"some were had":  {counts{hit: 160, miss: 1, byOrigin: 12}, false},
		"pages were had": {counts{hit: 160, bypass: 1, byOrigin: 12}, false},
		"not the origin": {counts{hit: 160, byLatency: 12}, false},
	} {
		if got, ok := newTrouble("shop", c.last); ok != c.want || ok && got.text != "nothing new can be had from its origin (all of 12 requests in the last full minute failed; the log says why)" {
			t.Errorf("%s: %t %q", name, ok, got.text)
		}
	}
}

// What is said of all of karui, or was asked for, is not said of each site again.
func TestTroubleIsSaidOnce(t *testing.T) {
	bad := good()
	bad.LastMinute.Good = 240
	for name, c := range map[string]struct {
		reason string
		change func(*Facts)
		want   int
	}{
		"disk":                {"503_disk", func(f *Facts) { f.DiskFull = true }, 0},
		"drain":               {"503_drain", func(f *Facts) { f.Ready = false }, 0},
		"an operator's word":  {"503_shed", func(f *Facts) { f.Shed["shop"] = Shed{Percent: 90} }, 0},
		"latency":             {"503_latency", func(f *Facts) { f.Groups[2].Shedding = true }, 0},
		"latency, by now not": {"503_latency", func(*Facts) {}, 1},
		"panic":               {"503_panic", func(*Facts) {}, 1},
	} {
		s := told(tell(20*time.Minute, func(at time.Time) Facts {
			f := healthy(at, 1)
			f.Sites[0].Requests[c.reason] = since(at, 100)
			c.change(&f)
			return f
		}))
		s.success["shop"] = bad
		if m := newMaker(s.recorder.picture(everyone{}), s.recorder.sources); len(m.trouble) != c.want {
			t.Errorf("%s: %+v", name, m.trouble)
		}
	}
}

// An edge that names no site for most requests takes the variants from all viewers.
func TestEdgeThatNamesNoSite(t *testing.T) {
	s := told(tell(20*time.Minute, func(at time.Time) Facts {
		f := healthy(at, 1)
		f.Unrouted["503_route"] = since(at, 400)
		return f
	}))
	m := newMaker(s.recorder.picture(everyone{}), s.recorder.sources)
	if found := m.judge(); found[0].Tone != toneBad || found[0].Word != "edge" {
		t.Errorf("%+v", found)
	}
}
