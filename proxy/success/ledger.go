// Package success counts what share of requests was answered well, by minute and
// by day, overall and by site, with the most frequent reasons for the rest.
//
// Guaranteed: what is counted takes a bounded amount of memory, a day of minutes
// and a month of days for each site, however long it goes on; reasons are kept
// apart up to a bound and counted as "other" beyond it. A file that holds a ledger
// is replaced in one step, so that a crash leaves the older one. Not guaranteed:
// that a process that is killed had written its last minute.
package success

import (
	"sync"
	"time"
)

// The targets: three nines of each minute and four nines of each day.
const (
	MinuteTarget = 0.999
	DayTarget    = 0.9999
)

// What a ledger keeps.
const (
	minutes    = 24 * 60
	hours      = 24
	days       = 31
	maxReasons = 32   // words kept apart within an hour
	maxSites   = 2000 // twice what a configuration may hold, for those it no longer does
	maxWord    = 64   // bytes of a reason
)

// otherReason stands for reasons beyond maxReasons.
const otherReason = "other"

// Ledger counts. It is safe for use by many goroutines.
type Ledger struct {
	now func() time.Time

	mu    sync.Mutex
	all   *series
	sites map[string]*series
}

// New gives an empty ledger; nil means time.Now.
func New(now func() time.Time) *Ledger {
	if now == nil {
		now = time.Now
	}
	return &Ledger{now: now, all: newSeries(), sites: map[string]*series{}}
}

// Good counts a request of a site that was answered well; site is "" for one that
// belongs to none.
func (l *Ledger) Good(site string) { l.count(site, "") }

// Bad counts one that was not, with the reason, one of a fixed set of words.
func (l *Ledger) Bad(site, reason string) {
	if reason == "" || len(reason) > maxWord {
		reason = otherReason
	}
	l.count(site, reason)
}

func (l *Ledger) count(site, reason string) {
	minute := l.now().Unix() / 60
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.count(minute, reason)
	if site == "" {
		return
	}
	s := l.sites[site]
	if s == nil {
		if len(l.sites) >= maxSites {
			return
		}
		s = newSeries()
		l.sites[site] = s
	}
	s.count(minute, reason)
}

// tally is a number of requests.
type tally struct {
	good, all uint64
}

// series are the counts of one site, or of all. Minutes, hours and days are those
// since 1970 in UTC; each ring holds the last of them by their remainder.
type series struct {
	minute  int64 // the last one that was written
	begun   bool
	minutes [minutes]tally
	days    [days]tally
	reasons [hours]map[string]uint64
}

func newSeries() *series { return &series{} }

func (s *series) count(minute int64, reason string) {
	s.advance(minute)
	m, d := &s.minutes[at(s.minute, minutes)], &s.days[at(s.minute/minutes, days)]
	m.all++
	d.all++
	if reason == "" {
		m.good++
		d.good++
		return
	}
	hour := at(s.minute/60, hours)
	if s.reasons[hour] == nil {
		s.reasons[hour] = map[string]uint64{}
	}
	if _, known := s.reasons[hour][reason]; !known && len(s.reasons[hour]) >= maxReasons {
		reason = otherReason
	}
	s.reasons[hour][reason]++
}

// advance empties what the time since the last count has made old. A clock that
// runs backwards stands still here.
func (s *series) advance(minute int64) {
	if !s.begun {
		s.minute, s.begun = minute, true
		return
	}
	if minute <= s.minute {
		return
	}
	clear := func(from, to, size int64, empty func(i int64)) {
		for i := max(from+1, to-size+1); i <= to; i++ {
			empty(at(i, size))
		}
	}
	clear(s.minute, minute, minutes, func(i int64) { s.minutes[i] = tally{} })
	clear(s.minute/60, minute/60, hours, func(i int64) { s.reasons[i] = nil })
	clear(s.minute/minutes, minute/minutes, days, func(i int64) { s.days[i] = tally{} })
	s.minute = minute
}

// at gives the place of the n-th minute, hour or day in its ring.
func at(n, size int64) int64 { return ((n % size) + size) % size }
