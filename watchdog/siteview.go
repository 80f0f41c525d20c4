package watchdog

import (
	"fmt"
	"time"

	"karui/internal/page"
	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/store"
)

// The states of a site, in a word or two.
const (
	wordUp        = "up"
	wordNew       = "not yet"
	wordDown      = "down"
	wordDegraded  = "degraded"
	wordReturning = "restoring"
	wordAwaited   = "your turn"
	wordHeld      = "held"
	wordOdd       = "inconclusive"
	wordBlind     = "order unknown"
	wordLate      = "not watched"
)

// state gives a site's state with its tone. Those of a lower rank come first.
func (s SiteStatus) state() (word, tone string, rank int) {
	switch {
	case s.Error != "", s.Late:
		return wordLate, toneBad, 0
	case s.Last == nil:
		return wordNew, tonePlain, 8
	case s.Last.Verdict == machine.Inconclusive:
		return wordOdd, toneWarn, 3
	case s.Health == machine.Down && s.Order != event.OrderDirect:
		return wordDown, toneBad, 1
	case s.Health == machine.Down:
		return wordDegraded, toneWarn, 2
	case s.Last.OrderError != "":
		return wordBlind, toneWarn, 4
	case s.Order == event.OrderDirect && s.Held:
		return wordHeld, toneWarn, 5
	case s.Order == event.OrderDirect && s.Restore == "manual":
		return wordAwaited, toneWarn, 5
	case s.Order == event.OrderDirect:
		return wordReturning, toneWarn, 6
	case s.Health == machine.Up && s.Order == event.OrderProxy:
		return wordUp, toneGood, 9
	}
	return wordBlind, toneWarn, 4
}

// site makes one site's part of the page.
func (p picture) site(s SiteStatus) siteView {
	at := p.status.At
	cols := columns(p.histories[s.Site], p.interval)
	v := siteView{ID: s.Site, Words: s.Words, Order: orderWords(s.Order), Strip: strip(cols, s.Site+": "+stripWords(cols)), Last: "no round yet", Next: "next not known"}
	v.Word, v.Tone, v.rank = s.state()
	if !s.NextRound.IsZero() {
		v.Next = "next " + page.Clock(s.NextRound, at)
	}
	if s.Last == nil {
		return v
	}
	v.Last = "last " + page.Clock(s.Last.At, at) + ", " + verdictWords(s.Last)
	v.Facts = s.facts(at)
	for i, r := range s.Last.Probes {
		v.Probes = append(v.Probes, probed(fmt.Sprintf("ping %d", i+1), r))
	}
	if s.Last.Origin != nil {
		v.Probes = append(v.Probes, probed("true origin", *s.Last.Origin))
	}
	for i, r := range s.Last.Controls {
		v.Probes = append(v.Probes, probed(fmt.Sprintf("control %d", i+1), r))
	}
	return v
}

func verdictWords(r *store.Round) string {
	switch r.Verdict {
	case machine.VerdictUp:
		return "up in " + page.Took(r.Took)
	case machine.VerdictDown:
		return fmt.Sprintf("down: %d of %d pings failed", failed(r), len(r.Probes))
	}
	return "inconclusive"
}

func failed(r *store.Round) int {
	n := 0
	for _, p := range r.Probes {
		if !p.OK {
			n++
		}
	}
	return n
}

// facts are what is known beside the round.
func (s SiteStatus) facts(at time.Time) []fact {
	var out []fact
	add := func(tone, name, value string) {
		if value != "" {
			out = append(out, fact{name, value, tone})
		}
	}
	if !s.Since.IsZero() {
		add("", string(s.Health)+" since", page.Clock(s.Since, at))
	}
	if !s.Degraded.IsZero() {
		add(toneWarn, "degraded since", page.Clock(s.Degraded, at))
		add("", "good rounds", fmt.Sprintf("%d of %d for a restore (%s)", s.GoodRounds, s.GoodRoundsNeeded, s.Restore))
	}
	if s.Deploying != nil {
		add(toneWarn, "on its way to the edge", orderWords(s.Deploying.Order)+", since "+page.Clock(s.Deploying.Since, at))
	}
	add(toneBad, "order", s.Last.OrderError)
	add("", "what to do", s.Last.OrderHint)
	add("", "swaps in 24 h", fmt.Sprintf("%d of %d", s.Swaps, s.MaxSwapsPerDay))
	add("", "acts by itself", fmt.Sprintf("degrade: %s, restore: %s", s.Degrade, s.Restore))
	add("", "distribution", fmt.Sprintf("%s, group %s: %s, %s", s.Distribution.ID, s.Distribution.Group, s.Distribution.Proxy, s.Distribution.Direct))
	return out
}

// probed is what came of one request.
func probed(name string, p event.Probe) probeView {
	if p.OK {
		return probeView{name, "✓", toneGood, p.Text}
	}
	return probeView{name, "✕", toneBad, p.Text}
}
