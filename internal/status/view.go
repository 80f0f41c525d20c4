package status

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"time"

	"karui/internal/page"
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
