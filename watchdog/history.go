package watchdog

import (
	"time"

	"karui/watchdog/event"
	"karui/watchdog/store"
)

// remember adds to the site's history, under its lock. What cannot be written down is
// kept in memory until it can.
func (s *site) remember(add func(*store.History)) {
	h := s.history()
	add(&h)
	err := s.store.SaveHistory(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unkept = nil
	if err != nil {
		s.unkept = &h
		s.log.Debug("history is kept in memory only", "error", err)
	}
}

// history is what happened at the site lately.
func (s *site) history() store.History {
	s.mu.Lock()
	unkept := s.unkept
	s.mu.Unlock()
	if unkept != nil {
		return *unkept
	}
	return s.store.History(s.target())
}

// mark is a round as the history holds it.
func mark(r Result) store.Mark {
	m := store.Mark{
		At: r.Round.At, Took: r.Round.Took, Verdict: r.Round.Verdict, Order: r.Order,
		Unread: r.Round.OrderError != "", Asked: len(r.Round.Probes),
	}
	for _, p := range r.Round.Probes {
		if !p.OK {
			m.Failed++
			m.Kind = p.Kind
		}
	}
	return m
}

// told is an event as the history holds it.
func told(e event.Event) store.Told {
	return store.Told{ID: e.ID, Kind: e.Kind, At: e.At, Actor: e.Actor, Person: e.Person, Want: e.Want, Before: e.Before, After: e.After}
}

// due notes when the next round begins.
func (s *site) due(at time.Time) { s.next.Store(at.UnixNano()) }

// nextRound is when the next round begins, as this process knows or, for others, as
// the last one makes likely; zero if that is not known.
func (s *site) nextRound(last *store.Round, at time.Time) time.Time {
	if n := s.next.Load(); n != 0 {
		return time.Unix(0, n).UTC()
	}
	if last != nil {
		if next := last.At.Add(s.common.Interval - last.Took); next.After(at) {
			return next
		}
	}
	return time.Time{}
}
