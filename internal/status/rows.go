package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"karui/internal/page"
	"karui/proxy/origin"
	"karui/proxy/success"
)

func (m *maker) siteRows() []siteRow {
	f := m.facts
	groups := map[string]Group{}
	for _, g := range f.Groups {
		if g.Site != "" {
			groups[g.Site] = g
		}
	}
	rows := make([]siteRow, 0, len(f.Sites))
	for _, s := range f.Sites {
		hour := m.sites[s.ID]
		if hour == nil {
			hour = &[minutes]minute{}
		}
		total := hourOf(hour)
		r := siteRow{
			ID: s.ID, Requests: page.Count(total.all()), Refused: page.Count(total.refused()), Variants: "–", Misses: "–",
			requests: total.all(), refused: total.refused(),
		}
		if with, images := variants(total); images > 0 {
			r.Variants = page.Percent(float64(with) / float64(images))
		}
		saved := uint64(0)
		all, bad := make([]float64, minutes), make([]float64, minutes)
		for i := range hour {
			c := hour[i].counts()
			saved += hour[i].saved
			all[i], bad[i] = float64(c.all()), float64(c.refused())
		}
		r.Saved = page.Bytes(saved)
		r.Spark = page.Spark(fmt.Sprintf("%s in the last hour, %d with 503", page.Plural(total.all(), "request"), total.refused()), all, bad)
		if record, ok := m.records[s.ID]; ok {
			r.Minute = page.Share(record.LastMinute.Good, record.LastMinute.Total)
			r.Day = page.Share(record.LastDay.Good, record.LastDay.Total)
			if len(record.Reasons) > 0 {
				r.Reason = record.Reasons[0].Word
			}
			switch {
			case !record.MinuteMet():
				r.Tone, r.missed = toneWarn, "under 99.9 % in the last minute"
			case !record.DayMet():
				r.Tone, r.missed = toneWarn, "under 99.99 % in 24 h"
			}
		} else {
			r.Minute, r.Day = "none asked", "none asked"
		}
		if g, ok := groups[s.ID]; ok && g.Requests > 0 {
			r.Misses = page.Took(g.Mean)
		}
		r.state(f, groups[s.ID], m.troubleOf(s.ID))
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b siteRow) int {
		return cmp.Or(cmp.Compare(rankRow(a.Tone), rankRow(b.Tone)), -cmp.Compare(a.refused, b.refused), -cmp.Compare(a.requests, b.requests), cmp.Compare(a.ID, b.ID))
	})
	return rows
}

// rankRow is rank, for rows whose tone is empty where nothing is to be said.
func rankRow(tone string) int {
	if tone == "" {
		tone = toneGood
	}
	return rank(tone)
}

// state says what is done about the site's requests.
func (r *siteRow) state(f *Facts, g Group, t *trouble) {
	var words []string
	if t != nil {
		words, r.Tone = append(words, t.short), t.tone
	}
	if g.Shedding {
		words, r.Tone = append(words, "new pictures turned away"), toneBad
	}
	if share := f.Shed[r.ID]; share.Percent > 0 {
		words = append(words, fmt.Sprintf("%g %% turned away by an operator%s", share.Percent, endWords(share.Until, f.At)))
		if r.Tone == "" {
			r.Tone = toneWarn
		}
	}
	if pin, ok := f.Dial.Pins[r.ID]; ok {
		words = append(words, "dial held at "+f.Dial.level(pin.Level)+endWords(pin.Until, f.At))
	}
	if f.Backlog != nil && f.Backlog.Waiting[r.ID] > 0 {
		words = append(words, page.Plural(f.Backlog.Waiting[r.ID], "conversion")+" in the backlog")
	}
	if t == nil && r.missed != "" {
		words = append(words, r.missed)
	}
	if r.State = "ok"; len(words) > 0 {
		r.State = several(words)
	}
}

// troubleOf gives what is wrong with a site; nil for nothing.
func (m *maker) troubleOf(site string) *trouble {
	for i := range m.trouble {
		if m.trouble[i].site == site {
			return &m.trouble[i]
		}
	}
	return nil
}

func (m *maker) placeRows() []placeRow {
	var rows []placeRow
	now := m.facts.At
	for _, site := range m.facts.Places {
		for _, p := range site.Places {
			r := placeRow{
				Site: site.Site, Name: p.Name, State: string(p.State), Weight: fmt.Sprintf("%g", p.Weight), Use: "yes",
				Addresses: fmt.Sprint(p.Addresses), Retries: site.Retries, Tries: page.Count(p.Tries), Unavailable: page.Count(p.Unavailable),
				TimedOut: page.Count(p.TimedOut), Overloaded: page.Count(p.Overloaded), UnderWay: page.Count(p.UnderWay),
				failed: failedTries(p),
			}
			if p.AddressesDown > 0 {
				r.Addresses = fmt.Sprintf("%d, %d down", p.Addresses, p.AddressesDown)
			}
			if !p.InUse {
				r.Use = "no"
			}
			if !p.Until.IsZero() {
				r.Until = page.Clock(p.Until, now)
			}
			switch {
			case p.State == origin.StateDown:
				r.Tone = toneBad
			case m.facts.silent[placeName{site.Site, p.Name}] && r.failed > 0:
				r.Tone, r.State = toneBad, r.State+", but silent"
			case p.InUse && r.failed > fewTries && r.failed*half >= p.Tries:
				r.Tone = toneBad
			case p.State != origin.StateIn, site.Retries == "cut", r.failed > 0:
				r.Tone = toneWarn
			}
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b placeRow) int {
		return cmp.Or(cmp.Compare(rankRow(a.Tone), rankRow(b.Tone)), -cmp.Compare(a.failed, b.failed))
	})
	return rows
}

func (m *maker) success() successView {
	r := m.all
	if r == nil {
		return successView{}
	}
	v := successView{Known: true}
	add := func(name, value string) { v.Facts = append(v.Facts, fact{name, value}) }
	add("Last full minute", page.Share(r.LastMinute.Good, r.LastMinute.Total)+targetWords(r.LastMinute.Share, success.MinuteTarget))
	add("Last 24 hours", page.Share(r.LastDay.Good, r.LastDay.Total)+targetWords(r.LastDay, success.DayTarget))
	if m.whole || len(m.facts.Sites) == 1 {
		add("Minutes that missed 99.9 %", fmt.Sprintf("%d of %d with requests, in 24 hours", r.MinutesMissed, r.Minutes))
		if r.Worst.Total > 0 && r.MinutesMissed > 0 {
			add("Worst minute", fmt.Sprintf("%s: %s of %s", strings.TrimSuffix(page.Clock(r.Worst.Start, m.facts.At), ":00"), page.Share(r.Worst.Good, r.Worst.Total), page.Plural(r.Worst.Total, "request")))
		}
	}
	bad := r.LastDay.Total - min(r.LastDay.Good, r.LastDay.Total)
	for _, reason := range r.Reasons[:min(len(r.Reasons), maxReason)] {
		row := reasonRow{Word: reason.Word, Text: reasonWords(reason.Word), Count: page.Count(reason.Count)}
		if bad > 0 {
			row.Share = page.Percent(min(float64(reason.Count)/float64(bad), 1))
		}
		v.Reasons = append(v.Reasons, row)
	}
	return v
}

func targetWords(s success.Share, target float64) string {
	switch {
	case s.Total == 0:
		return ""
	case s.Rate() >= target:
		return fmt.Sprintf(" (%g %% met)", 100*target)
	}
	return fmt.Sprintf(" (%g %% missed)", 100*target)
}

func reasonWords(word string) string {
	switch word {
	case "origin":
		return "the origin could not be reached, or failed"
	case "latency":
		return "it took too long"
	case "disk":
		return "every disk was full or out of use"
	case "shed":
		return "an operator's word"
	case "drain":
		return "karui was being stopped"
	case "panic":
		return "a mistake in karui: see the log"
	case "aborted":
		return "the origin broke off under way"
	}
	return ""
}

func (m *maker) dial() dialView {
	d, now := &m.facts.Dial, m.facts.At
	v := dialView{Note: moveWords(d.Moves, now), Now: fmt.Sprintf("%s (level %d of 0 to %d), %s", d.level(d.Level), d.Level, max(len(d.Levels)-1, 0), dialMode(d, now))}
	for _, id := range slices.Sorted(maps.Keys(d.Pins))[:min(len(d.Pins), maxMoves)] {
		v.Pins = append(v.Pins, fact{id, d.level(d.Pins[id].Level) + endWords(d.Pins[id].Until, now)})
	}
	for _, move := range d.Moves[:min(len(d.Moves), maxMoves)] {
		v.Moves = append(v.Moves, moveRow{At: page.Clock(move.At, now), Site: move.Site, Text: move.From + " → " + move.To, Cause: causeOf(move)})
	}
	return v
}

// moveWords tells the moves that the table shows apart, so that they can be compared
// with the chart, which has those of all sites within the hour.
func moveWords(moves []Move, now time.Time) string {
	moves = moves[:min(len(moves), maxMoves)]
	lately, single := 0, 0
	for _, move := range moves {
		switch {
		case move.Site != "":
			single++
		case now.Sub(move.At) < time.Hour:
			lately++
		}
	}
	words := fmt.Sprintf("%d of all sites within the last hour", lately)
	if before := len(moves) - lately - single; before > 0 {
		words += fmt.Sprintf(", %d before", before)
	}
	if single > 0 {
		words += fmt.Sprintf(", %d of single sites", single)
	}
	return words
}

func (m *maker) volumes() []volumeRow {
	f := m.facts
	if f.Cache == nil {
		return nil
	}
	var rows []volumeRow
	for _, v := range f.Cache.Volumes {
		r := volumeRow{
			Path: v.Path, State: v.State, Files: page.Count(v.Files), Own: page.Bytes(v.Bytes), Max: page.Bytes(v.MaxBytes),
			Evictions: page.Count(v.Evictions), Errors: page.Count(v.Errors), Used: page.Percent(v.UsedRatio),
		}
		if !v.Loaded {
			r.Files, r.Own = "over "+r.Files, "over "+r.Own
		}
		class := "s1"
		switch {
		case v.State == volumeOut:
			r.Tone, r.Used = toneBad, notKnown
		case f.Limits.Stress > 0 && 100*v.UsedRatio >= f.Limits.Stress:
			r.Tone, class = toneBad, "s7"
			if v.State == "ok" {
				r.State = "full"
			}
		case v.State != "ok":
			r.Tone = toneWarn
		case f.Limits.High > 0 && 100*v.UsedRatio >= f.Limits.High:
			class = "s4"
		}
		if r.Used != notKnown {
			r.Meter = page.Meter(r.Used+" of the file system is used", class, v.UsedRatio, f.Limits.High/100, f.Limits.Stress/100)
		}
		if v.MaxBytes > 0 {
			share := float64(v.Bytes) / float64(v.MaxBytes)
			r.OwnMeter = page.Meter(page.Percent(share)+" of max_size is used", "s3", share)
		}
		rows = append(rows, r)
	}
	return rows
}

func (m *maker) held() []heldRow {
	var rows []heldRow
	for _, q := range m.facts.Quarantine {
		r := heldRow{Digest: q.Digest, Short: fmt.Sprintf("%.16s", q.Digest), Cause: q.Cause, Until: page.Clock(q.Until, m.facts.At), State: "left alone"}
		if !q.Held {
			r.State = "watched: the next time it is left alone"
		}
		rows = append(rows, r)
	}
	return rows
}

func (m *maker) journal() []eventRow {
	rows := make([]eventRow, 0, min(len(m.events), maxShown))
	for _, e := range m.events[:min(len(m.events), maxShown)] {
		if e.Times > 1 {
			e.Cause += fmt.Sprintf(" (the last of %s)", page.Count(e.Times))
		}
		rows = append(rows, eventRow{
			At: page.Clock(e.At, m.facts.At), ISO: e.At.UTC().Format(time.RFC3339),
			Kind: e.Kind, Tone: e.Tone, Site: e.Site, Text: e.Text, Cause: e.Cause,
		})
	}
	return rows
}
