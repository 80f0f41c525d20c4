package status

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"karui/internal/page"
	"karui/proxy/success"
)

// charts are the drawings of the last hour.
func (m *maker) charts() []page.Chart {
	out := []page.Chart{m.requests(), m.refused(), m.latency(), m.successes(), m.saved(), m.levels()}
	if m.facts.Workers != nil {
		out = append(out, m.busy(), m.waiting())
	}
	if m.facts.Cache != nil {
		out = append(out, m.disks())
	}
	if m.facts.Backlog != nil && slices.ContainsFunc(m.states, func(s state) bool { return s.backlog > 0 }) {
		out = append(out, m.backlog())
	}
	for i := range out {
		out[i].X = m.times()
	}
	return out
}

// times are the labels of the axis of time.
func (m *maker) times() []string {
	var labels []string
	for back := minutes; back >= 0; back -= minutes / 4 {
		labels = append(labels, m.facts.At.Truncate(time.Minute).Add(-time.Duration(back-1)*time.Minute).Format("15:04"))
	}
	labels[len(labels)-1] = "now"
	return labels
}

// start names the minute of a column.
func (m *maker) start(i int) string {
	return m.facts.At.Truncate(time.Minute).Add(time.Duration(i-minutes+1) * time.Minute).Format("15:04")
}

// first is the column in which the process was started, at most the last one.
func (m *maker) first() int {
	first := m.began.Unix()/60 - (m.facts.At.Unix()/60 - minutes + 1)
	return int(min(max(first, 0), minutes-1))
}

// beforeStart is what the shaded part of a chart is.
const beforeStart = "before the start"

// bars draws what was counted, which is not known before the start.
func (m *maker) bars(c page.Chart, series []page.Series, o page.BarOptions) page.Chart {
	c.From, c.Before = m.first(), beforeStart
	return page.Bars(c, series, minutes, o)
}

// lines draws states, which are not known before the start.
func (m *maker) lines(c page.Chart, series []page.Series, scale page.Scale, limits []page.Limit) page.Chart {
	c.From, c.Before = m.first()*slots/minutes, beforeStart
	for c.From < len(m.states) && !m.states[c.From].known && c.From < m.first()*slots/minutes+slots/minutes {
		c.From++
	}
	return page.Lines(c, series, slots, scale, limits)
}

// counted gives a number for each minute, which is not known before the start.
func (m *maker) counted(of func(*minute) float64) []float64 {
	out := make([]float64, minutes)
	for i := range out {
		if out[i] = page.Unknown(); i >= m.first() {
			out[i] = of(&m.picture.all[i])
		}
	}
	return out
}

// stack gives one series of the counts.
func (m *maker) stack(name, class string, of func(*minute) uint64) (page.Series, uint64) {
	total := uint64(0)
	values := m.counted(func(one *minute) float64 {
		total += of(one)
		return float64(of(one))
	})
	return page.Series{Key: page.Key{Name: name, Class: class, Value: page.Count(total)}, Values: values}, total
}

// tip writes what a minute of a stack holds.
func (m *maker) tip(series []page.Series, words func(float64) string) func(int) string {
	return func(i int) string {
		parts := []string{m.start(i)}
		for _, s := range series {
			if s.Values[i] > 0 {
				parts = append(parts, s.Name+" "+words(s.Values[i]))
			}
		}
		return strings.Join(parts, "\n")
	}
}

func (m *maker) requests() page.Chart {
	var series []page.Series
	var parts []string
	for _, kind := range []struct {
		name, class string
		from, to    outcome
		rare        bool
	}{
		{"hit", "s1", hit, wait, false},
		{"wait", "s2", wait, stale, false},
		{"stale", "s5", stale, original, true},
		{"original", "s3", original, miss, false},
		{"miss", "s4", miss, bypass, false},
		{"bypass", "s6", bypass, otherwise, false},
		{"aborted, refused", "s8", otherwise, firstRefused, true},
		{"503", "s7", firstRefused, outcomes, false},
	} {
		s, total := m.stack(kind.name, kind.class, func(one *minute) uint64 {
			c := one.counts()
			return c.sum(kind.from, kind.to)
		})
		if kind.rare && total == 0 {
			continue
		}
		series, parts = append(series, s), append(parts, kind.name+" "+s.Value)
	}
	return m.bars(page.Chart{
		ID: "requests", Title: "Requests by outcome", Note: "a minute; sums of the hour below",
		Text: "Requests of the last hour by what was answered: " + strings.Join(parts, ", ") + ".",
	}, series, page.BarOptions{Words: page.Count[float64], Max: page.Ceiling(max(page.Highest(series, minutes), 4)), Tip: m.tip(series, page.Count[float64])})
}

func (m *maker) refused() page.Chart {
	c := page.Chart{ID: "refused", Title: "503 by reason", Note: "a minute; the edge asks the true origin"}
	var series []page.Series
	var parts []string
	for _, kind := range []struct {
		class string
		o     outcome
	}{
		{"s7", byOrigin}, {"s4", byLatency}, {"s5", byDisk}, {"s3", byShed}, {"s6", byDrain}, {"s2", byRoute}, {"s1", bySecret}, {"s8", byPanic}, {"s6", byOther},
	} {
		s, total := m.stack(kind.o.word(), kind.class, func(one *minute) uint64 { return uint64(one.did[kind.o]) })
		if total > 0 {
			series, parts = append(series, s), append(parts, s.Name+" "+s.Value)
		}
	}
	if len(series) == 0 {
		c.Empty = "None within the last hour."
		if m.facts.At.Sub(m.began) < time.Hour {
			c.Empty = "None since the start."
		}
		return c
	}
	c.Text = "Requests of the last hour that were answered with 503, by reason: " + strings.Join(parts, ", ") + "."
	return m.bars(c, series, page.BarOptions{Words: page.Count[float64], Max: page.Ceiling(max(page.Highest(series, minutes), 4)), Tip: m.tip(series, page.Count[float64])})
}

// seen gives a value for each slot.
func (m *maker) seen(of func(*state) float64) []float64 {
	out := make([]float64, len(m.states))
	for i := range m.states {
		if out[i] = page.Unknown(); m.states[i].known {
			out[i] = of(&m.states[i])
		}
	}
	return out
}

func seconds(v float64) string { return page.Took(time.Duration(v * float64(time.Second))) }

// curve gives a line with its newest value.
func (m *maker) curve(name, class, unknown string, words func(float64) string, of func(*state) float64) page.Series {
	s := page.Series{Key: page.Key{Name: name, Class: class, Value: unknown}, Values: m.seen(of)}
	if v, ok := latest(m.states, of); ok {
		s.Value = words(v)
	}
	return s
}

func (m *maker) latency() page.Chart {
	limit := m.facts.Limits.Latency
	series := []page.Series{
		m.curve("slowest site's misses", "s4", "no requests", seconds, func(s *state) float64 { return s.slowest }),
		m.curve("hits", "s3", "no requests", seconds, func(s *state) float64 { return s.hits }),
		m.curve("all", "s1", "no requests", seconds, func(s *state) float64 { return s.all }),
	}
	slices.Reverse(series)
	c := page.Chart{
		ID: "latency", Title: "Mean time to first byte", Note: "worst of 10 s; now below",
		Text: fmt.Sprintf("Mean time to the first byte over the last hour. Now: all %s, hits %s, slowest site's misses %s. From %s on requests are turned away.", series[0].Value, series[1].Value, series[2].Value, page.Took(limit)),
		Y:    []string{"10 s", "1 s", "100 ms", "10 ms", "1 ms"}, Nothing: "no requests",
	}
	var limits []page.Limit
	if limit > 0 {
		limits = []page.Limit{{At: limit.Seconds(), Name: page.Took(limit) + " stress.latency", Class: "bad"}}
	}
	return m.lines(c, series, page.Scale{Min: 0.001, Max: 10, Log: true}, limits)
}

// nines of a share: 3 for 99.9 %, 5 for all of them.
func nines(s success.Share) float64 {
	if s.Good >= s.Total {
		return 5
	}
	return min(max(-math.Log10(1-s.Rate()), 0.12), 4.8)
}

func (m *maker) successes() page.Chart {
	met := page.Series{Key: page.Key{Name: "minutes that met it", Class: "s1"}, Values: make([]float64, minutes)}
	missed := page.Series{Key: page.Key{Name: "missed it", Class: "s7"}, Values: make([]float64, minutes)}
	going := page.Series{Key: page.Key{Name: "under way", Class: "s6"}, Values: make([]float64, minutes)}
	asked, good, bad := false, 0, 0
	for i, one := range m.minutes {
		if i >= minutes || one.Total == 0 {
			continue
		}
		asked = true
		if i == minutes-1 { // it may still become better or worse, and is counted when it is over
			going.Values[i], going.Value = nines(one.Share), page.Share(one.Good, one.Total)
			continue
		}
		if one.Rate() >= success.MinuteTarget {
			met.Values[i] = nines(one.Share)
			good++
			continue
		}
		missed.Values[i] = nines(one.Share)
		bad++
	}
	met.Value, missed.Value = fmt.Sprint(good), fmt.Sprint(bad)
	c := page.Chart{
		ID: "nines", Title: "Answered well, by minute", Note: "against three nines",
		Text: fmt.Sprintf("Share of requests answered well in each minute of the last hour: %d minutes met 99.9 %%, %d missed it.", good, bad),
		Y:    []string{"100 %", "99.99 %", "99.9 %", "99 %", "90 %", "0 %"},
	}
	if !asked {
		c.Empty = "Nothing was asked within the last hour."
		return c
	}
	series := []page.Series{met, missed}
	if going.Value != "" {
		series = append(series, going)
	}
	return page.Bars(c, series, minutes, page.BarOptions{
		Max: 5, Limits: []page.Limit{{At: 3, Class: "bad"}},
		Tip: func(i int) string {
			one := m.minutes[i]
			return fmt.Sprintf("%s\n%s of %s", m.start(i), page.Share(one.Good, one.Total), page.Plural(one.Total, "request"))
		},
	})
}

func (m *maker) saved() page.Chart {
	total := uint64(0)
	values := m.counted(func(one *minute) float64 {
		total += one.saved
		return float64(one.saved)
	})
	series := []page.Series{{Key: page.Key{Name: "saved", Class: "s1", Value: page.Bytes(total)}, Values: values}}
	return m.bars(page.Chart{
		ID: "saved", Title: "Bytes saved", Note: "a minute, against the originals",
		Text: "Bytes that variants saved viewers within the last hour: " + page.Bytes(total) + ".",
	}, series, page.BarOptions{
		Words: page.Bytes[float64], Max: page.CeilingBytes(max(page.Highest(series, minutes), 1024)), Tip: m.tip(series, page.Bytes[float64]),
	})
}

func (m *maker) levels() page.Chart {
	d := &m.facts.Dial
	names := slices.Clone(d.Levels)
	slices.Reverse(names)
	for i, name := range names {
		if r := []rune(name); len(r) > 8 {
			names[i] = string(r[:7]) + "…"
		}
	}
	moves := 0
	for _, move := range d.Moves {
		if move.Site == "" && m.facts.At.Sub(move.At) < time.Hour {
			moves++
		}
	}
	s := page.Series{
		Key: page.Key{Name: "level", Class: "s5", Value: d.level(d.Level)}, Step: true,
		Values: m.seen(func(s *state) float64 { return float64(s.level) }),
	}
	return m.lines(page.Chart{
		ID: "levels", Title: "Dial", Note: page.Plural(moves, "move") + " of all sites in the hour", Y: names,
		Text: fmt.Sprintf("Level of the dial over the last hour: now %s, %s.", d.level(d.Level), page.Plural(moves, "move")),
	}, []page.Series{s}, page.Scale{Max: float64(max(len(names)-1, 1))}, nil)
}

// percent writes a share of 0 to 1.
func percent(v float64) string { return page.Percent(v) }

func (m *maker) busy() page.Chart {
	series := []page.Series{
		m.curve("WebP", "s1", notKnown, percent, func(s *state) float64 { return s.busy[0] }),
		m.curve("AVIF and HEIC", "s4", notKnown, percent, func(s *state) float64 { return s.busy[1] }),
	}
	return m.lines(page.Chart{
		ID: "busy", Title: "Workers busy", Note: "share of their time", Y: []string{"100 %", "50 %", "0 %"},
		Text: fmt.Sprintf("Share of the workers' time that was used over the last hour. Now: WebP %s, AVIF and HEIC %s.", series[0].Value, series[1].Value),
	}, series, page.Scale{Max: 1}, nil)
}

// rising gives the scale of lines that begin at 0, with its labels.
func rising(series []page.Series) (page.Scale, []string) {
	highest := 0.0
	for _, s := range series {
		for _, v := range s.Values {
			if v > highest {
				highest = v
			}
		}
	}
	top := page.Ceiling(max(highest, 4))
	return page.Scale{Max: top}, []string{page.Count(top), page.Count(top / 2), "0"}
}

func (m *maker) waiting() page.Chart {
	series := []page.Series{
		m.curve("WebP", "s1", notKnown, page.Count[float64], func(s *state) float64 { return s.waiting[0] }),
		m.curve("AVIF and HEIC", "s4", notKnown, page.Count[float64], func(s *state) float64 { return s.waiting[1] }),
	}
	scale, labels := rising(series)
	longest := 0.0
	for i := range m.states {
		for _, v := range m.states[i].longest {
			if v > longest { // never for what is not known
				longest = v
			}
		}
	}
	note := "for a worker"
	if longest > 0 {
		note = "longest wait of the hour " + seconds(longest)
	}
	return m.lines(page.Chart{
		ID: "waiting", Title: "Conversions waiting", Note: note, Y: labels,
		Text: fmt.Sprintf("Conversions that wait for a worker over the last hour. Now: WebP %s, AVIF and HEIC %s.", series[0].Value, series[1].Value),
	}, series, scale, nil)
}

func (m *maker) backlog() page.Chart {
	series := []page.Series{m.curve("waiting", "s5", notKnown, page.Count[float64], func(s *state) float64 { return s.backlog })}
	scale, labels := rising(series)
	return m.lines(page.Chart{
		ID: "backlog", Title: "Backlog", Note: "made when workers are idle", Y: labels,
		Text: "Conversions put off until workers are idle, over the last hour. Now: " + series[0].Value + ".",
	}, series, scale, nil)
}

func (m *maker) disks() page.Chart {
	f := m.facts
	var series []page.Series
	var words []string
	for i, v := range f.Cache.Volumes[:min(len(f.Cache.Volumes), maxVolumes)] {
		name := v.Path
		if len(f.Cache.Volumes) > 2 || len(name) > 32 {
			name = "…/" + path.Join(path.Base(path.Dir(v.Path)), path.Base(v.Path))
		}
		s := m.curve(name, fmt.Sprintf("s%d", []int{1, 4, 3, 5, 2, 8}[i%6]), notKnown, func(v float64) string { return page.Percent(v / 100) },
			func(s *state) float64 { return s.volumes[i] })
		series, words = append(series, s), append(words, s.Name+" "+s.Value)
	}
	var limits []page.Limit
	if f.Limits.High > 0 {
		limits = append(limits, page.Limit{At: f.Limits.High, Name: fmt.Sprintf("%g %% high", f.Limits.High), Below: true})
	}
	if f.Limits.Stress > 0 {
		limits = append(limits, page.Limit{At: f.Limits.Stress, Name: fmt.Sprintf("%g %% stress", f.Limits.Stress), Class: "bad"})
	}
	return m.lines(page.Chart{
		ID: "disks", Title: "Disks used", Note: "share of the file system", Y: []string{"100 %", "75 %", "50 %", "25 %", "0 %"},
		Text: "Used share of the volumes' file systems over the last hour. Now: " + strings.Join(words, ", ") + ".",
	}, series, page.Scale{Max: 100}, limits)
}
