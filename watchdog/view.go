package watchdog

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"karui/internal/page"
	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/store"
)

// Tones are classes of the style sheet.
const (
	toneGood  = "good"
	tonePlain = "plain"
	toneWarn  = "warn"
	toneBad   = "bad"
)

// fewSites is how many sites are shown unless all are asked for; those that need a
// look come first.
const fewSites = 50

// picture is everything that the page is made from.
type picture struct {
	status    Status
	histories map[string]store.History
	// fates are of the mails that the histories tell of, by their ID.
	fates map[string]string
	// trouble is why mails do not go out, empty if they do or nobody knows.
	trouble  string
	interval time.Duration
	host     string
	version  string
	// all: also the sites that are well, however many they are.
	all bool
}

// view is the page.
type view struct {
	Host, Version, Now string
	Style              string
	Tone, Title, Lead  string
	Concerns           []concern
	Figures            []figure
	Sites              []siteView
	More               int
	All                bool
	Few                int
	Legend             []sign
	Interval           string
	Rounds             int
	Mails              []mailView
	Outbox             string
	OutboxTone         string
}

type concern struct{ Tone, Word, Text, Where string }

type figure struct{ Name, Value, Unit, More, Tone string }

type siteView struct {
	ID, Tone, Word, Words string
	Order                 string
	Strip                 template.HTML
	Last, Next            string
	Facts                 []fact
	Probes                []probeView
	rank                  int
}

type fact struct{ Name, Value, Tone string }

type probeView struct{ Name, Sign, Tone, Text string }

type mailView struct{ ISO, At, Tone, Kind, Site, Text, Fate string }

// look makes the page.
func (p picture) view() view {
	at := p.status.At
	v := view{
		Host: p.host, Version: p.version, Now: page.Clock(at, at), Legend: legend(), All: p.all, Few: fewSites, Interval: page.Long(p.interval), Rounds: stripRounds,
	}
	counts := map[string]int{}
	for _, s := range p.status.Sites {
		one := p.site(s)
		counts[one.Word]++
		counts[one.Tone]++
		if one.Tone == toneBad || one.Tone == toneWarn {
			v.Concerns = append(v.Concerns, concern{one.Tone, one.ID, one.Words, "site-" + one.ID})
		}
		v.Sites = append(v.Sites, one)
	}
	byRank := func(a, b siteView) int { return cmp.Compare(a.rank, b.rank) } // the others stay in the configuration's order
	slices.SortStableFunc(v.Sites, byRank)
	slices.SortStableFunc(v.Concerns, func(a, b concern) int { return strings.Compare(a.Tone, b.Tone) }) // bad, warn
	if !p.all && len(v.Sites) > fewSites {
		v.Sites, v.More = v.Sites[:fewSites], len(v.Sites)-fewSites
	}
	const most = 8
	if n := len(v.Concerns); n > most {
		v.Concerns = append(v.Concerns[:most], concern{toneWarn, "more", "and " + page.Plural(n-most, "further site"), "sites"})
	}
	p.outbox(&v)
	p.verdict(&v, counts)
	v.Figures = p.figures(counts)
	v.Mails = p.mails()
	return v
}

// verdict says in a sentence how things are.
func (p picture) verdict(v *view, counts map[string]int) {
	n := len(p.status.Sites)
	sites := func(n int, one, many string) string {
		if n == 1 {
			return "1 site " + one
		}
		return fmt.Sprintf("%d sites %s", n, many)
	}
	undegraded, degraded := counts[wordDown], counts[wordDegraded]
	waiting := counts[wordAwaited] + counts[wordReturning] + counts[wordHeld]
	switch {
	case counts[toneBad] > 0 && undegraded > 0:
		v.Tone, v.Title = toneBad, sites(undegraded, "is down and not degraded", "are down and not degraded")
		v.Lead = "The edge still asks the proxy first. It fails over by itself for each request, as long as the origin group is set up for that."
	case counts[toneBad] > 0:
		v.Tone, v.Title = toneBad, sites(counts[toneBad], "is not watched as it should be", "are not watched as they should be")
		v.Lead = "What follows is the last that is known."
	case degraded > 0:
		v.Tone, v.Title = toneWarn, sites(degraded, "is down and degraded", "are down and degraded")
		v.Lead = "Viewers get their images from the true origin, in their original format."
	case waiting > 0:
		v.Tone, v.Title = toneWarn, sites(waiting, "is up and still degraded", "are up and still degraded")
		v.Lead = "Viewers get their images from the true origin until the proxy comes first again."
	case counts[wordOdd] > 0:
		v.Tone, v.Title = toneWarn, sites(counts[wordOdd], "could not be judged", "could not be judged")
		v.Lead = "Neither the proxy nor the control addresses answered: the watchdog’s own network may be gone. Nothing is done meanwhile."
	case counts[toneWarn] > 0:
		v.Tone, v.Title = toneWarn, sites(counts[toneWarn], "needs a look", "need a look")
	case n == 0 || counts[tonePlain] == n:
		v.Tone, v.Title, v.Lead = tonePlain, "Nothing has been looked at yet", "The first round comes within moments."
	case n == 1:
		v.Tone, v.Title, v.Lead = toneGood, "The site is up", "Its images come from the proxy."
	default:
		v.Tone, v.Title, v.Lead = toneGood, fmt.Sprintf("All %d sites are up", n), "Their images come from the proxy."
		if left := counts[tonePlain]; left > 0 {
			v.Title = fmt.Sprintf("%d of %d sites are up", n-left, n)
			v.Lead = "The others have not been looked at yet."
		}
	}
	if v.OutboxTone != "" {
		v.Concerns = append(v.Concerns, concern{v.OutboxTone, "mail", v.Outbox, "mails"})
		if v.Tone == toneGood {
			v.Tone, v.Lead = toneWarn, v.Lead+" Mails do not go out."
		}
	}
}

// figures are the numbers below the verdict.
func (p picture) figures(counts map[string]int) []figure {
	at := p.status.At
	up, direct, swaps := 0, 0, 0
	var next time.Time
	for _, s := range p.status.Sites {
		if s.Health == machine.Up {
			up++
		}
		if s.Order == event.OrderDirect {
			direct++
		}
		swaps += s.Swaps
		if !s.NextRound.IsZero() && (next.IsZero() || s.NextRound.Before(next)) {
			next = s.NextRound
		}
	}
	n := len(p.status.Sites)
	upTone, directTone, mailTone := "", "", ""
	if up+counts[tonePlain] < n {
		upTone = toneWarn
	}
	if counts[toneBad] > 0 {
		upTone = toneBad
	}
	if direct > 0 {
		directTone = toneWarn
	}
	waiting, oldest := page.Count(p.status.Mails), "all have gone out"
	switch {
	case p.status.MailError != "":
		waiting, oldest, mailTone = "?", "the outbox cannot be read", toneBad
	case p.status.Mails > 0:
		oldest, mailTone = "the oldest for "+page.Long(at.Sub(p.status.OldestMail)), toneWarn
	}
	check, in := "not known", ""
	if !next.IsZero() {
		check, in = page.Clock(next, at), "every "+page.Long(p.interval)
	}
	return []figure{
		{"Proxies up", page.Count(up), fmt.Sprintf("of %d", n), "as the last conclusive rounds found them", upTone},
		{"True origin first", page.Count(direct), fmt.Sprintf("of %d", n), "sites that are degraded", directTone},
		{"Inconclusive", page.Count(counts[wordOdd]), "", "sites whose last round could not tell", map[bool]string{true: toneWarn}[counts[wordOdd] > 0]},
		{"Swaps", page.Count(swaps), "in 24 h", "by the watchdog itself", ""},
		{"Mails waiting", waiting, "", oldest, mailTone},
		{"Next check", check, "", in, map[bool]string{true: "none"}[next.IsZero()]},
	}
}

// outbox says how mail goes.
func (p picture) outbox(v *view) {
	s := p.status
	switch {
	case s.MailError != "":
		v.Outbox, v.OutboxTone = "The outbox cannot be read: "+s.MailError, toneBad
	case s.Mails > 0 && s.At.Sub(s.OldestMail) > mailPatience:
		v.Outbox, v.OutboxTone = fmt.Sprintf("%s cannot be sent, the oldest for %s: %s",
			page.Plural(s.Mails, "mail"), page.Long(s.At.Sub(s.OldestMail)), cmp.Or(p.trouble, "the log says why")), toneWarn
	case s.Mails > 0:
		v.Outbox = page.Plural(s.Mails, "mail") + " on the way."
	default:
		v.Outbox = "No mail is waiting."
	}
}

// mailPatience is how long a mail may wait before that is a concern: several tries.
const mailPatience = 2 * time.Minute

// mails are what operators were told of last, of all sites, the newest first.
func (p picture) mails() []mailView {
	type line struct {
		site string
		store.Told
	}
	var all []line
	for _, s := range p.status.Sites {
		for _, t := range p.histories[s.Site].Told {
			all = append(all, line{s.Site, t})
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return b.At.Compare(a.At) })
	const most = 20
	var out []mailView
	for _, t := range all[:min(len(all), most)] {
		tone, kind, text := toldWords(t.Told)
		out = append(out, mailView{
			ISO: t.At.UTC().Format(time.RFC3339), At: page.Clock(t.At, p.status.At), Tone: tone, Kind: kind, Site: t.site, Text: text, Fate: p.fates[t.ID],
		})
	}
	return out
}

// toldWords says what an event was about.
func toldWords(t store.Told) (tone, kind, text string) {
	who := ""
	switch t.Actor {
	case event.ActorPerson:
		who = " by " + cmp.Or(t.Person, "somebody") + "’s command"
	case event.ActorRehearsal:
		who = " by a rehearsal"
	}
	to := func(o event.Order) string {
		switch o {
		case event.OrderProxy:
			return "restore"
		case event.OrderDirect:
			return "degrade"
		}
		return "move"
	}
	switch t.Kind {
	case event.Degrade:
		return toneWarn, "degraded", "the true origin comes first" + who
	case event.Restore:
		return toneGood, "restored", "the proxy comes first again" + who
	case event.SwapFailed:
		return toneBad, "failed", "a " + to(t.Want) + " did not go through"
	case event.ManualAwaited:
		return toneWarn, "your turn", "a person has to " + to(t.Want)
	case event.OriginSilent:
		return toneBad, "no way out", "the proxy is down, and the true origin does not answer either"
	case event.Drift:
		return toneWarn, "drift", "the order was changed by somebody else: " + orderWords(t.Before) + " to " + orderWords(t.After)
	case event.Flapping:
		return toneWarn, "flapping", "degraded again and again: restores become more patient"
	case event.Capped:
		return toneWarn, "capped", "no further " + to(t.Want) + " today"
	case event.Reminder:
		return toneWarn, "reminder", "still degraded"
	case event.Rehearsal:
		return tonePlain, "rehearsal", "a test mail"
	}
	return tonePlain, string(t.Kind), ""
}

func orderWords(o event.Order) string {
	switch o {
	case event.OrderProxy:
		return "proxy first"
	case event.OrderDirect:
		return "true origin first"
	}
	return "order not known"
}
