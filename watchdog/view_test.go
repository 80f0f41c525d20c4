package watchdog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/mail"
	"karui/watchdog/store"
)

// noon is when the pictures of the tests are taken.
func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

const every = 5 * time.Minute

// well is a site that is up, with sixty rounds behind it.
func well(id string) (SiteStatus, store.History) {
	s := SiteStatus{
		Site: id, Health: machine.Up, Since: noon().Add(-50 * time.Hour), Order: event.OrderProxy, GoodRoundsNeeded: 1, MaxSwapsPerDay: 12,
		Last: &store.Round{
			At: noon().Add(-100 * time.Second), Took: 231 * time.Millisecond, Verdict: machine.VerdictUp,
			Probes: []event.Probe{{OK: true, Text: "200, image/jpeg, 5.1 kB", Status: 200}},
		},
		NextRound:    noon().Add(200 * time.Second),
		Distribution: event.Distribution{ID: "E2EXAMPLE1SHOP", Group: "images", Proxy: "karui", Direct: "origin"}, Degrade: "auto", Restore: "auto",
	}
	s.Words = s.words()
	h := store.History{}
	for i := range 70 {
		h.Mark(store.Mark{At: s.Last.At.Add(-time.Duration(69-i) * every), Took: 200 * time.Millisecond, Verdict: machine.VerdictUp, Order: event.OrderProxy, Asked: 1})
	}
	return s, h
}

// fallen is a site that went down half an hour ago, and was degraded if direct says so.
func fallen(id string, direct bool) (SiteStatus, store.History) {
	s, h := well(id)
	s.Health, s.Since = machine.Down, noon().Add(-32*time.Minute)
	s.Last.Verdict, s.Last.Took = machine.VerdictDown, 49*time.Second
	s.Last.Probes = nil
	for range 5 {
		s.Last.Probes = append(s.Last.Probes, event.Probe{Kind: event.FailStatus, Status: 503, Text: "503, X-Karui-Reason: ping"})
	}
	s.Last.Origin = &event.Probe{OK: direct, Text: map[bool]string{true: "200, text/plain, 12 B", false: "no answer within 5s"}[direct]}
	s.Last.Controls = []event.Probe{{OK: true, Text: "403"}}
	for i := range 6 {
		m := &h.Rounds[len(h.Rounds)-1-i]
		m.Verdict, m.Asked, m.Failed, m.Kind, m.Took = machine.VerdictDown, 5, 5, event.FailStatus, 49*time.Second
		if direct {
			m.Order = event.OrderDirect
		}
	}
	if direct {
		s.Order, s.Degraded, s.GoodRoundsNeeded, s.Swaps = event.OrderDirect, noon().Add(-26*time.Minute), 2, 3
		s.Deploying = &store.Deploying{Order: event.OrderDirect, Since: noon().Add(-26 * time.Minute)}
		h.Tell(store.Told{ID: id + "-3", Kind: event.Degrade, At: h.Rounds[len(h.Rounds)-6].At.Add(3 * time.Second), Actor: event.ActorAuto, Before: event.OrderProxy, After: event.OrderDirect})
	} else {
		h.Tell(store.Told{ID: id + "-4", Kind: event.OriginSilent, At: noon().Add(-31 * time.Minute)})
	}
	s.Words = s.words()
	return s, h
}

// shown puts a picture together.
func shown(sites ...func() (SiteStatus, store.History)) picture {
	p := picture{status: Status{At: noon()}, histories: map[string]store.History{}, fates: map[string]string{}, interval: every, host: "watch-1", version: "v0.9.0"}
	for _, f := range sites {
		s, h := f()
		p.status.Sites = append(p.status.Sites, s)
		p.histories[s.Site] = h
	}
	return p
}

// wellAs and fallenAs are well and fallen for shown.
func wellAs(id string) func() (SiteStatus, store.History) {
	return func() (SiteStatus, store.History) { return well(id) }
}

func fallenAs(id string, direct bool) func() (SiteStatus, store.History) {
	return func() (SiteStatus, store.History) { return fallen(id, direct) }
}

// stories are the pictures that the page is looked at with.
func stories() map[string]picture {
	healthy := shown(wellAs("shop"), wellAs("news"), wellAs("festival-2026.example"))
	h := healthy.histories["news"]
	for i, v := range []machine.Verdict{machine.VerdictDown, machine.VerdictDown, machine.Inconclusive} {
		h.Rounds[40+i].Verdict, h.Rounds[40+i].Order = v, event.OrderDirect
	}
	h.Tell(store.Told{ID: "n-1", Kind: event.Degrade, At: h.Rounds[40].At.Add(time.Second), Actor: event.ActorAuto})
	h.Tell(store.Told{ID: "n-2", Kind: event.Restore, At: h.Rounds[43].At.Add(time.Second), Actor: event.ActorPerson, Person: "satou"})
	healthy.histories["news"] = h
	healthy.fates["n-1"], healthy.fates["n-2"] = mail.FateSent, mail.FateSent

	degraded := shown(wellAs("news"), fallenAs("shop", true))
	degraded.fates["shop-3"] = mail.FateWaiting
	degraded.status.Mails, degraded.status.OldestMail = 1, noon().Add(-26*time.Minute)
	degraded.trouble = "connect to mail.example.com:587: connection refused; see that the address is right and that a firewall lets the watchdog through"

	down := shown(fallenAs("shop", false), fallenAs("news", true), wellAs("wiki"))

	odd := shown(wellAs("news"), wellAs("shop"))
	for i := range odd.status.Sites {
		s := &odd.status.Sites[i]
		s.Last.Verdict = machine.Inconclusive
		s.Last.Probes = []event.Probe{{Kind: event.FailDNS, Text: "no such host"}}
		s.Words = s.words()
		h := odd.histories[s.Site]
		for n := range 3 {
			h.Rounds[len(h.Rounds)-1-n].Verdict = machine.Inconclusive
		}
		h.Rounds = append(h.Rounds[:20:20], h.Rounds[30:]...) // nobody looked for a while
		odd.histories[s.Site] = h
	}

	fresh := shown(func() (SiteStatus, store.History) {
		s := SiteStatus{Site: "shop", NextRound: noon().Add(7 * time.Second), MaxSwapsPerDay: 12}
		s.Words = s.words()
		return s, store.History{}
	})

	var many []func() (SiteStatus, store.History)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		id := fmt.Sprintf("customer-%03d.with-a-rather-long-name.example", i)
		switch n := rng.IntN(40); n {
		case 0, 1:
			many = append(many, fallenAs(id, n == 0))
		default:
			many = append(many, wellAs(id))
		}
	}
	return map[string]picture{"healthy": healthy, "degraded": degraded, "down": down, "inconclusive": odd, "fresh": fresh, "many": shown(many...)}
}

func TestTheVerdictNamesTheWorst(t *testing.T) {
	held, manual := shown(wellAs("a")), shown(wellAs("a"))
	for p, restore := range map[*picture]string{&held: "auto", &manual: "manual"} {
		s := &p.status.Sites[0]
		s.Order, s.Restore, s.Held = event.OrderDirect, restore, restore == "auto"
	}
	unread, late, broken := shown(wellAs("a")), shown(wellAs("a"), wellAs("b")), shown(wellAs("a"))
	unread.status.Sites[0].Last.OrderError = "AccessDenied"
	late.status.Sites[1].Late = true
	broken.status.Sites[0].Error = "read state of a: permission denied"
	mailless := shown(wellAs("a"))
	mailless.status.Mails, mailless.status.OldestMail = 3, noon().Add(-time.Hour)
	all := stories()
	for name, c := range map[string]struct {
		p           picture
		tone, title string
		words       []string // of the sites, in their order
	}{
		"healthy":      {all["healthy"], toneGood, "All 3 sites are up", []string{wordUp, wordUp, wordUp}},
		"degraded":     {all["degraded"], toneWarn, "1 site is down and degraded", []string{wordDegraded, wordUp}},
		"down":         {all["down"], toneBad, "1 site is down and not degraded", []string{wordDown, wordDegraded, wordUp}},
		"inconclusive": {all["inconclusive"], toneWarn, "2 sites could not be judged", []string{wordOdd, wordOdd}},
		"fresh":        {all["fresh"], tonePlain, "Nothing has been looked at yet", []string{wordNew}},
		"held":         {held, toneWarn, "1 site is up and still degraded", []string{wordHeld}},
		"manual":       {manual, toneWarn, "1 site is up and still degraded", []string{wordAwaited}},
		"unread":       {unread, toneWarn, "1 site needs a look", []string{wordBlind}},
		"late":         {late, toneBad, "1 site is not watched as it should be", []string{wordLate, wordUp}},
		"broken":       {broken, toneBad, "1 site is not watched as it should be", []string{wordLate}},
		"mail":         {mailless, toneWarn, "The site is up", []string{wordUp}},
		"none":         {shown(), tonePlain, "Nothing has been looked at yet", nil},
	} {
		v := c.p.view()
		if v.Tone != c.tone || v.Title != c.title {
			t.Errorf("%s: %s: %q", name, v.Tone, v.Title)
		}
		var words []string
		for _, s := range v.Sites {
			words = append(words, s.Word)
		}
		if fmt.Sprint(words) != fmt.Sprint(c.words) {
			t.Errorf("%s: %q", name, words)
		}
		if (v.Tone == toneWarn || v.Tone == toneBad) != (len(v.Concerns) > 0) {
			t.Errorf("%s: %s with the concerns %v", name, v.Tone, v.Concerns)
		}
	}
	v := all["many"].view()
	if len(v.Sites) != fewSites || v.More != 200-fewSites || v.Sites[0].Word != wordDown || len(v.Concerns) != 9 {
		t.Errorf("%d sites, %d more, %d concerns", len(v.Sites), v.More, len(v.Concerns))
	}
	p := all["many"]
	p.all = true
	if v := p.view(); len(v.Sites) != 200 || v.More != 0 {
		t.Errorf("%d sites, %d more", len(v.Sites), v.More)
	}
}

func TestColumns(t *testing.T) {
	_, h := fallen("shop", true)
	h.Rounds = append(h.Rounds[:40:40], h.Rounds[50:]...)
	h.Rounds[len(h.Rounds)-1].Verdict = machine.Inconclusive
	cols := columns(h, every)
	if len(cols) != stripRounds {
		t.Fatalf("%d columns", len(cols))
	}
	var b strings.Builder
	for _, c := range cols {
		switch {
		case c.gap:
			b.WriteByte(' ')
		case c.verdict == machine.VerdictUp:
			b.WriteByte('u')
		case c.verdict == machine.VerdictDown:
			b.WriteByte('D')
		default:
			b.WriteByte('?')
		}
		if c.degraded {
			b.WriteByte('v')
		}
	}
	if got := b.String(); got != strings.Repeat("u", 39)+" "+strings.Repeat("u", 14)+"DvDDDD?" {
		t.Errorf("%q", got)
	}
	if got := stripWords(cols); got != "last 59 rounds: 53 up, 5 down, 1 inconclusive; 1 move of the order; 1 gap in which nobody looked" {
		t.Error(got)
	}
	if got := stripWords(columns(store.History{}, every)); got != "no round yet" {
		t.Error(got)
	}
	// Told before anything that is kept.
	h = store.History{Rounds: []store.Mark{{At: noon(), Verdict: machine.VerdictUp}}, Told: []store.Told{{Kind: event.Degrade, At: noon().Add(-time.Hour)}}}
	if cols := columns(h, every); len(cols) != 1 || cols[0].degraded {
		t.Errorf("%+v", cols)
	}
	if s := string(strip(cols, `<a "b">`)); strings.Contains(s, "<a ") || !strings.Contains(s, "&lt;a &#34;b&#34;&gt;") {
		t.Error(s)
	}
}

// Every kind of event has words of its own.
func TestToldWords(t *testing.T) {
	seen := map[string]event.Kind{}
	for _, k := range event.Kinds() {
		_, word, text := toldWords(store.Told{Kind: k, Actor: event.ActorPerson})
		if word == "" || text == "" || seen[word] != "" {
			t.Errorf("%s: %q %q, as %s", k, word, text, seen[word])
		}
		seen[word] = k
	}
}
