package purging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"karui/internal/invalidation"
)

// CloudFront takes about one such request in two seconds from an account (seen, not
// documented). The first few go at once, so that a small purge does not wait.
const (
	callsPerSecond = 0.5
	callsAtOnce    = 4
)

// Distribution is the edge of a site, asked through a role.
// *invalidation.Client is one.
type Distribution interface {
	Create(ctx context.Context, reference string, paths []string) (invalidation.Invalidation, error)
	Get(ctx context.Context, id string) (invalidation.Invalidation, error)
	Close()
}

// start gives a record to its distribution's lane. Callers hold mu.
func (s *Service) start(r *record) {
	l := s.lanes[r.Edge.Distribution]
	if l == nil {
		l = &lane{distribution: r.Edge.Distribution, wake: make(chan struct{}, 1)}
		s.lanes[r.Edge.Distribution] = l
		s.running.Go(func() { s.run(l) })
	}
	l.records = append(l.records, r)
	l.nudge()
}

// run works a lane off, until nothing is left or the service is closed.
func (s *Service) run(l *lane) {
	for s.life.Err() == nil {
		s.mu.Lock()
		l.drop(s.count)
		if len(l.records) == 0 {
			delete(s.lanes, l.distribution)
			s.mu.Unlock()
			return
		}
		now := s.now()
		next := l.next(now)
		s.mu.Unlock()
		if next.record != nil {
			s.act(l, next)
			continue
		}
		timer := time.NewTimer(next.until.Sub(now))
		if next.until.IsZero() {
			timer.Reset(maxPause) // there is nothing in progress, and yet no room
		}
		select {
		case <-timer.C:
		case <-l.wake:
		case <-s.life.Done():
		}
		timer.Stop()
	}
}

// act makes one call and notes what came of it.
func (s *Service) act(l *lane, next step) {
	r, p := next.record, next.part
	v, err := s.call(r, p, next.make)
	if s.life.Err() != nil {
		return // it is taken up again after the restart
	}
	s.mu.Lock()
	now := s.now()
	changed := next.make
	switch {
	case err != nil:
		changed = s.failed(l, next, err, now)
	case next.make:
		l.through(true)
		r.took(p, v, now)
	default:
		l.through(false)
		r.saw(p, v, now)
		s.overdue(r, p, now)
		changed = p.Completed || r.State != Running
	}
	s.mu.Unlock()
	if changed {
		_ = s.save() // it has said so itself, and nothing else can be done
	}
}

func (s *Service) call(r *record, p *part, create bool) (invalidation.Invalidation, error) {
	site, known := s.site(r.Site)
	if !known || site.Target.Distribution != r.Edge.Distribution {
		return invalidation.Invalidation{}, &invalidation.Error{
			Kind: "configuration", Action: "sites[].distribution", On: "site " + r.Site,
			Message: fmt.Sprintf("the site no longer has the distribution %s", r.Edge.Distribution),
			Hint:    "purge again with the configuration as it is now",
		}
	}
	d, limiter, err := s.distribution(site.Target)
	if err != nil {
		return invalidation.Invalidation{}, err
	}
	if err := limiter.Wait(s.life); err != nil {
		return invalidation.Invalidation{}, err
	}
	if create {
		return d.Create(s.life, r.reference(p), p.Paths)
	}
	return d.Get(s.life, p.Invalidation)
}

// failed decides what follows from a failed call, and tells whether there is
// something to be saved. Callers hold mu.
func (s *Service) failed(l *lane, next step, err error, now time.Time) (changed bool) {
	var e *invalidation.Error
	if !errors.As(err, &e) {
		e = &invalidation.Error{Kind: invalidation.KindService, Action: "invalidate", On: l.distribution, Message: err.Error(), Hint: "see karui's log"}
	}
	switch {
	case e.Kind == invalidation.KindQuota:
		since := l.crowded(now)
		if _, used := l.inProgress(); used == (invalidation.Use{}) {
			changed = next.record.split(next.part) // others may always leave some room, but not for all of it
		}
		for _, r := range l.records {
			r.Edge.Waits = "other invalidations of distribution " + l.distribution + " are in progress and leave no room"
		}
		if now.Sub(since) < s.patience {
			return changed
		}
		l.full = time.Time{}
		s.giveUp([]*record{next.record}, e, since, now)
	case e.Passing(), e.Kind == invalidation.KindCanceled:
		since := l.passing(now)
		if e.Action == invalidation.AssumeAction {
			// One site's role is not for the staff of another.
			told := *e
			told.On = "the role of distribution " + l.distribution
			e = &told
		}
		for _, r := range l.records {
			r.Edge.Waits = e.Error()
		}
		if now.Sub(since) < s.patience {
			return false
		}
		l.troubled = time.Time{}
		s.giveUp(l.records, e, since, now)
	default:
		s.end(next.record, &Failure{Kind: string(e.Kind), Message: e.Error(), Remedy: e.Hint}, now)
	}
	return true
}

// giveUp ends records that have waited in vain.
func (s *Service) giveUp(records []*record, e *invalidation.Error, since, now time.Time) {
	why := &Failure{
		Kind: string(e.Kind), Remedy: e.Hint + "; then purge again",
		Message: fmt.Sprintf("given up after %s: %s", now.Sub(since).Round(time.Second), e),
	}
	for _, r := range records {
		s.end(r, why, now)
	}
}

// overdue ends a record whose part takes too long. CloudFront goes on with it.
func (s *Service) overdue(r *record, p *part, now time.Time) {
	if r.State != Running || p.Completed || now.Sub(p.Made) < s.patience {
		return
	}
	s.end(r, &Failure{
		Kind:    "overdue",
		Message: fmt.Sprintf("invalidation %s of distribution %s is still in progress after %s", p.Invalidation, r.Edge.Distribution, now.Sub(p.Made).Round(time.Second)),
		Remedy:  "CloudFront goes on with it by itself: look at it in its console, and at AWS's health dashboard",
	}, now)
}

// end closes a record that failed.
func (s *Service) end(r *record, why *Failure, now time.Time) {
	r.end(Failed, why, now)
	s.log.Error("a purge failed at the edge; the proxy has purged", "purge", r.ID, "site", r.Site, "distribution", r.Edge.Distribution,
		"error", why.Message, "remedy", why.Remedy)
}

// maxDistributions bounds the clients that are kept; there are more only after many
// changes of the configuration.
const maxDistributions = 2000

// distribution gives the client for a target, and the pace of its account.
func (s *Service) distribution(t invalidation.Target) (Distribution, *rate.Limiter, error) {
	s.clients.Lock()
	defer s.clients.Unlock()
	limiter := s.paces[t.Account()]
	if limiter == nil {
		limiter = rate.NewLimiter(callsPerSecond, callsAtOnce)
		s.paces[t.Account()] = limiter
	}
	if d := s.byTarget[t]; d != nil {
		return d, limiter, nil
	}
	d, err := s.connect(s.life, t)
	if err != nil {
		return nil, nil, &invalidation.Error{
			Kind: invalidation.KindCredentials, Action: "find AWS credentials", On: "karui's machine", Message: err.Error(),
			Hint: "check AWS_PROFILE and the shared configuration files of the user that karui runs as",
		}
	}
	if len(s.byTarget) >= maxDistributions {
		s.closeClients() // whoever uses one tries again
	}
	s.byTarget[t] = d
	return d, limiter, nil
}

// closeClients closes the clients. Callers hold clients.
func (s *Service) closeClients() {
	for _, d := range s.byTarget {
		d.Close()
	}
	clear(s.byTarget)
}
