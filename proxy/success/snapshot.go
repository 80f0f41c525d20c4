package success

import (
	"cmp"
	"slices"
	"time"
)

// Share is a number of requests and how many of them were answered well.
type Share struct {
	Good  uint64 `json:"good"`
	Total uint64 `json:"total"`
}

// Rate is the share, and 1 where nothing was asked.
func (s Share) Rate() float64 {
	if s.Total == 0 {
		return 1
	}
	return float64(s.Good) / float64(s.Total)
}

// Minute is one minute in which something was asked.
type Minute struct {
	Start time.Time `json:"start,omitzero"`
	Share
}

// Day is one day in UTC.
type Day struct {
	// Date is such as 2026-08-01.
	Date string `json:"date"`
	Share
}

// Reason is why requests were not answered well.
type Reason struct {
	Word  string `json:"word"`
	Count uint64 `json:"count"`
}

// Record is how one site, or all of them, did.
type Record struct {
	// LastMinute is the last full one, of requests or of none.
	LastMinute Minute `json:"last_minute"`
	// Worst is the minute of the last 24 hours with the smallest share.
	Worst Minute `json:"worst_minute"`
	// Minutes of the last 24 hours in which something was asked, and how many of them
	// missed MinuteTarget. The minute that is under way is not among them.
	Minutes       int `json:"minutes"`
	MinutesMissed int `json:"minutes_missed"`
	// LastDay are the last 24 hours, the minute under way included.
	LastDay Share `json:"last_day"`
	// Days are those in which something was asked, the latest one first.
	Days []Day `json:"days"`
	// Reasons of about the last 24 hours, the most frequent one first.
	Reasons []Reason `json:"reasons"`
}

// MinuteMet tells whether the last full minute met its target.
func (r Record) MinuteMet() bool { return r.LastMinute.Rate() >= MinuteTarget }

// DayMet tells whether the last 24 hours met their target.
func (r Record) DayMet() bool { return r.LastDay.Rate() >= DayTarget }

// Snapshot is how all sites together and each one did.
type Snapshot struct {
	All   Record            `json:"all"`
	Sites map[string]Record `json:"sites"`
}

// Snapshot looks at everything at one instant.
func (l *Ledger) Snapshot() Snapshot {
	minute := l.now().Unix() / 60
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Snapshot{All: l.all.record(minute), Sites: make(map[string]Record, len(l.sites))}
	for id, series := range l.sites {
		s.Sites[id] = series.record(minute)
	}
	return s
}

func (s *series) record(now int64) Record {
	s.advance(now)
	now = s.minute
	r := Record{LastMinute: s.at(now - 1), Days: []Day{}, Reasons: []Reason{}}
	for m := now - minutes + 1; m <= now; m++ {
		one := s.at(m)
		r.LastDay.Good += one.Good
		r.LastDay.Total += one.Total
		if m == now || one.Total == 0 {
			continue
		}
		r.Minutes++
		if one.Rate() < MinuteTarget {
			r.MinutesMissed++
		}
		if r.Worst.Total == 0 || one.Rate() < r.Worst.Rate() {
			r.Worst = one
		}
	}
	for d := now / minutes; d > now/minutes-days; d-- {
		if t := s.days[at(d, days)]; t.all > 0 {
			date := time.Unix(d*minutes*60, 0).UTC().Format(time.DateOnly)
			r.Days = append(r.Days, Day{Date: date, Share: Share{t.good, t.all}})
		}
	}
	sums := map[string]uint64{}
	for _, hour := range s.reasons {
		for word, n := range hour {
			sums[word] += n
		}
	}
	for word, n := range sums {
		r.Reasons = append(r.Reasons, Reason{word, n})
	}
	slices.SortFunc(r.Reasons, func(a, b Reason) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.Word, b.Word))
	})
	return r
}

func (s *series) at(minute int64) Minute {
	t := s.minutes[at(minute, minutes)]
	return Minute{Start: time.Unix(minute*60, 0).UTC(), Share: Share{t.good, t.all}}
}
