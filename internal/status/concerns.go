package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"karui/internal/page"
	"karui/proxy/origin"
	"karui/proxy/success"
)

// concern is something that a person should know of, with the part of the page that
// says more.
type concern struct {
	Tone, Word, Text string
	// Where is the id of that part.
	Where string
	// head is the gist, for the first line; empty where there is none.
	head string
	// What viewers lose, and of how many requests that is known.
	loses int
	lost  uint64
}

// lossOf is what viewers lose by what a word stands for, at its worst.
func lossOf(word string) int {
	switch word {
	case "places":
		return losesPictures
	case "not ready", "disk full", "shedding", "edge", "success":
		return losesTime
	case "workers", "dial":
		return losesVariants
	}
	return losesNothing
}

// rank orders tones, the gravest first.
func rank(tone string) int {
	return slices.Index([]string{toneBad, toneWarn, tonePlain, toneGood}, tone)
}

// named is how many names a sentence holds.
const named = 3

// several joins names: "shop, news and 4 more".
func several(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}

// judge says what is not as it should be: the gravest first, and of the grave things
// that first by which viewers lose the most.
func (m *maker) judge() []concern {
	p, f := &m.picture, m.facts
	var found []concern
	add := func(tone, word, where, text string, args ...any) {
		found = append(found, concern{Tone: tone, Word: word, Where: where, Text: fmt.Sprintf(text, args...), loses: lossOf(word)})
	}
	judgeSites(m.trouble, func(c concern) { found = append(found, c) })
	if !f.Ready {
		add(toneBad, "not ready", "events", "/readyz and the ping fail: karui drains, or conversions do not work. The log says which.")
	}
	if !f.Reloaded {
		add(toneWarn, "configuration", "events", "The configuration that was read last cannot be used; the one before it is in force. The log says why.")
	}
	if f.DiskFull {
		where := "volumes"
		if !p.whole {
			where = "refused"
		}
		add(toneBad, "disk full", where, "All requests are turned away with 503: every volume is out of use or at %g %% and over (disk.stress). Make room.", f.Limits.Stress)
	}
	if f.Workers != nil && f.Workers.Fast.Alive == 0 {
		add(toneBad, "workers", "workers", "No worker process is alive: viewers get originals.")
	}
	judgeLatency(f, add)
	judgeDial(f, add)
	judgeShares(f, add)
	judgePlaces(f, m.blamed(), add)
	judgeMachine(p, add)
	judgeSuccess(m.all, m.worst(), add)
	slices.SortStableFunc(found, func(a, b concern) int {
		return cmp.Or(cmp.Compare(rank(a.Tone), rank(b.Tone)), -cmp.Compare(a.loses, b.loses), -cmp.Compare(a.lost, b.lost))
	})
	return found
}

type adder func(tone, word, where, text string, args ...any)

func judgeLatency(f *Facts, add adder) {
	var slow []string
	for _, g := range f.Groups {
		switch {
		case !g.Shedding:
		case g.Site != "":
			slow = append(slow, g.Site)
		default:
			add(toneBad, "shedding", "latency", "%s are turned away with 503 since %s: they took %s and more to the first byte.",
				groupName{g.Name, ""}.words(), page.Clock(g.Since, f.At), page.Took(f.Limits.Latency))
		}
	}
	if len(slow) > 0 {
		add(toneBad, "shedding", "sites", "New pictures of %s are turned away with 503: fetching them takes %s and more. What is in the cache is answered.",
			several(slow), page.Took(f.Limits.Latency))
	}
}

func judgeDial(f *Facts, add adder) {
	d := &f.Dial
	name := d.level(d.Level)
	ends := endWords(d.Until, f.At)
	switch {
	case d.Mode == "pinned":
		add(toneOf(d.Level), "dial", "dial", "An operator holds the dial at %d, %s%s.", d.Level, name, ends)
	case d.Level == 0:
	case d.Mode == "schedule":
		add(toneWarn, "dial", "dial", "The dial is at %d, %s, by the schedule's window %s%s.", d.Level, name, d.Window, ends)
	default:
		why := ""
		if len(d.Moves) > 0 && d.Moves[0].Site == "" {
			why = ": " + causeOf(d.Moves[0])
		}
		add(toneWarn, "dial", "dial", "The dial is at %d, %s: new conversions are made cheaper%s.", d.Level, name, why)
	}
	var ids []string
	for id, pin := range d.Pins {
		ids = append(ids, fmt.Sprintf("%s at %s%s", id, d.level(pin.Level), endWords(pin.Until, f.At)))
	}
	if slices.Sort(ids); len(ids) > 0 {
		add(tonePlain, "dial", "dial", "Operators hold the dial of %s.", several(ids))
	}
}

func toneOf(level int) string {
	if level > 0 {
		return toneWarn
	}
	return tonePlain
}

// endWords says until when something holds.
func endWords(at, now time.Time) string {
	if at.IsZero() {
		return " until it is changed"
	}
	return fmt.Sprintf(" until %s (in %s)", strings.TrimSuffix(page.Clock(at, now), ":00"), page.Long(at.Sub(now)))
}

func judgeShares(f *Facts, add adder) {
	var ids []string
	for id, share := range f.Shed {
		if share.Percent > 0 {
			ids = append(ids, fmt.Sprintf("%s %g %%%s", id, share.Percent, endWords(share.Until, f.At)))
		}
	}
	if slices.Sort(ids); len(ids) > 0 {
		add(toneWarn, "shedding", "sites", "Operators have requests turned away: %s.", several(ids))
	}
}

// blamed are the sites of which it is said already that their places fail.
func (m *maker) blamed() map[string]bool {
	out := map[string]bool{}
	for _, t := range m.trouble {
		if t.origin && t.tone == toneBad {
			out[t.site] = true
		}
	}
	return out
}

func judgePlaces(f *Facts, blamed map[string]bool, add adder) {
	byState := map[origin.State][]string{}
	byMode := map[string][]string{}
	var alone []string
	for _, site := range f.Places {
		if site.Retries == "off" || site.Retries == "cut" && !blamed[site.Site] {
			byMode[site.Retries] = append(byMode[site.Retries], site.Site)
		}
		well := len(site.Places) == 0
		for _, p := range site.Places {
			byState[p.State] = append(byState[p.State], site.Site+" "+p.Name)
			well = well || p.State == origin.StateIn && p.AddressesDown < max(p.Addresses, 1)
		}
		if !well && !blamed[site.Site] {
			alone = append(alone, site.Site)
		}
	}
	if names := byState[origin.StateDown]; len(names) > 0 {
		add(toneWarn, "places", "places", "Out of use, since they could not be reached: %s.", several(names))
	}
	if len(alone) > 0 {
		add(toneBad, "places", "places", "No place of these sites is well: %s.", several(alone))
	}
	if names := byState[origin.StateSick]; len(names) > 0 {
		add(toneWarn, "places", "places", "So slow or failing that they get a trickle: %s.", several(names))
	}
	if names := byState[origin.StateOut]; len(names) > 0 {
		add(toneWarn, "places", "places", "Taken out by operators: %s.", several(names))
	}
	if ids := byMode["cut"]; len(ids) > 0 {
		add(toneWarn, "retries", "places", "Too many tries fail, so nothing is tried twice for %s.", several(ids))
	}
	if ids := byMode["off"]; len(ids) > 0 {
		add(tonePlain, "retries", "places", "Second tries are switched off for %s.", several(ids))
	}
}

// many is the share of requests that belong to no site, or lack the secret, from
// which on the edge's settings are to be looked at.
const many = 0.01

func judgeMachine(p *picture, add adder) {
	f := p.facts
	if f.Cache != nil {
		var out, odd, full []string
		for _, v := range f.Cache.Volumes {
			switch {
			case v.State == volumeOut:
				out = append(out, v.Path)
			case v.State != "ok":
				odd = append(odd, v.Path+" is "+v.State)
			case f.Limits.Stress > 0 && 100*v.UsedRatio >= f.Limits.Stress:
				full = append(full, v.Path)
			}
		}
		if len(out) > 0 {
			add(toneBad, "volumes", "volumes", "Out of use, since their disks give errors: %s.", several(out))
		}
		if len(odd) > 0 {
			add(toneWarn, "volumes", "volumes", "%s.", several(odd))
		}
		if len(full) > 0 && !f.DiskFull {
			add(toneWarn, "volumes", "volumes", "At %g %% and over (disk.stress): %s.", f.Limits.Stress, several(full))
		}
	}
	ended := 0
	for _, e := range p.events {
		if e.Kind == "workers" && f.At.Sub(e.At) < time.Hour {
			ended++
		}
	}
	if ended > 0 {
		add(toneWarn, "workers", "events", "Worker processes ended before their time within the last hour; they are replaced, and what hurt them is left alone.")
	}
	held := 0
	for _, q := range f.Quarantine {
		if q.Held {
			held++
		}
	}
	if held > 0 {
		add(tonePlain, "quarantine", "quarantine", "%s left alone, and answered as they are.", page.Plural(held, "original"))
	}
	total := hourOf(&p.all)
	var lately counts
	for _, one := range p.all[minutes-1-recently:] {
		lately.add(one.counts())
	}
	switch wrong, now := total[byRoute]+total[bySecret], lately[byRoute]+lately[bySecret]; {
	case !p.whole:
	case now >= enough && now*half >= lately.all():
		add(toneBad, "edge", "refused", "%s of the last minutes' %s named no site or lacked the secret, and were answered with 503: compare X-Routing and X-Karui-Key with the edge.", page.Count(now), page.Plural(lately.all(), "request"))
	case wrong > 0 && float64(wrong) > many*float64(total.all()):
		add(toneWarn, "edge", "refused", "%s of the last hour's requests named no site or lacked the secret: compare X-Routing and X-Karui-Key with the edge.", page.Count(wrong))
	}
}

func judgeSuccess(all *success.Record, worst string, add adder) {
	if all == nil {
		return
	}
	why := ""
	if len(all.Reasons) > 0 {
		why = ", most often " + all.Reasons[0].Word
	}
	if worst != "" {
		worst = " Most was lost at " + worst + "."
	}
	if !all.MinuteMet() {
		add(toneWarn, "success", "success", "Of the last full minute, %s was answered well; three nines are aimed at.%s", page.Share(all.LastMinute.Good, all.LastMinute.Total), worst)
	}
	if !all.DayMet() {
		add(toneWarn, "success", "success", "Of the last 24 hours, %s was answered well; four nines are aimed at%s.", page.Share(all.LastDay.Good, all.LastDay.Total), why)
	}
}

// verdict is the page's first line.
func verdict(found []concern) (tone, title string) {
	bad, warn := 0, 0
	for _, c := range found {
		switch c.Tone {
		case toneBad:
			bad++
		case toneWarn:
			warn++
		}
	}
	look := ""
	switch {
	case warn == 1:
		look = " One thing is to be looked at."
	case warn > 1:
		look = fmt.Sprintf(" %d things are to be looked at.", warn)
	}
	if len(found) > 0 && found[0].Tone == toneBad && found[0].head != "" {
		more := "."
		switch {
		case bad == 2:
			more = ". One more thing is wrong."
		case bad > 2:
			more = fmt.Sprintf(". %d more things are wrong.", bad-1)
		}
		return toneBad, found[0].head + more + look
	}
	switch {
	case bad == 1:
		return toneBad, "One thing is wrong." + look
	case bad > 1:
		return toneBad, fmt.Sprintf("%d things are wrong.", bad) + look
	case warn > 0:
		return toneWarn, "karui works." + look
	}
	return toneGood, "All is well."
}

// hourOf adds the minutes up.
func hourOf(hour *[minutes]minute) counts {
	var total counts
	for i := range hour {
		total.add(hour[i].counts())
	}
	return total
}
