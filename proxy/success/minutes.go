package success

// maxMinutes is how many of the last minutes can be asked for: a day of them.
const maxMinutes = minutes

// Minutes gives the last n minutes of a site, or of all with site "", oldest first;
// the last one is under way. One in which nothing was asked has a Total of 0.
func (l *Ledger) Minutes(site string, n int) []Minute {
	n = min(max(n, 0), maxMinutes)
	minute := l.now().Unix() / 60
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.series(site)
	if s != nil {
		s.advance(minute)
		minute = s.minute
	}
	out := make([]Minute, n)
	for i := range out {
		m := minute - int64(n-1-i)
		if s == nil {
			s = newSeries()
		}
		out[i] = s.at(m)
	}
	return out
}

// Of gives how a site did, or all of them with site "", without looking at any other.
// It is false for one of which nothing was counted.
func (l *Ledger) Of(site string) (Record, bool) {
	minute := l.now().Unix() / 60
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.series(site)
	if s == nil {
		return Record{}, false
	}
	return s.record(minute), true
}

func (l *Ledger) series(site string) *series {
	if site == "" {
		return l.all
	}
	return l.sites[site]
}
