package watchdog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"karui/watchdog/distribution"
	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/probe"
	"karui/watchdog/store"
)

// look is what a round saw before it decides.
type look struct {
	id       string
	began    time.Time
	probes   []event.Probe
	origin   *event.Probe
	controls []event.Probe
	verdict  machine.Verdict
}

// now is the wall time, as state files hold it.
func now() time.Time { return time.Now().UTC().Round(0) }

// look asks the proxy and, if it is down, the origin and the controls. A normal
// round costs one request. The error is only ever that ctx ended.
func (s *site) look(ctx context.Context) (look, error) {
	l := look{began: now()}
	l.id = event.NewID(l.began)
	var err error
	l.probes, err = s.w.prober.Round(ctx, s.config.PingURL, s.headers(), s.ping.Count, s.ping.Spacing, s.ping.Timeout)
	if err != nil {
		return l, err
	}
	for _, p := range l.probes {
		s.w.metrics.probe(p)
	}
	if n := len(l.probes); n > 0 && l.probes[n-1].OK {
		l.verdict = machine.VerdictUp
		return l, nil
	}
	l.verdict = machine.VerdictDown
	if err := s.surroundings(ctx, &l); err != nil {
		return l, err
	}
	if probe.AllSilent(l.controls) {
		l.verdict = machine.Inconclusive
	}
	return l, nil
}

func (s *site) headers() []probe.Header {
	out := make([]probe.Header, 0, len(s.config.PingHeaders))
	for _, h := range s.config.PingHeaders {
		out = append(out, probe.Header{Name: h.Name, Value: h.Value})
	}
	return out
}

const (
	// originTries and originPause are how stubbornly the true origin is asked: a
	// request that was lost must not cost viewers their images for an interval.
	originTries = 3
	originPause = time.Second
)

// alive asks the true origin, for no longer than this if it does not answer at
// once.
func (s *site) alive(ctx context.Context, within time.Duration) event.Probe {
	return s.w.prober.Alive(ctx, s.config.OriginURL, probe.Patience{
		Tries: originTries, Pause: min(originPause, s.ping.Spacing), Timeout: s.ping.Timeout, Within: within,
	})
}

// surroundings asks the origin and the controls, at the same time. The controls
// are asked once: the first of several that answers is enough, and a network that
// comes back in the middle of a round must not make an outage of its own absence.
func (s *site) surroundings(ctx context.Context, l *look) error {
	var wait sync.WaitGroup
	var controls []event.Probe
	var err error
	wait.Go(func() { controls, err = s.w.controls.Ask(ctx, s.controlURLs(), s.ping.Timeout) })
	origin := s.alive(ctx, s.common.Interval-now().Sub(l.began))
	wait.Wait()
	l.origin, l.controls = &origin, controls
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Result is what a round came to.
type Result struct {
	Site  string      `json:"site"`
	Round store.Round `json:"round"`
	// Health and Order are as known after the round.
	Health machine.Health `json:"health"`
	Since  time.Time      `json:"since,omitzero"`
	Order  event.Order    `json:"order"`
	Held   bool           `json:"held,omitempty"`
	// Did is what was done: "degrade", "restore" or empty; Error why it failed.
	Did   string `json:"did,omitempty"`
	Error string `json:"error,omitempty"`
	// Told are the kinds of the events of the round.
	Told []event.Kind `json:"told,omitempty"`
}

// round is one whole round of the site.
func (s *site) round(ctx context.Context) (Result, error) {
	start := time.Now()
	l, err := s.look(ctx)
	if err != nil {
		return Result{Site: s.config.ID}, err
	}
	r, err := s.act(ctx, l)
	s.w.metrics.round(s.config.ID, r, time.Since(start))
	return r, err
}

// act decides and carries out, under the site's lock.
func (s *site) act(ctx context.Context, l look) (Result, error) {
	lock, err := s.hold(ctx, s.store.Lock, lockWait)
	if err != nil {
		return Result{Site: s.config.ID}, err
	}
	defer lock.Unlock()
	rec, err := s.load()
	if err != nil {
		// Without memory, the distribution is the truth. The next save replaces or
		// shadows what cannot be read.
		s.log.Error("state could not be read, the round goes on without", "error", err)
	}
	o := machine.Observation{
		ID: l.id, At: now(), Began: l.began, Verdict: l.verdict, OriginLives: l.origin != nil && l.origin.OK,
	}
	rec.Last = &store.Round{At: o.At, Took: o.At.Sub(l.began), Verdict: l.verdict, Probes: l.probes, Origin: l.origin, Controls: l.controls}
	var (
		snapshot distribution.Snapshot
		unread   error
	)
	if l.verdict != machine.Inconclusive {
		snapshot, err = s.read(ctx)
		if ctx.Err() != nil {
			return Result{Site: s.config.ID}, ctx.Err()
		}
		if err != nil {
			rec.Last.OrderError, rec.Last.OrderHint = err.Error(), distribution.HintOf(err)
			o.Unread, unread = failureKind(err), err
			s.log.Warn("the order could not be read", "error", err, "hint", distribution.HintOf(err))
		} else {
			o.Read, o.Order, rec.Last.ETag = true, event.Order(snapshot.Order), snapshot.ETag
		}
	}
	state, plan := machine.Decide(rec.State, o, s.rules())
	s.changed(rec.State, state, l)
	rec.State = state
	facts := facts{look: l, snapshot: snapshot, state: state, health: state.Health, err: unread}
	result := Result{Site: s.config.ID}
	for _, n := range plan.Tell {
		rec.Pending = append(rec.Pending, s.event(n, facts))
		result.Told = append(result.Told, n.Kind)
	}
	saved := s.save(rec)
	if saved != nil {
		s.log.Error("state could not be written down", "error", saved)
	}
	if plan.Swap == event.OrderDirect || plan.Swap == event.OrderProxy && saved == nil {
		why := fmt.Sprintf("%d of %d pings failed", len(l.probes), s.ping.Count)
		if plan.Swap == event.OrderProxy {
			why = fmt.Sprintf("%d good rounds in a row, %d needed", state.Good, state.Need(s.rules()))
		}
		before := len(rec.Pending)
		_, err := s.swapped(ctx, &rec, facts, why)
		result.Did = string(verb(plan.Swap))
		for _, e := range rec.Pending[before:] {
			result.Told = append(result.Told, e.Kind)
		}
		if err != nil {
			result.Error = err.Error()
			s.log.Error("swap failed", "want", plan.Swap, "error", err, "kind", failureKind(err), "hint", distribution.HintOf(err))
		}
	} else if plan.Swap == event.OrderProxy {
		err := s.noRestore(saved)
		result.Did, result.Error = string(event.Restore), err.Error()
		result.Told = append(result.Told, s.unable(&rec, facts, err)...)
	}
	s.hand(ctx, &rec)
	result.Round, result.Health, result.Since = *rec.Last, rec.State.Health, rec.State.Since
	result.Order, result.Held = rec.State.Order, rec.State.Held
	s.remember(func(h *store.History) { h.Mark(mark(result)) })
	return result, nil
}

// unable takes over that a swap was not even tried.
func (s *site) unable(rec *store.Record, f facts, err error) (told []event.Kind) {
	var notices []machine.Notice
	rec.State, notices = machine.Finish(rec.State, machine.Outcome{At: now(), Failure: failureState})
	f.state, f.err = rec.State, err
	for _, n := range notices {
		rec.Pending = append(rec.Pending, s.event(n, f))
		told = append(told, n.Kind)
	}
	if saving := s.save(*rec); saving != nil {
		s.log.Error("state could not be written down", "error", saving)
	}
	return told
}

func verb(to event.Order) event.Kind {
	if to == event.OrderDirect {
		return event.Degrade
	}
	return event.Restore
}

// changed logs a change of health.
func (s *site) changed(before, after machine.State, l look) {
	if before.Health == after.Health && l.verdict != machine.Inconclusive {
		return
	}
	text := ""
	if n := len(l.probes); n > 0 {
		text = l.probes[n-1].Text
	}
	switch l.verdict {
	case machine.Inconclusive:
		s.log.Warn("round is inconclusive: neither the proxy nor any control address answers, so that the watchdog's own network may be gone; nothing is done", "last", text)
	case machine.VerdictDown:
		s.log.Error("proxy is down", "last", text, "kind", l.probes[len(l.probes)-1].Kind, "origin_lives", l.origin != nil && l.origin.OK)
	case machine.VerdictUp:
		s.log.Info("proxy is up", "last", text)
	}
}

// read gets the order, within the time that a round can spare.
func (s *site) read(ctx context.Context) (distribution.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	client, err := s.aws(ctx)
	if err != nil {
		return distribution.Snapshot{}, err
	}
	return client.Read(ctx)
}

// swapped carries out the record's intent, and writes down and makes events of what
// came of it. Events stay pending in the record.
func (s *site) swapped(ctx context.Context, rec *store.Record, f facts, why string) (distribution.Result, error) {
	intent := *rec.State.Intent
	want := distribution.Order(intent.To)
	purpose := distribution.ForDegrade
	if intent.To == event.OrderProxy {
		purpose = distribution.ForRestore
	}
	// A swap that was begun is better finished than broken off.
	acting, cancel := outlive(ctx)
	defer cancel()
	var res distribution.Result
	client, err := s.aws(acting)
	if err == nil {
		res, err = client.Swap(acting, want, purpose, s.stillAlive(want)...)
	}
	f.result, f.err = &res, err
	f.documents = s.keep(intent.ID, res)
	out := machine.Outcome{At: now(), Changed: res.Changed, Unsure: res.Unsure}
	if err != nil {
		out.Failure = failureKind(err)
		// Written, but not seen as written: the next round looks again.
		out.Unsure = out.Unsure || distribution.KindOf(err) == distribution.KindReadBack
		ended := ctx.Err() != nil && distribution.KindOf(err) == distribution.KindCanceled
		out.Quiet = ended || out.Failure == failureSilent
	}
	var notices []machine.Notice
	rec.State, notices = machine.Finish(rec.State, out)
	f.state = rec.State
	if err == nil && res.Changed {
		rec.Deploying = &store.Deploying{
			Order: intent.To, ETag: res.ETag, Since: out.At, By: string(intent.By),
			Invalidate: intent.To == event.OrderProxy && s.config.AfterRestore == "invalidate",
		}
	}
	if err == nil && intent.To == event.OrderProxy {
		f.linger = s.linger(acting, client, res)
	}
	for _, n := range notices {
		rec.Pending = append(rec.Pending, s.event(n, f))
	}
	if saving := s.save(*rec); saving != nil {
		s.log.Error("state could not be written down", "error", saving)
	}
	s.audit(intent, f, why)
	s.w.metrics.swap(s.config.ID, intent.To, err)
	if err != nil {
		return res, err // the caller's to tell
	}
	s.log.Info("swapped", "to", intent.To, "by", intent.By, "changed", res.Changed, "etag_before", res.ETagWas, "etag", res.ETag)
	return res, nil
}

// stillAlive looks at the true origin again when a swap to it took long, since AWS
// asks to slow down, say: it lived when the round began, and that may be minutes
// ago.
func (s *site) stillAlive(want distribution.Order) []func(context.Context) error {
	if want != distribution.OrderDirect {
		return nil
	}
	looked := time.Now()
	return []func(context.Context) error{func(ctx context.Context) error {
		if time.Since(looked) < originGoodFor {
			return nil
		}
		if origin := s.alive(ctx, s.common.Interval); !origin.OK && ctx.Err() == nil {
			return &SilentOriginError{origin}
		}
		looked = time.Now()
		return nil
	}}
}

const (
	// originGoodFor is how long a look at the true origin holds.
	originGoodFor = 2 * time.Second

	// failureSilent is the failureKind of a swap that came to find the true origin
	// silent.
	failureSilent = "origin_silent"

	// failureState is the kind of a swap that was not tried since it could not be
	// written down.
	failureState = "state"
)

var errState = errors.New("a restore is not made while it cannot be written down")

// noRestore says why a restore was not tried.
func (s *site) noRestore(saving error) error {
	return fmt.Errorf("%w (%s): %w", errState, hintDisk(s.common.StateDir), saving)
}

// failureKind is a stable word for an error.
func failureKind(err error) string {
	var silent *SilentOriginError
	if errors.As(err, &silent) {
		return failureSilent
	}
	if errors.Is(err, errState) {
		return failureState
	}
	if kind := distribution.KindOf(err); kind != "" {
		return string(kind)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return string(distribution.KindTimeout)
	}
	return "other"
}

func (s *site) keep(id string, res distribution.Result) []string {
	if res.Before == nil {
		return nil
	}
	names, err := s.store.KeepDocuments(id, res.Before, res.After)
	if err != nil {
		s.log.Error("documents could not be kept", "error", err)
	}
	return names
}

func (s *site) audit(i machine.Intent, f facts, why string) {
	e := store.Entry{
		Time: now(), Action: string(verb(i.To)), By: i.By, Person: i.Person, Why: why, Event: i.ID, Want: i.To,
		Documents: f.documents, Outcome: "ok",
	}
	if r := f.result; r != nil {
		e.Was, e.Changed, e.ETagBefore, e.ETagAfter, e.As = event.Order(r.Was), r.Changed, r.ETagWas, r.ETag, r.As
		e.Calls, e.Difference = calls(r.Steps), r.Difference
	}
	if f.err != nil {
		e.Outcome = f.err.Error()
	}
	if err := s.store.Audit(e); err != nil {
		s.log.Error("audit log could not be written", "error", err)
	}
}
