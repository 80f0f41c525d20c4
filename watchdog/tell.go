package watchdog

import (
	"context"
	"time"

	"karui/watchdog/distribution"
	"karui/watchdog/event"
	"karui/watchdog/machine"
)

// facts are what an event is made of, besides the notice.
type facts struct {
	look      look
	snapshot  distribution.Snapshot
	state     machine.State
	health    machine.Health       // as the probes found it
	result    *distribution.Result // of the swap; nil if there was none
	err       error
	linger    *event.Linger
	documents []string
}

// event makes of a notice what a mail needs to know.
func (s *site) event(n machine.Notice, f facts) event.Event {
	c := s.config
	e := event.Event{
		ID: n.ID, Kind: n.Kind, Site: c.ID, At: now(), Since: f.state.Since, ReplyTo: n.ReplyTo,
		Actor: n.Actor, Person: n.Person,
		Up: f.health == machine.Up, Probes: f.look.probes, Origin: f.look.origin, Controls: f.look.controls,
		Want: n.Want, Before: n.Before, After: n.After, FirstSight: n.FirstSight,
		ETagAfter:     f.snapshot.ETag,
		Distribution:  event.Distribution{ID: c.DistributionID, Group: c.OriginGroupID, Proxy: c.ProxyOriginID, Direct: c.DirectOriginID},
		DegradedSince: n.DegradedSince, RestoreMode: c.Restore,
		GoodRounds: f.state.Need(s.rules()), Interval: s.common.Interval,
		Degrades: f.state.Degrades(), SwapsToday: f.state.Own(), MaxSwapsPerDay: c.MaxSwapsPerDay,
		AfterRestore: c.AfterRestore, InvalidatePaths: c.InvalidatePaths,
		Commands: s.commands(n, len(f.look.probes) > 0 && f.health != machine.Up),
	}
	if f.snapshot.RequestID != "" {
		e.Calls = []event.Call{{At: e.At, Action: "cloudfront:GetDistributionConfig", RequestID: f.snapshot.RequestID, Outcome: "ok"}}
	}
	if r := f.result; r != nil {
		e.ETagBefore, e.ETagAfter, e.Calls = r.ETagWas, r.ETag, calls(r.Steps)
		for _, finding := range r.Warning {
			if !finding.Refusal {
				e.Warnings = append(e.Warnings, event.Advice{Text: finding.Message, Hint: finding.Hint})
			}
		}
		if r.Difference != "" {
			e.Warnings = append(e.Warnings, event.Advice{
				Text: "what CloudFront holds differs from what was sent, at " + r.Difference,
				Hint: "compare the documents before and after in the state directory",
			})
		}
	}
	if f.err != nil {
		e.Failure = &event.Failure{Kind: failureKind(f.err), Text: f.err.Error(), Hint: distribution.HintOf(f.err)}
	}
	if n.Kind == event.Restore {
		e.Linger = f.linger
	}
	return e
}

// commands are what an operator may want to run, most likely first. down tells
// that the proxy was found down.
func (s *site) commands(n machine.Notice, down bool) []event.Command {
	command := func(what string) event.Command {
		return event.Command{For: what, Line: s.w.command(what, s.config.ID)}
	}
	status := command(event.ForStatus)
	switch n.Kind {
	case event.ManualAwaited:
		if n.Want == event.OrderDirect {
			return []event.Command{command(event.ForDegrade), status}
		}
		return []event.Command{command(event.ForRestore), status}
	case event.SwapFailed:
		again := command(event.ForDegrade)
		if n.Want == event.OrderProxy {
			again = command(event.ForRestore)
		}
		return []event.Command{command(event.ForRehearse), again, status}
	case event.Drift:
		switch n.After {
		case event.OrderDirect:
			return []event.Command{command(event.ForRestore), status}
		case event.OrderUnknown:
			return []event.Command{command(event.ForRehearse), status}
		}
		if down {
			return []event.Command{command(event.ForDegrade), status}
		}
	case event.Capped:
		if n.Want == event.OrderDirect {
			return []event.Command{command(event.ForDegrade), status}
		}
		return []event.Command{command(event.ForRestore), status}
	case event.Degrade, event.Reminder, event.Flapping:
		return []event.Command{status, command(event.ForRestore)}
	case event.Restore:
		return []event.Command{status, command(event.ForDegrade)}
	}
	return []event.Command{status}
}

// calls are the steps of a write, in an event's form.
func calls(steps []distribution.Step) []event.Call {
	out := make([]event.Call, 0, len(steps))
	for _, s := range steps {
		out = append(out, event.Call{At: s.Time, Action: s.Action, RequestID: s.RequestID, Outcome: s.Outcome})
	}
	return out
}

// lingerTimeout bounds finding out what is only nice to know in a mail.
const lingerTimeout = 20 * time.Second

// linger finds out how long the edge may keep what it took from the true origin:
// the longest lifetimes among the behaviours that use the group. nil if that
// cannot be found out, for want of the right to read a cache policy, say.
func (s *site) linger(ctx context.Context, client *distribution.Client, res distribution.Result) *event.Linger {
	ctx, cancel := context.WithTimeout(ctx, lingerTimeout)
	defer cancel()
	doc, err := distribution.Inspect(res.After)
	if err != nil {
		return nil
	}
	var out *event.Linger
	for _, b := range doc.BehaviorsOf(s.config.OriginGroupID) {
		caching, err := client.CachingOf(ctx, b)
		if err != nil {
			s.log.Info("how long originals linger could not be found out", "error", err)
			return nil
		}
		if out == nil {
			out = &event.Linger{}
		}
		out.DefaultTTL, out.MaxTTL = max(out.DefaultTTL, caching.DefaultTTL), max(out.MaxTTL, caching.MaxTTL)
	}
	return out
}
