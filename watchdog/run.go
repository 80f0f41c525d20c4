package watchdog

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"karui/watchdog/settings"
	"karui/watchdog/store"
)

const (
	// jitter is the share of an interval by which rounds are spread, so that many
	// sites, and many watchdogs, do not ask in the same moment.
	jitter = 0.1

	// standbyEvery is how often a second daemon says that it waits.
	standbyEvery = time.Minute

	// beatTimeout bounds a request for heartbeat_url.
	beatTimeout = 10 * time.Second
)

// Run watches all sites until ctx ends, and nothing else ends it. reload brings
// new configurations; it may be nil. A second Run on the same state directory
// waits until the first is gone.
func (w *Watchdog) Run(ctx context.Context, reload <-chan settings.Config) {
	lock := w.standby(ctx)
	if lock == nil {
		return
	}
	defer lock.Unlock()
	w.lasting.Store(true)
	var running sync.WaitGroup
	defer running.Wait()
	beat := make(chan struct{}, 1)
	running.Go(func() { w.outbox.Run(ctx) })
	running.Go(func() { w.heart(ctx, beat) })
	running.Go(func() { w.listen(ctx) })
	sites := w.all()
	w.log.Info("watching", "sites", len(sites), "interval", w.Config().Interval)
	for _, s := range sites {
		s.start(ctx, beat)
	}
	defer func() {
		for _, s := range w.all() {
			s.stop()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-reload:
			w.reload(ctx, c, beat)
		}
	}
}

// standby waits for the daemon's lock; nil if ctx ended first.
func (w *Watchdog) standby(ctx context.Context) *store.Lock {
	for first := true; ; first = false {
		wait := standbyEvery
		if first {
			wait = 0
		}
		lock, err := w.store.LockRun(ctx, wait)
		if err == nil {
			return lock
		}
		if ctx.Err() != nil {
			return nil
		}
		var busy *store.BusyError
		if errors.As(err, &busy) {
			w.log.Warn("standing by: another daemon has this state directory, and this one takes over when it ends", "other", busy.Holder.String())
			continue
		}
		// Rather two daemons than none: each site's own lock still keeps them apart.
		w.log.Error("the daemon's lock cannot be had, going on without", "error", err)
		return new(store.Lock)
	}
}

// reload takes over a configuration: sites that are as before go on undisturbed.
func (w *Watchdog) reload(ctx context.Context, c settings.Config, beat chan<- struct{}) {
	old := w.Config()
	for _, key := range settings.NeedsRestart(old, c) {
		w.log.Warn("a changed setting needs a restart", "key", key)
	}
	c.Listen, c.StateDir = old.Listen, old.StateDir
	start, stop := w.use(c)
	for _, s := range stop {
		s.stop()
		s.close()
		if _, err := w.site(s.config.ID); err != nil {
			w.metrics.forget(s.config.ID)
		}
	}
	for _, s := range start {
		s.start(ctx, beat)
	}
	w.metrics.configured(c.Interval)
	w.log.Info("configuration reloaded", "sites", len(c.Sites), "started", len(start), "stopped", len(stop))
}

// ReloadFailed tells that a changed configuration could not be read, so that the
// metrics show it: the old one stays in force.
func (w *Watchdog) ReloadFailed() { w.metrics.configGood.Set(0) }

// start begins the site's loop. Its owner calls stop.
func (s *site) start(ctx context.Context, beat chan<- struct{}) {
	ctx, s.cancel = context.WithCancel(ctx)
	s.running.Go(func() { s.loop(ctx, beat) })
}

// stop ends the loop and waits for it.
func (s *site) stop() {
	if s.cancel != nil {
		s.cancel()
	}
	s.running.Wait()
}

// loop runs rounds, an interval from the start of one to that of the next.
func (s *site) loop(ctx context.Context, beat chan<- struct{}) {
	interval := s.common.Interval
	// What an earlier process left is settled before the first round.
	s.contained(ctx, "resume", func(ctx context.Context) { s.resume(ctx) })
	s.await(ctx)
	first := time.Duration(rand.Float64() * jitter * float64(interval))
	s.due(now().Add(first))
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		s.contained(ctx, "round", func(ctx context.Context) {
			r, err := s.round(ctx)
			var busy *store.BusyError
			switch {
			case ctx.Err() != nil:
				return
			case errors.As(err, &busy): // the watchdog lives, and somebody acts
				s.log.Warn("round is left out", "why", busy.Error())
			case err != nil:
				s.log.Error("round could not be carried out", "error", err)
				return
			default:
				s.log.Debug("round", "verdict", r.Round.Verdict, "order", r.Order, "took", r.Round.Took)
			}
			select {
			case beat <- struct{}{}:
			default: // one is due already
			}
		})
		s.await(ctx)
		spread := 1 + jitter*(rand.Float64()-0.5)
		wait := max(time.Duration(float64(interval)*spread)-time.Since(start), time.Second/10)
		s.due(now().Add(wait))
		timer.Reset(wait)
	}
}

// await waits for a change that is on its way to the edge, beside the rounds.
func (s *site) await(ctx context.Context) {
	if rec, err := s.peek(); err != nil || rec.Deploying == nil || !s.waiting.CompareAndSwap(false, true) {
		return
	}
	s.running.Go(func() {
		defer s.waiting.Store(false)
		s.contained(ctx, "deployment", func(ctx context.Context) {
			err := s.deployed(ctx, 0)
			var busy *store.BusyError
			if err != nil && ctx.Err() == nil && !errors.As(err, &busy) {
				s.log.Error("waiting for the deployment ended; it is taken up again after the next round", "error", err)
			}
		})
	})
}

// resume hands over the events that an earlier process left pending.
func (s *site) resume(ctx context.Context) {
	lock, err := s.store.Lock(ctx, s.w.what, lockWait)
	if err != nil {
		return // whoever acts will do it
	}
	defer lock.Unlock()
	rec, err := s.load()
	if err != nil || len(rec.Pending) == 0 {
		return
	}
	s.hand(ctx, &rec)
}

// contained runs f so that a mistake in the program costs a round, not the watch.
func (s *site) contained(ctx context.Context, what string, f func(context.Context)) {
	defer func() {
		if r := recover(); r != nil {
			s.w.metrics.panics.Inc()
			s.log.Error("a mistake in the program was survived; please report it", "in", what, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	f(ctx)
}

// heart requests heartbeat_url after rounds; rounds that end while a request is
// under way share the next.
func (w *Watchdog) heart(ctx context.Context, beat <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat:
		}
		target := w.Config().HeartbeatURL
		if target == "" {
			continue
		}
		err := w.prober.Beat(ctx, target, beatTimeout)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.metrics.heartbeats.WithLabelValues("failed").Inc()
			w.log.Warn("heartbeat failed", "error", err)
			continue
		}
		w.metrics.heartbeats.WithLabelValues("ok").Inc()
	}
}
