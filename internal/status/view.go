package status

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"karui/internal/page"
	"karui/proxy/origin"
	"karui/proxy/success"
)

// Of the tables: rows that are shown before somebody asks for all, and then.
const (
	fewRows   = 25
	allRows   = 1000
	maxHeld   = 20
	maxShown  = 60 // events
	maxMoves  = 12
	maxReason = 6
)

// view is everything that the page shows.
type view struct {
	Host, Version, Since, Up, Now string
	// Zone is that of all times, such as UTC+09:00.
	Zone string
	// Caller is the token's name, and Session whether it can be signed out of.
	Caller         string
	Session, Whole bool
	All            bool // rows that are asked for
	Few            int
	Tone, Title    string
	Lead           string
	Concerns       []concern
	Figures        []figure
	Charts         []page.Chart
	Sites          table[siteRow]
	Places         table[placeRow]
	Success        successView
	Dial           dialView
	Volumes        []volumeRow
	VolumesKnown   bool
	Lines          string
	Classes        []classRow
	Machine        []fact
	Quarantine     table[heldRow]
	QuarantineNote string
	Events         []eventRow
	SiteColumns    bool
}

// table is a table that may have more rows than are shown.
type table[T any] struct {
	Rows []T
	More int
}

func tableOf[T any](rows []T, most int) table[T] {
	if len(rows) > most {
		return table[T]{Rows: rows[:most], More: len(rows) - most}
	}
	return table[T]{Rows: rows}
}

// fact is a name with what is known of it.
type fact struct{ Name, Value string }

// figure is one of the large numbers.
type figure struct {
	Name, Value, Unit, More, Tone string
}

type siteRow struct {
	ID, Tone, State                                  string
	Requests, Variants, Refused, Minute, Day, Misses string
	Saved, Reason                                    string
	Spark                                            template.HTML
	refused, requests                                uint64
	missed                                           string // its target
}

type placeRow struct {
	Site, Name, Tone, State, Until, Use, Addresses, Retries string
	Weight                                                  string
	Tries, Unavailable, TimedOut, Overloaded, UnderWay      string
	failed                                                  int
}

type successView struct {
	Known   bool
	Facts   []fact
	Reasons []reasonRow
}

type reasonRow struct{ Word, Text, Count, Share string }

type dialView struct {
	Now   string
	Pins  []fact
	Moves []moveRow
	Note  string // how many moves of which kind there are
}

type moveRow struct{ At, Site, Text, Cause string }

type volumeRow struct {
	Path, Tone, State, Used, Own, Max, Files, Evictions, Errors string
	Meter, OwnMeter                                             template.HTML
}

type classRow struct{ Name, Workers, Alive, Busy, Share, Waiting, Longest, CPU string }

type heldRow struct{ Digest, Short, Cause, Until, State string }

type eventRow struct {
	At, ISO, Ago, Kind, Tone, Site, Text, Cause string
}

const notKnown = "not known"

// maker makes a view of a picture.
type maker struct {
	picture
	all     *success.Record
	minutes []success.Minute
	records map[string]success.Record
	// recently is how each site did, and trouble what is wrong with some.
	recently map[string]recent
	trouble  []trouble
}

func newMaker(p picture, s Sources) *maker {
	m := &maker{picture: p, records: map[string]success.Record{}, recently: map[string]recent{}}
	for _, site := range p.facts.Sites {
		r, ok := s.Success(site.ID)
		if !ok {
			continue
		}
		m.records[site.ID] = r
		var before []success.Minute
		if r.LastMinute.Total < enough {
			before = s.Minutes(site.ID, recently+1)
		}
		m.recently[site.ID] = recentOf(r.LastMinute.Share, before)
	}
	m.trouble = m.troubles()
	if p.whole {
		if r, ok := s.Success(""); ok {
			m.all = &r
		}
		m.minutes = s.Minutes("", minutes)
		return m
	}
	m.all, m.minutes = together(p.facts, m.records, s)
	return m
}

// together adds up what is known of some sites. What cannot be added up, the worst
// minute and how many missed their target, is left to the table of sites.
func together(f *Facts, records map[string]success.Record, s Sources) (*success.Record, []success.Minute) {
	sum := success.Record{}
	var all []success.Minute
	reasons := map[string]uint64{}
	for i, site := range f.Sites {
		r := records[site.ID]
		if len(f.Sites) == 1 {
			sum = r
		}
		if i > 0 || len(f.Sites) > 1 {
			sum.LastMinute.Good += r.LastMinute.Good
			sum.LastMinute.Total += r.LastMinute.Total
			sum.LastDay.Good += r.LastDay.Good
			sum.LastDay.Total += r.LastDay.Total
			for _, reason := range r.Reasons {
				reasons[reason.Word] += reason.Count
			}
		}
		for n, m := range s.Minutes(site.ID, minutes) {
			if n >= len(all) {
				all = append(all, success.Minute{Start: m.Start})
			}
			all[n].Good += m.Good
			all[n].Total += m.Total
		}
	}
	for word, n := range reasons {
		sum.Reasons = append(sum.Reasons, success.Reason{Word: word, Count: n})
	}
	slices.SortFunc(sum.Reasons, func(a, b success.Reason) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.Word, b.Word))
	})
	return &sum, all
}

// view fills in all but who asks.
func (m *maker) view(all bool) view {
	f := m.facts
	found := m.judge()
	few := fewRows
	if all {
		few = allRows
	}
	v := view{
		Since: sinceWords(m.began, f.At), Up: page.Long(f.At.Sub(m.began)), Now: f.At.Format(time.TimeOnly), Zone: page.Zone(f.At),
		Whole: m.whole, All: all, Few: fewRows, Concerns: found, Figures: m.figures(), Charts: m.charts(),
		Success: m.success(), Dial: m.dial(), VolumesKnown: f.Cache != nil, Volumes: m.volumes(),
		Lines:   fmt.Sprintf("The marks are disk.high (%g %%), from which on the oldest entries go, and disk.stress (%g %%). When every volume is there, all requests are turned away.", f.Limits.High, f.Limits.Stress),
		Classes: m.classes(), Machine: m.machine(), Events: m.journal(),
	}
	v.Tone, v.Title = verdict(found)
	v.Lead = m.lead()
	v.Sites, v.Places = tableOf(m.siteRows(), few), tableOf(m.placeRows(), few)
	v.Quarantine = tableOf(m.held(), maxHeld)
	return v
}

func sinceWords(began, now time.Time) string {
	began = began.In(now.Location())
	if began.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return began.Format("15:04")
	}
	return began.Format("Jan 2 15:04")
}

// lead is the line below the verdict.
func (m *maker) lead() string {
	total := hourOf(&m.picture.all)
	switch n := len(m.facts.Sites); {
	case n == 0:
		return "No site is to be seen with this token."
	case total.all() == 0 && m.facts.At.Sub(m.began) < time.Hour:
		return "No request has come since the start."
	case total.all() == 0:
		return "No request has come within the last hour."
	case total.refused() == 0:
		return fmt.Sprintf("%s of %s within the last hour, none of them turned away.", page.Plural(total.all(), "request"), page.Plural(n, "site"))
	default:
		return fmt.Sprintf("%s of %s within the last hour; %s went to the true origin by 503.", page.Plural(total.all(), "request"), page.Plural(n, "site"), page.Count(total.refused()))
	}
}

// sinceFull tells whether the whole of the last full minute was seen.
func (m *maker) sinceFull() bool { return m.began.Unix()/60 < m.facts.At.Unix()/60-1 }

// variants counts the answers with a variant, and all answers with an image that
// could have had one.
func variants(c counts) (with, all uint64) {
	with = c[hit] + c[wait] + c[stale]
	return with, with + c[original] + c[miss]
}

func (m *maker) figures() []figure {
	f, hour := m.facts, hourOf(&m.picture.all)
	requests := figure{Name: "Requests", Unit: "a second", More: page.Count(hour.all()) + " in the last hour"}
	last := m.picture.all[minutes-2].counts()
	switch elapsed := f.At.Sub(m.began); {
	case m.sinceFull():
		requests.Value = page.Rate(float64(last.all()) / 60)
	case elapsed >= 5*time.Second:
		requests.Value = page.Rate(float64(hour.all()) / elapsed.Seconds())
	default:
		requests.Value, requests.Unit, requests.Tone = notKnown, "", "none"
	}
	with, images := variants(hour)
	lighter := figure{Name: "Answered with a variant", More: page.Count(with) + " of " + page.Count(images) + " images"}
	if images == 0 {
		lighter.Value, lighter.More, lighter.Tone = "no images yet", "in the last hour", "none"
	} else {
		lighter.Value = page.Percent(float64(with) / float64(images))
	}
	var saved, savedAll uint64
	for i := range m.picture.all {
		saved += m.picture.all[i].saved
	}
	for _, s := range f.Sites {
		savedAll += s.SavedBytes
	}
	return []figure{
		requests, lighter, m.firstByte(), m.well(),
		{Name: "Bytes saved, last hour", Value: page.Bytes(saved), More: page.Bytes(savedAll) + " since the start"},
		m.level(),
	}
}

// firstByte is the figure of the mean time that stress.latency is compared with.
func (m *maker) firstByte() figure {
	f := m.facts
	g := figure{Name: "Mean time to first byte", Value: "no requests", Tone: "none", More: "turned away from " + page.Took(f.Limits.Latency) + " on"}
	if f.Limits.Latency <= 0 {
		g.More = "nothing is turned away for it"
	}
	for _, group := range f.Groups {
		if group.Name != "all" || group.Requests == 0 {
			continue
		}
		g.Value, g.Tone = page.Took(group.Mean), ""
		if group.Shedding || f.Limits.Latency > 0 && group.Mean >= f.Limits.Latency {
			g.Tone = toneBad
		}
	}
	return g
}

func (m *maker) well() figure {
	g := figure{Name: "Answered well", Value: "none asked", Tone: "none"}
	if m.all == nil {
		g.Value = notKnown
		return g
	}
	if last := m.all.LastMinute; last.Total > 0 {
		g.Value, g.Unit, g.Tone = page.Share(last.Good, last.Total), "last minute", ""
		switch {
		case last.Rate() < farBelow && last.Total >= enough:
			g.Tone = toneBad
		case !m.all.MinuteMet():
			g.Tone = toneWarn
		}
	}
	g.More = "last 24 hours: " + page.Share(m.all.LastDay.Good, m.all.LastDay.Total)
	return g
}

func (m *maker) level() figure {
	d := &m.facts.Dial
	g := figure{Name: "Dial", Value: d.level(d.Level), Unit: fmt.Sprintf("level %d", d.Level), More: dialMode(d, m.facts.At)}
	if d.Level > 0 {
		g.Tone = toneWarn
	}
	return g
}

func dialMode(d *Dial, now time.Time) string {
	switch d.Mode {
	case "pinned":
		return "by an operator" + endWords(d.Until, now)
	case "schedule":
		return "window " + d.Window + endWords(d.Until, now)
	case "auto":
		return "by the load of the workers"
	}
	return "fixed by the configuration"
}

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
