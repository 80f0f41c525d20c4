package watchdog

import (
	"time"

	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/store"
)

// Status is how things are, as last written down. It asks nobody.
type Status struct {
	At    time.Time    `json:"at"`
	Sites []SiteStatus `json:"sites"`
	// Mails wait in the outbox, the oldest since OldestMail.
	Mails      int       `json:"mails_waiting"`
	OldestMail time.Time `json:"oldest_mail,omitzero"`
	MailError  string    `json:"mail_error,omitempty"`
}

// SiteStatus is one site's.
type SiteStatus struct {
	Site   string         `json:"site"`
	Health machine.Health `json:"health"` // up, down, or empty before the first round
	Since  time.Time      `json:"since,omitzero"`
	Order  event.Order    `json:"order"` // proxy, direct, or empty if not known
	// Degraded is when the true origin came first; zero while the proxy does.
	Degraded time.Time `json:"degraded_since,omitzero"`
	// Held: others set the order, and it is left alone until the health changes.
	Held bool `json:"held"`
	// GoodRounds of GoodRoundsNeeded in a row for a restore.
	GoodRounds       int `json:"good_rounds"`
	GoodRoundsNeeded int `json:"good_rounds_needed"`
	// Swaps in the last 24 hours, of MaxSwapsPerDay.
	Swaps          int              `json:"swaps_today"`
	MaxSwapsPerDay int              `json:"max_swaps_per_day"`
	Deploying      *store.Deploying `json:"deploying,omitempty"`
	Last           *store.Round     `json:"last_round,omitempty"`
	// NextRound is when the next round begins, zero if that is not known.
	NextRound time.Time `json:"next_round,omitzero"`
	// Late: the last round is longer ago than two intervals; nobody seems to watch.
	Late         bool               `json:"late"`
	Distribution event.Distribution `json:"distribution"`
	Degrade      string             `json:"degrade"` // auto or manual
	Restore      string             `json:"restore"`
	// Words says it in one line.
	Words string `json:"words"`
	Error string `json:"error,omitempty"`
}

// Status reads what was last written down about every site.
func (w *Watchdog) Status() Status {
	out := Status{At: now()}
	for _, s := range w.all() {
		out.Sites = append(out.Sites, s.status(out.At))
	}
	var err error
	if out.Mails, out.OldestMail, err = w.outbox.Waiting(); err != nil {
		out.MailError = err.Error()
	}
	return out
}

func (s *site) status(at time.Time) SiteStatus {
	c := s.config
	out := SiteStatus{
		Site: c.ID, MaxSwapsPerDay: c.MaxSwapsPerDay, Degrade: c.Degrade, Restore: c.Restore,
		Distribution: event.Distribution{ID: c.DistributionID, Group: c.OriginGroupID, Proxy: c.ProxyOriginID, Direct: c.DirectOriginID},
	}
	rec, err := s.peek()
	if err != nil {
		out.Error, out.Words = err.Error(), "not known: "+err.Error()
		return out
	}
	state := rec.State
	out.Health, out.Since, out.Order, out.Held = state.Health, state.Since, state.Order, state.Held
	out.GoodRounds, out.GoodRoundsNeeded, out.Swaps = state.Good, state.Need(s.rules()), state.Own()
	out.Deploying, out.Last = rec.Deploying, rec.Last
	if state.Episode != nil {
		out.Degraded = state.Episode.Since
	}
	out.Late = rec.Last != nil && at.Sub(rec.Last.At) > 2*s.common.Interval+time.Duration(s.ping.Count)*(s.ping.Spacing+s.ping.Timeout)
	out.NextRound = s.nextRound(rec.Last, at)
	out.Words = out.words()
	return out
}

// peek reads the record without the lock: a state file is always whole.
func (s *site) peek() (store.Record, error) {
	s.mu.Lock()
	unsaved := s.unsaved
	s.mu.Unlock()
	if unsaved != nil {
		return *unsaved, nil
	}
	return s.store.Peek(s.target())
}

func (s SiteStatus) words() string {
	text := "not looked at yet"
	switch {
	case s.Last == nil:
		return text
	case s.Health == machine.Up && s.Order == event.OrderProxy:
		text = "up, images come from the proxy"
	case s.Health == machine.Up && s.Order == event.OrderDirect && s.Held:
		text = "up, but degraded by a person ('degrade', or outside of the watchdog), which the watchdog leaves alone"
	case s.Health == machine.Up && s.Order == event.OrderDirect && s.Restore == "manual":
		text = "up, still degraded: a person has to restore"
	case s.Health == machine.Up && s.Order == event.OrderDirect:
		text = "up, still degraded"
	case s.Health == machine.Down && s.Order == event.OrderDirect:
		text = "DOWN and degraded: images come from the true origin"
	case s.Health == machine.Down && s.Order == event.OrderProxy && s.Held:
		text = "DOWN, not degraded: somebody put the proxy first, and the watchdog leaves that alone"
	case s.Health == machine.Down && s.Order == event.OrderProxy:
		text = "DOWN, not degraded"
	case s.Health == machine.Down:
		text = "DOWN, the order is not known"
	case s.Health == machine.Up:
		text = "up, the order is not known"
	}
	if s.Last.Verdict == machine.Inconclusive {
		text += "; the last round was inconclusive"
	}
	if s.Deploying != nil {
		text += "; a change is on its way to the edge"
	}
	if s.Late {
		text += "; the last round is long ago: is the watchdog running?"
	}
	return text
}
