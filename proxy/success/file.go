package success

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"karui/internal/statefile"
)

// fileVersion is that of the file's form; another one is not read.
const fileVersion = 1

// maxFile bounds what is read: over what maxSites busy sites take.
const maxFile = 128 << 20

// file is a ledger on disk. Rings are written with their oldest element first.
type file struct {
	Version int                    `json:"version"`
	All     *fileSeries            `json:"all"`
	Sites   map[string]*fileSeries `json:"sites"`
}

type fileSeries struct {
	// Minute is the last one, since 1970.
	Minute  int64               `json:"minute"`
	Minutes [][2]uint64         `json:"minutes"`
	Days    [][2]uint64         `json:"days"`
	Reasons []map[string]uint64 `json:"reasons"`
}

// Save writes the ledger to a file, whose folder it makes.
func (l *Ledger) Save(name string) error {
	minute := l.now().Unix() / 60
	l.mu.Lock()
	f := file{Version: fileVersion, All: l.all.write(minute), Sites: make(map[string]*fileSeries, len(l.sites))}
	for id, s := range l.sites {
		f.Sites[id] = s.write(minute)
	}
	l.mu.Unlock()
	b, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("write the success of requests: %w", err)
	}
	return statefile.Write(name, b)
}

// Load reads what Save wrote. A file that is missing leaves the ledger as it is,
// and so does one that cannot be read, with an error.
func (l *Ledger) Load(name string) error { return statefile.Read(name, maxFile, l.decode) }

// decode takes over a file's text, or nothing of it.
func (l *Ledger) decode(b []byte) error {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	if f.Version != fileVersion {
		return fmt.Errorf("its version is %d, not %d", f.Version, fileVersion)
	}
	// What is from the future is from a clock that was wrong.
	latest := l.now().Unix()/60 + 1
	all := f.All.read(latest)
	sites := make(map[string]*series, len(f.Sites))
	for id, s := range f.Sites {
		if len(sites) < maxSites && id != "" {
			sites[id] = s.read(latest)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.sites = all, sites
	return nil
}

// Keep saves the ledger again and again until ctx ends, and then for the last
// time. What cannot be written is told to complain, once until it works again.
func (l *Ledger) Keep(ctx context.Context, name string, every time.Duration, complain func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	failing := false
	save := func() {
		err := l.Save(name)
		if err != nil && !failing {
			complain(err)
		}
		failing = err != nil
	}
	for {
		select {
		case <-tick.C:
			save()
		case <-ctx.Done():
			save()
			return
		}
	}
}

func (s *series) write(minute int64) *fileSeries {
	s.advance(minute)
	minute = s.minute
	f := &fileSeries{Minute: minute}
	for i := minute - minutes + 1; i <= minute; i++ {
		t := s.minutes[at(i, minutes)]
		f.Minutes = append(f.Minutes, [2]uint64{t.good, t.all})
	}
	for i := minute/minutes - days + 1; i <= minute/minutes; i++ {
		t := s.days[at(i, days)]
		f.Days = append(f.Days, [2]uint64{t.good, t.all})
	}
	for i := minute/60 - hours + 1; i <= minute/60; i++ {
		reasons := make(map[string]uint64, len(s.reasons[at(i, hours)]))
		for word, n := range s.reasons[at(i, hours)] {
			reasons[word] = n
		}
		f.Reasons = append(f.Reasons, reasons)
	}
	return f
}

// read gives an empty series for what makes no sense.
func (f *fileSeries) read(latest int64) *series {
	s := newSeries()
	if f == nil || f.Minute < 0 || f.Minute > latest || len(f.Minutes) != minutes || len(f.Days) != days || len(f.Reasons) != hours {
		return s
	}
	s.minute, s.begun = f.Minute, true
	put := func(to *tally, pair [2]uint64) {
		if pair[0] <= pair[1] {
			*to = tally{good: pair[0], all: pair[1]}
		}
	}
	for i, pair := range f.Minutes {
		put(&s.minutes[at(f.Minute-minutes+1+int64(i), minutes)], pair)
	}
	for i, pair := range f.Days {
		put(&s.days[at(f.Minute/minutes-days+1+int64(i), days)], pair)
	}
	for i, reasons := range f.Reasons {
		if len(reasons) == 0 || len(reasons) > maxReasons+1 {
			continue
		}
		kept := make(map[string]uint64, len(reasons))
		for word, n := range reasons {
			if len(word) <= maxWord {
				kept[word] = n
			}
		}
		s.reasons[at(f.Minute/60-hours+1+int64(i), hours)] = kept
	}
	return s
}
