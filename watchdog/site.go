package watchdog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"karui/watchdog/distribution"
	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/settings"
	"karui/watchdog/store"
)

// site is one site under watch.
type site struct {
	w      *Watchdog
	config settings.Site
	ping   settings.Ping
	common settings.Config // what else of the configuration concerns it
	store  *store.Site
	log    *slog.Logger

	mu     sync.Mutex
	client *distribution.Client
	// unsaved is the record that could not be written down; it is truer than the
	// file while it is there.
	unsaved *store.Record
	why     error // of unsaved
	// unkept is the history that could not be written down.
	unkept *store.History

	// For Run: cancel ends the site's loop, running waits for it.
	cancel  context.CancelFunc
	running sync.WaitGroup
	// waiting tells that a goroutine waits for a deployment.
	waiting atomic.Bool
	// next is when the next round begins, in nanoseconds of Unix time; 0 where no loop runs.
	next atomic.Int64
}

func (w *Watchdog) newSite(c settings.Config, s settings.Site) *site {
	return &site{w: w, config: s, ping: c.Ping, common: c, store: w.store.Site(s.ID), log: w.log.With("site", s.ID)}
}

// sameSite tells whether nothing that concerns a site differs.
func sameSite(before, after settings.Config, s settings.Site) bool {
	old, found := before.Site(s.ID)
	before.Sites, after.Sites = nil, nil
	return found && reflect.DeepEqual(old, s) && reflect.DeepEqual(before, after)
}

func (s *site) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}

// target is what the site's state is about.
func (s *site) target() string {
	c := s.config
	return fmt.Sprintf("%s/%s: %s, %s", c.DistributionID, c.OriginGroupID, c.ProxyOriginID, c.DirectOriginID)
}

// aws is the site's client, made on first use.
func (s *site) aws(ctx context.Context) (*distribution.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	base, err := s.w.aws(ctx)
	if err != nil {
		return nil, err
	}
	client, err := distribution.New(base, distribution.Target{
		DistributionID: s.config.DistributionID, GroupID: s.config.OriginGroupID,
		ProxyOrigin: s.config.ProxyOriginID, DirectOrigin: s.config.DirectOriginID,
		RoleARN: s.config.RoleARN, ExternalID: s.config.ExternalID,
	}, distribution.Options{DeployTimeout: s.common.DeployTimeout})
	if err != nil {
		return nil, err
	}
	s.client = client
	return client, nil
}

func (s *site) rules() machine.Rules {
	return machine.Rules{
		AutoDegrade: s.config.Degrade == settings.Auto, AutoRestore: s.config.Restore == settings.Auto,
		RestoreAfter: s.config.RestoreAfter, MaxSwapsPerDay: s.config.MaxSwapsPerDay,
	}
}

func (s *site) controlURLs() []string {
	if len(s.common.ControlURLs) > 0 {
		return s.common.ControlURLs
	}
	return s.w.defaults
}

// load reads the site's record, under its lock.
func (s *site) load() (store.Record, error) {
	s.mu.Lock()
	unsaved := s.unsaved
	s.mu.Unlock()
	if unsaved != nil && unsaved.Target == s.target() {
		return *unsaved, nil
	}
	rec, note, err := s.store.Load(s.target())
	if note != "" {
		s.log.Warn("state begins anew", "why", note)
	}
	return rec, err
}

// save writes the record down. When that fails, the record is kept in memory and
// used instead of the file until a later save works.
func (s *site) save(rec store.Record) error {
	err := s.store.Save(rec)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved, s.why = nil, err
	if err != nil {
		s.unsaved = &rec
		s.w.metrics.stateErrors.Inc()
	}
	return err
}

// unwritten is why the record could not be written down; nil if it was.
func (s *site) unwritten() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// hold takes one of the site's locks. Where there is none to be had, as the disk does not
// take one, it goes on without: to act twice at once is sorted out by CloudFront's
// versions, and not to act leaves viewers alone.
func (s *site) hold(ctx context.Context, take func(context.Context, string, time.Duration) (*store.Lock, error), wait time.Duration) (*store.Lock, error) {
	lock, err := take(ctx, s.w.what, wait)
	if err == nil || errors.As(err, new(*store.BusyError)) || ctx.Err() != nil {
		return lock, err
	}
	s.log.Error("a lock of the site cannot be had, going on without", "error", err, "hint", hintDisk(s.common.StateDir))
	return new(store.Lock), nil
}

// hintDisk is what to do about a state directory that takes nothing.
func hintDisk(dir string) string {
	return "see that " + dir + " belongs to the watchdog's user, is not mounted read-only, and has room"
}

// straightTimeout bounds a mail that goes past the outbox.
const straightTimeout = 30 * time.Second

// straight sends at once what the outbox cannot take, when the record cannot be
// written down either. Only a process that remembers what it sent may tell
// everything so; of the others, what they did.
func (s *site) straight(ctx context.Context, e event.Event) bool {
	did := e.Kind == event.Degrade || e.Kind == event.Restore
	if s.unwritten() == nil || !did && !s.w.lasting.Load() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, straightTimeout)
	defer cancel()
	if err := s.w.outbox.Try(ctx, e); err != nil {
		s.log.Error("mail could not be sent past the outbox either", "event", e.ID, "error", err)
		return false
	}
	return true
}

// hand gives the pending events to the outbox; what it does not take stays.
func (s *site) hand(ctx context.Context, rec *store.Record) {
	var stay []event.Event
	for _, e := range rec.Pending {
		if err := s.w.outbox.Enqueue(ctx, e); err != nil && !s.straight(ctx, e) {
			s.log.Error("mail could not be put into the outbox; it is tried again in the next round", "event", e.ID, "kind", e.Kind, "error", err)
			stay = append(stay, e)
			continue
		}
		s.w.metrics.events.WithLabelValues(s.config.ID, string(e.Kind)).Inc()
		s.log.Info("told", "event", e.ID, "kind", e.Kind, "want", e.Want, "before", e.Before, "after", e.After)
		s.remember(func(h *store.History) { h.Tell(told(e)) })
	}
	if len(stay) == len(rec.Pending) {
		return
	}
	rec.Pending = stay
	if err := s.save(*rec); err != nil {
		s.log.Error("state could not be written down", "error", err)
	}
}

// outlive is a context for what should not be broken off at once when ctx ends:
// it has until then, and grace afterwards.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel() }
}
