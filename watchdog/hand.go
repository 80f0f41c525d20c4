package watchdog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"karui/watchdog/distribution"
	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/store"
)

const (
	// commandWait is how long a command waits for another process that acts.
	commandWait = 30 * time.Second

	// flushTimeout bounds sending mail at a command's end; what is not sent stays
	// in the outbox.
	flushTimeout = 30 * time.Second
)

// Preview is what a person should know before a swap by hand.
type Preview struct {
	Site   string       `json:"site"`
	Want   event.Order  `json:"want"`
	Order  event.Order  `json:"order"`
	ETag   string       `json:"etag"`
	Ping   event.Probe  `json:"ping"`
	Origin *event.Probe `json:"origin,omitempty"` // looked at for a degrade
	// Findings speak against it; those with Refusal forbid it.
	Findings []distribution.Finding `json:"findings,omitempty"`
}

// Preview looks at a site before a swap by hand. Nothing is changed.
func (w *Watchdog) Preview(ctx context.Context, id string, want event.Order) (Preview, error) {
	s, err := w.site(id)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Site: id, Want: want}
	snapshot, err := s.read(ctx)
	if err != nil {
		return p, err
	}
	purpose := distribution.ForDegrade
	if want == event.OrderProxy {
		purpose = distribution.ForRestore
	}
	client, err := s.aws(ctx)
	if err != nil {
		return p, err
	}
	p.Order, p.ETag = event.Order(snapshot.Order), snapshot.ETag
	p.Findings = distribution.Check(snapshot.Raw, snapshot.Document, client.Target(), purpose)
	p.Ping = w.prober.Ping(ctx, s.config.PingURL, s.headers(), s.ping.Timeout)
	if want == event.OrderDirect {
		origin := s.alive(ctx, s.common.Interval)
		p.Origin = &origin
	}
	return p, ctx.Err()
}

// SilentOriginError refuses a degrade by hand.
type SilentOriginError struct{ Probe event.Probe }

func (e *SilentOriginError) Error() string {
	return fmt.Sprintf("refused: the true origin does not answer either (%s: %s), and images are better off with the proxy, which may still have them",
		e.Probe.URL, e.Probe.Text)
}

// Moved is what came of a swap by hand.
type Moved struct {
	Site    string              `json:"site"`
	Order   event.Order         `json:"order"`
	Changed bool                `json:"changed"` // false: it was in that order already
	Result  distribution.Result `json:"result"`
	Event   string              `json:"event,omitempty"` // ID of the mail; empty if there is none to send
	// Unwritten is why neither the state nor the audit log tell of it; nil if they do.
	Unwritten error `json:"-"`
}

// Move puts the wanted origin first, as a person's decision: the watchdog leaves
// it so until the proxy's health changes. It returns as soon as CloudFront has
// taken the change; Arrived waits for the edge.
func (w *Watchdog) Move(ctx context.Context, id string, want event.Order, person string) (Moved, error) {
	s, err := w.site(id)
	if err != nil {
		return Moved{}, err
	}
	moved := Moved{Site: id, Order: want}
	l := look{began: now()}
	l.id = event.NewID(l.began)
	l.probes = []event.Probe{w.prober.Ping(ctx, s.config.PingURL, s.headers(), s.ping.Timeout)}
	if want == event.OrderDirect {
		origin := s.alive(ctx, s.common.Interval)
		if l.origin = &origin; !origin.OK && ctx.Err() == nil {
			return moved, &SilentOriginError{origin}
		}
	}
	if ctx.Err() != nil {
		return moved, ctx.Err()
	}
	lock, err := s.hold(ctx, s.store.Lock, commandWait)
	if err != nil {
		return moved, err
	}
	defer lock.Unlock()
	// A degrade has to go through also without memory, as in a round.
	rec, err := s.load()
	if err != nil && want != event.OrderDirect {
		return moved, err
	}
	if rec.State.Intent != nil {
		// What an earlier process began is told before it is forgotten.
		snapshot, err := s.read(ctx)
		if err != nil {
			return moved, err
		}
		var notices []machine.Notice
		rec.State, notices = machine.Settle(rec.State, event.Order(snapshot.Order), now())
		for _, n := range notices {
			rec.Pending = append(rec.Pending, s.event(n, facts{snapshot: snapshot, state: rec.State}))
		}
	}
	rec.State.Intent = &machine.Intent{ID: l.id + "-" + string(verb(want)), To: want, At: now(), By: event.ActorPerson, Person: person}
	if err := s.save(rec); err != nil && want != event.OrderDirect {
		return moved, s.noRestore(err)
	}
	f := facts{look: l, state: rec.State, health: healthOf(l.probes[0])}
	moved.Result, err = s.swapped(ctx, &rec, f, "by command")
	moved.Changed = moved.Result.Changed
	if n := len(rec.Pending); n > 0 {
		moved.Event = rec.Pending[n-1].ID
	}
	s.hand(context.WithoutCancel(ctx), &rec)
	if unwritten := s.unwritten(); unwritten != nil {
		moved.Unwritten = fmt.Errorf("%w (%s)", unwritten, hintDisk(s.common.StateDir))
	}
	return moved, err
}

func healthOf(p event.Probe) machine.Health {
	if p.OK {
		return machine.Up
	}
	return machine.Down
}

// Arrived waits until the site's last change has reached the whole edge (for
// deploy_timeout at most), and invalidates what is to be invalidated then.
func (w *Watchdog) Arrived(ctx context.Context, id string) error {
	s, err := w.site(id)
	if err != nil {
		return err
	}
	err = s.deployed(ctx, s.common.DeployTimeout)
	var busy *store.BusyError
	if errors.As(err, &busy) {
		return fmt.Errorf("not seen at the whole edge within %s: %w", s.common.DeployTimeout, err)
	}
	return err
}

// Flush sends what lies in the outbox, within a limited time.
func (w *Watchdog) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	return w.outbox.Flush(ctx)
}
