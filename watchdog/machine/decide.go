package machine

import (
	"strings"
	"time"

	"karui/watchdog/event"
)

// Verdict is the result of a round.
type Verdict string

// A round is inconclusive when all pings failed and no control answered: the
// watchdog's own network is gone.
const (
	Inconclusive Verdict = "inconclusive"
	VerdictUp    Verdict = "up"
	VerdictDown  Verdict = "down"
)

// Observation is what a round found.
type Observation struct {
	// ID begins the IDs of all events of the round; unique in the world.
	ID string
	At time.Time
	// Began is when the first ping of the round was sent.
	Began   time.Time
	Verdict Verdict
	// OriginLives is only looked at when the verdict is down.
	OriginLives bool
	// Read tells that the order could be read; Order is OrderUnknown when the
	// group does not hold the two origins.
	Read  bool
	Order event.Order
	// Unread is a stable word for why the order could not be read; without Read.
	Unread string
}

// Rules are a site's settings.
type Rules struct {
	AutoDegrade    bool
	AutoRestore    bool
	RestoreAfter   int
	MaxSwapsPerDay int
}

// Notice is something to tell. The runner makes an event of it, with what it
// knows of the round.
type Notice struct {
	ID            string
	Kind          event.Kind
	Want          event.Order // of SwapFailed, ManualAwaited, Capped
	Before, After event.Order
	FirstSight    bool
	ReplyTo       string
	Actor         event.Actor
	Person        string
	// DegradedSince is set while degraded, and in the notice that ends it.
	DegradedSince time.Time
}

// Plan is what to do: tell the notices, then swap, unless Swap is OrderUnknown.
// The state's Intent describes the swap and has to be on disk before it begins.
type Plan struct {
	Tell []Notice
	Swap event.Order
}

// Decide is one step. The state that it returns is to be written down before the
// plan is carried out.
func Decide(before State, o Observation, r Rules) (State, Plan) {
	s := before.clone()
	s.at(o.At)
	if o.Verdict == Inconclusive {
		return s, Plan{}
	}
	d := decision{State: &s, o: o, r: r}
	d.health()
	d.order()
	if !s.Held {
		d.act()
	}
	d.remind()
	return s, d.plan
}

// decision is a Decide under way.
type decision struct {
	*State
	o       Observation
	r       Rules
	plan    Plan
	changed bool // the health is another than before
}

func (d *decision) tell(n Notice) string {
	n.ID = noticeID(d.o.ID, n.Kind)
	d.add(n)
	return n.ID
}

// add appends a notice that has its ID.
func (d *decision) add(n Notice) {
	if n.Actor == "" {
		n.Actor = event.ActorAuto
	}
	if n.DegradedSince.IsZero() && d.Episode != nil {
		n.DegradedSince = d.Episode.Since
	}
	d.plan.Tell = append(d.plan.Tell, n)
}

func noticeID(round string, kind event.Kind) string {
	return round + "-" + strings.ReplaceAll(string(kind), "_", "-")
}

// health takes over the verdict.
func (d *decision) health() {
	now := Up
	if d.o.Verdict == VerdictDown {
		now = Down
	}
	if d.Health != now {
		// The first verdict ever is no change: what a person did before stands.
		d.changed = d.Health != Unknown
		d.Health, d.Since, d.Good = now, d.o.At, 0
		if !d.o.Began.IsZero() && !d.o.Began.After(d.o.At) {
			d.Since = d.o.Began
		}
		d.Told = Told{Flapping: d.Told.Flapping}
		if d.changed {
			d.Held = false
		}
	}
	if now == Up {
		d.Good++
	}
}

// order compares what was read with what the watchdog left.
func (d *decision) order() {
	if !d.o.Read {
		return
	}
	if d.Intent != nil {
		s, told := Settle(*d.State, d.o.Order, d.o.At)
		*d.State = s
		for _, n := range told {
			d.add(n)
		}
		if len(told) > 0 {
			return
		}
	}
	was, known := d.Order, d.Known
	d.Order, d.Known = d.o.Order, true
	if known && was == d.o.Order || !known && d.o.Order == event.OrderProxy {
		return
	}
	switch {
	case d.changed:
		// Which of the two came first is not known, and a change of health gives
		// leave to act.
		d.Held = false
	case !known:
		d.Held = d.Health == Up // degraded by somebody, for reasons of their own
	default:
		// To put a wrong group right is not to choose an order.
		d.Held = was != event.OrderUnknown
	}
	if d.Order == event.OrderProxy && d.Episode != nil {
		ended := *d.Episode
		d.Episode = nil
		d.tell(Notice{Kind: event.Drift, Before: was, After: d.Order, ReplyTo: ended.ID, DegradedSince: ended.Since})
		return
	}
	id := d.tell(Notice{Kind: event.Drift, Before: was, After: d.Order, FirstSight: !known})
	if d.Order == event.OrderDirect && d.Episode == nil {
		d.Episode = &Episode{Since: d.o.At, ID: id, Reminded: d.o.At}
	}
}

// Settle takes over a swap that was begun and whose end is not known, once the
// order was read: it went through, or it did not.
func Settle(before State, order event.Order, at time.Time) (State, []Notice) {
	s := before.clone()
	i := s.Intent
	s.Intent = nil
	if i != nil && i.To != order {
		i = i.Former
	}
	if i == nil || i.To != order {
		return s, nil
	}
	s.Known = true
	return finish(s, *i, at, true)
}

// act decides on a swap.
func (d *decision) act() {
	// A restore that may have gone through leaves the order open.
	open := d.Intent != nil && (d.Intent.To == event.OrderProxy || d.Intent.Former != nil)
	switch {
	case d.Health == Down && (d.Order != event.OrderDirect || open):
		switch {
		case !d.o.OriginLives:
			if !d.Told.OriginSilent {
				d.Told.OriginSilent = true
				d.tell(Notice{Kind: event.OriginSilent, Before: d.Order, After: d.Order})
			}
		case !d.r.AutoDegrade:
			d.await(event.OrderDirect)
		case d.Own()+1 > d.r.MaxSwapsPerDay:
			if !d.Told.Capped {
				d.Told.Capped = true
				d.tell(Notice{Kind: event.Capped, Want: event.OrderDirect, Before: d.Order, After: d.Order})
			}
		default:
			d.swap(event.OrderDirect)
		}
	case d.Health == Up && d.Order == event.OrderDirect && d.Good >= d.Need(d.r):
		switch {
		case !d.r.AutoRestore:
			d.await(event.OrderProxy)
		case d.Own()+2 > d.r.MaxSwapsPerDay:
			if d.Episode != nil && !d.Episode.Capped {
				d.Episode.Capped = true
				d.tell(Notice{Kind: event.Capped, Want: event.OrderProxy, Before: d.Order, After: d.Order, ReplyTo: d.Episode.ID})
			}
		case !d.o.Read:
			d.unread()
		default:
			d.swap(event.OrderProxy)
		}
	}
}

// unread tells, once an outage and reason, that a restore is held up since the
// order cannot be read: nothing would be written blindly.
func (d *decision) unread() {
	if !d.Told.fails(event.OrderProxy, d.o.Unread) {
		return
	}
	n := Notice{Kind: event.SwapFailed, Want: event.OrderProxy, Before: d.Order, After: d.Order}
	if d.Episode != nil {
		n.ReplyTo = d.Episode.ID
	}
	d.tell(n)
}

func (d *decision) await(want event.Order) {
	if d.Told.Awaited {
		return
	}
	d.Told.Awaited = true
	n := Notice{Kind: event.ManualAwaited, Want: want, Before: d.Order, After: d.Order}
	if want == event.OrderProxy && d.Episode != nil {
		n.ReplyTo = d.Episode.ID
	}
	d.tell(n)
}

func (d *decision) swap(to event.Order) {
	d.plan.Swap = to
	if d.Intent != nil && d.Intent.To == to {
		// A new ID, since that this one failed may have been told before the health
		// changed twice.
		d.Intent.Again, d.Intent.ID = true, noticeID(d.o.ID, kindOf(to))
		return
	}
	former := d.Intent
	if former != nil {
		former.Former = nil
	}
	d.Intent = &Intent{ID: noticeID(d.o.ID, kindOf(to)), To: to, At: d.o.At, By: event.ActorAuto, Former: former}
}

// remind tells once a day that the site is still degraded.
func (d *decision) remind() {
	// A swap that fails reminds when it has (see Finish).
	if d.plan.Swap == event.OrderUnknown && d.due(d.o.At) {
		d.tell(Notice{Kind: event.Reminder, Before: d.Order, After: d.Order, ReplyTo: d.Episode.ID})
	}
}

// due tells whether it is time for a reminder, and takes note of it.
func (s *State) due(at time.Time) bool {
	e := s.Episode
	if e == nil || s.Order != event.OrderDirect || at.Sub(e.Reminded) < day {
		return false
	}
	e.Reminded = at
	return true
}

func kindOf(to event.Order) event.Kind {
	if to == event.OrderDirect {
		return event.Degrade
	}
	return event.Restore
}

// Outcome is what came of a swap.
type Outcome struct {
	At time.Time
	// Failure is empty for success, else a stable word for what went wrong.
	Failure string
	// Changed: this swap changed the order, rather than finding it as wanted.
	Changed bool
	// Unsure: it may have gone through although it failed.
	Unsure bool
	// Quiet: it was broken off for a reason that the next round, maybe that of
	// another process, sees and tells by itself.
	Quiet bool
}

// Finish takes over what came of the swap that the state's Intent describes.
func Finish(before State, out Outcome) (State, []Notice) {
	s := before.clone()
	s.at(out.At)
	if s.Intent == nil {
		return s, nil
	}
	i := *s.Intent
	if out.Failure == "" {
		s.Intent, s.Known = nil, true
		if !out.Changed && !i.Again {
			return found(s, i, out.At)
		}
		return finish(s, i, out.At, true)
	}
	if out.Unsure {
		s.Intent.Again = true // the next round that reads the order settles it
	} else {
		s.Intent = i.Former
	}
	if i.By == event.ActorRehearsal || i.By == event.ActorAuto && out.Quiet {
		return s, nil
	}
	var notices []Notice
	about := Notice{Before: s.Order, After: s.Order, Actor: i.By, Person: i.Person}
	if s.Episode != nil {
		about.ReplyTo, about.DegradedSince = s.Episode.ID, s.Episode.Since
	}
	if i.By != event.ActorAuto || s.Told.fails(i.To, out.Failure) {
		n := about
		n.ID, n.Kind, n.Want = i.ID+"-failed-"+strings.ReplaceAll(out.Failure, "_", "-"), event.SwapFailed, i.To
		notices = append(notices, n)
	}
	if i.By == event.ActorAuto && s.due(out.At) {
		n := about
		n.ID, n.Kind = i.ID+"-reminder", event.Reminder
		notices = append(notices, n)
	}
	return s, notices
}

// finish records a swap that went through.
func finish(s State, i Intent, at time.Time, changed bool) (State, []Notice) {
	was := s.Order
	if was == i.To || !s.Known {
		was = other(i.To)
	}
	s.Order = i.To
	s.Told.Failures = nil
	if changed {
		s.Swaps = append(s.Swaps, Swap{At: at, To: i.To, By: i.By})
	}
	if i.By == event.ActorPerson {
		s.Held = true
	}
	n := Notice{ID: i.ID, Kind: kindOf(i.To), Before: was, After: i.To, Actor: i.By, Person: i.Person}
	if i.To == event.OrderProxy {
		if s.Episode != nil {
			n.ReplyTo, n.DegradedSince = s.Episode.ID, s.Episode.Since
		}
		s.Episode = nil
		return s, []Notice{n}
	}
	s.Episode = &Episode{Since: at, ID: i.ID, Reminded: at}
	n.DegradedSince = at
	notices := []Notice{n}
	if s.Degrades() >= flapping && i.By == event.ActorAuto && (s.Told.Flapping.IsZero() || at.Sub(s.Told.Flapping) >= day) {
		s.Told.Flapping = at
		notices = append(notices, Notice{
			ID: i.ID + "-flapping", Kind: event.Flapping, Before: i.To, After: i.To, Actor: event.ActorAuto, ReplyTo: i.ID, DegradedSince: at,
		})
	}
	return s, notices
}

// flapping is the number of degrades in 24 hours that is told of.
const flapping = 3

// found takes over that the order was as wanted before anything was written.
func found(s State, i Intent, at time.Time) (State, []Notice) {
	was := s.Order
	s.Order = i.To
	if i.By == event.ActorPerson {
		s.Held = true
	}
	switch {
	case i.To == event.OrderProxy:
		episode := s.Episode
		s.Episode = nil
		if episode == nil || i.By == event.ActorRehearsal {
			return s, nil
		}
		return s, []Notice{{
			ID: i.ID + "-drift", Kind: event.Drift, Before: was, After: i.To, Actor: event.ActorAuto, ReplyTo: episode.ID, DegradedSince: episode.Since,
		}}
	case s.Episode == nil:
		id := i.ID + "-drift"
		s.Episode = &Episode{Since: at, ID: id, Reminded: at}
		return s, []Notice{{ID: id, Kind: event.Drift, Before: was, After: i.To, Actor: event.ActorAuto, DegradedSince: at}}
	}
	return s, nil
}

func other(o event.Order) event.Order {
	if o == event.OrderProxy {
		return event.OrderDirect
	}
	return event.OrderProxy
}
