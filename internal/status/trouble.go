package status

import (
	"cmp"
	"fmt"
	"slices"

	"karui/internal/page"
	"karui/proxy/origin"
	"karui/proxy/success"
)

// What viewers lose by something, the least first.
const (
	losesNothing  = iota // yet
	losesVariants        // they get originals
	losesTime            // they get originals, by 503 and the edge's second origin
	losesPictures        // what is not cached may come from nowhere
)

// Of the troubles of a site.
const (
	// fewTries is how many tries must fail before a place is said to answer nothing,
	// and fewLost how many requests before a site is said to do badly: one is chance.
	fewTries, fewLost = 3, 3
	// enough requests of a minute tell how a site does; of fewer, recently minutes are
	// added up.
	enough, recently = 10, 5
	// farBelow is the share under which a site does badly, and not just worse than
	// aimed at. Half of the tries failing is bad too, a tenth worth a look.
	farBelow = 0.9
	half     = 2
	tenth    = 10
)

// trouble is what is wrong with one site, or is about to be.
type trouble struct {
	site, tone string
	// short is the text without its numbers; both follow the site's name.
	short, text string
	where       string
	loses       int
	lost        uint64 // requests or tries
	// origin: the places are to blame.
	origin bool
}

// recent is how a site did lately.
type recent struct {
	success.Share
	span string
}

func (r recent) lost() uint64 { return r.Total - min(r.Good, r.Total) }

func (r recent) bad() bool { return r.lost() >= fewLost && r.Rate() < farBelow }

// words is such as "0.0 % of 33 requests of the last full minute were answered well".
func (r recent) words() string {
	return fmt.Sprintf("%s of %s of the last %s were answered well", page.Share(r.Good, r.Total), page.Plural(r.Total, "request"), r.span)
}

// recentOf takes the last full minute where enough was asked, else the minutes
// before it as well; they are those of success.Ledger, the one under way last.
func recentOf(last success.Share, before []success.Minute) recent {
	if last.Total >= enough {
		return recent{last, "full minute"}
	}
	var sum success.Share
	for _, m := range before[:max(len(before)-1, 0)] {
		sum.Good += m.Good
		sum.Total += m.Total
	}
	return recent{sum, fmt.Sprintf("%d minutes", recently)}
}

// placeName names a place of a site.
type placeName struct{ site, name string }

func failedTries(p origin.PlaceStatus) int { return p.Unavailable + p.TimedOut + p.Overloaded }

// silentPlaces are those of which every try failed, until one brings an answer: few
// tries in a minute say nothing new.
func silentPlaces(before map[placeName]bool, sites []origin.PlacesStatus) map[placeName]bool {
	out := map[placeName]bool{}
	for _, site := range sites {
		for _, p := range site.Places {
			name, failed := placeName{site.Site, p.Name}, failedTries(p)
			if failed == p.Tries && (p.Tries >= fewTries || before[name]) {
				out[name] = true
			}
		}
	}
	return out
}

// placesTrouble tells whether the places that a site uses fail, all together.
func placesTrouble(site origin.PlacesStatus, silent map[placeName]bool) (t trouble, ok bool) {
	var used []origin.PlaceStatus
	tries, failed, overloaded, known := 0, 0, 0, false
	for _, p := range site.Places {
		if !p.InUse {
			continue
		}
		used = append(used, p)
		tries, failed, overloaded = tries+p.Tries, failed+failedTries(p), overloaded+p.Overloaded
		known = known || silent[placeName{site.Site, p.Name}]
	}
	if failed == 0 {
		return trouble{}, false
	}
	slices.SortStableFunc(used, func(a, b origin.PlaceStatus) int { return -cmp.Compare(failedTries(a), failedTries(b)) })
	who, verb := "its origin "+used[0].Name, [...]string{"answers nothing", "turns every request away", "fails"}
	if len(used) > 1 {
		who, verb = fmt.Sprintf("its %d origins", len(used)), [...]string{"answer nothing", "turn every request away", "fail"}
	}
	t = trouble{site: site.Site, tone: toneBad, where: "places", loses: losesPictures, lost: uint64(failed), origin: true}
	switch {
	case failed == tries && (tries >= fewTries || known):
		t.short = who + " " + verb[0]
		if overloaded == failed {
			t.short = who + " " + verb[1]
		}
	case failed > fewTries && failed*half >= tries:
		t.short = who + " " + verb[2]
	case failed > fewTries && failed*tenth >= tries && len(site.Places) == 1:
		t.short, t.tone, t.loses = who+" "+verb[2], toneWarn, losesTime // of several places, the one that fails is called sick
	default:
		return trouble{}, false
	}
	t.text = fmt.Sprintf("%s (%s of %s in the last minute", t.short, page.Count(failed), page.Count(tries))
	if used[0].LastFailure != "" {
		t.text += ": " + used[0].LastFailure
	}
	t.text += ")"
	return t, true
}

// shareTrouble tells whether a site does far worse than it is to, and why, as far as
// the refusals of the same minutes say.
func shareTrouble(site string, r recent, refused counts) (t trouble, ok bool) {
	if !r.bad() {
		return trouble{}, false
	}
	t = trouble{
		site: site, tone: toneBad, where: "sites", loses: losesTime, lost: r.lost(), text: r.words(),
		short: "only " + page.Share(r.Good, r.Total) + " answered well",
	}
	if o, some := mostly(refused); some {
		t.text += ", mostly " + o.word()
		if words := reasonWords(o.word()); words != "" {
			t.text += ": " + words
		}
		if o == byOrigin {
			t.loses, t.origin = losesPictures, true
		}
	}
	return t, true
}

// newTrouble tells whether nothing at all was had from the places within the last full
// minute, though they were reached: all answered with errors, say.
func newTrouble(site string, last counts) (t trouble, ok bool) {
	lost := last[byOrigin]
	if lost < fewLost || last[miss]+last[wait]+last[bypass] > 0 {
		return trouble{}, false
	}
	t = trouble{site: site, tone: toneBad, where: "refused", loses: losesPictures, lost: lost, origin: true, short: "nothing new can be had from its origin"}
	t.text = t.short + fmt.Sprintf(" (all of %s in the last full minute failed; the log says why)", page.Plural(lost, "request"))
	return t, true
}

// mostly gives the most frequent reason for a 503.
func mostly(c counts) (most outcome, some bool) {
	for o := firstRefused; o < outcomes; o++ {
		if c[o] > 0 && (!some || c[o] > c[most]) {
			most, some = o, true
		}
	}
	return most, some
}

// troubles are those of all sites, by what viewers lose. What is said of all of karui,
// or was asked for by an operator, is not said of each site again.
func (m *maker) troubles() []trouble {
	f := m.facts
	places := map[string]origin.PlacesStatus{}
	for _, p := range f.Places {
		places[p.Site] = p
	}
	shedding := map[string]bool{}
	for _, g := range f.Groups {
		shedding[g.Site] = shedding[g.Site] || g.Shedding
	}
	var found []trouble
	for _, site := range f.Sites {
		t, ok := placesTrouble(places[site.ID], f.silent)
		if hour := m.sites[site.ID]; !ok && hour != nil {
			t, ok = newTrouble(site.ID, hour[minutes-2].counts())
		}
		r := m.recently[site.ID]
		switch refused := m.refusedLately(site.ID); {
		case ok && r.bad():
			t.text += "; " + r.words()
		case !ok && !f.DiskFull && f.Ready:
			if t, ok = shareTrouble(site.ID, r, refused); !ok {
				break
			}
			switch o, _ := mostly(refused); o {
			case byShed:
				ok = f.Shed[site.ID].Percent == 0
			case byLatency:
				ok = !shedding[site.ID] && !shedding[""]
			case byDrain:
				ok = false
			}
		}
		if ok {
			found = append(found, t)
		}
	}
	slices.SortStableFunc(found, func(a, b trouble) int {
		return cmp.Or(cmp.Compare(rank(a.tone), rank(b.tone)), -cmp.Compare(a.loses, b.loses), -cmp.Compare(a.lost, b.lost))
	})
	return found
}

// refusedLately adds up what was turned away within the last full minutes.
func (m *maker) refusedLately(site string) counts {
	var sum counts
	if hour := m.sites[site]; hour != nil {
		for i := minutes - 1 - recently; i < minutes-1; i++ {
			sum.add(hour[i].counts())
		}
	}
	return sum
}

// worst names the sites at which most of the last full minute's requests were lost,
// with the reasons.
func (m *maker) worst() string {
	var sites []trouble
	for id, r := range m.records {
		if !r.MinuteMet() {
			t := trouble{site: id, lost: r.LastMinute.Total - r.LastMinute.Good}
			if o, some := mostly(m.refusedLately(id)); some {
				t.text = " (" + o.word() + ")"
			}
			sites = append(sites, t)
		}
	}
	slices.SortFunc(sites, func(a, b trouble) int { return cmp.Or(-cmp.Compare(a.lost, b.lost), cmp.Compare(a.site, b.site)) })
	names := make([]string, len(sites))
	for i, t := range sites {
		names[i] = t.site + t.text
	}
	return several(names)
}

// judgeSites says what is wrong with single sites: the worst one by one, and the rest
// of the same kind together.
func judgeSites(found []trouble, add func(concern)) {
	more := map[string][]string{}
	where := map[string]string{}
	loses := map[string]int{}
	n := map[string]int{}
	for _, t := range found {
		if n[t.tone]++; n[t.tone] <= named {
			add(concern{Tone: t.tone, Word: "site", Where: t.where, Text: t.site + ": " + t.text + ".", head: t.site + ": " + t.short, loses: t.loses, lost: t.lost})
			continue
		}
		more[t.tone] = append(more[t.tone], t.site)
		where[t.tone], loses[t.tone] = t.where, t.loses
	}
	for _, tone := range []string{toneBad, toneWarn} {
		if ids := more[tone]; len(ids) > 0 {
			what := "Other sites do badly too"
			if tone == toneWarn {
				what = "The origins of other sites fail at times too"
			}
			add(concern{Tone: tone, Word: "sites", Where: where[tone], Text: what + ": " + several(ids) + ".", loses: loses[tone]})
		}
	}
}
