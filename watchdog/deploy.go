package watchdog

import (
	"context"
	"fmt"
	"strings"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/store"
)

// deployed waits until the site's last change has reached the whole edge, and
// then does what was left for that moment. Nothing happens when there is no
// change under way. Of several processes one does it, and the others wait for it,
// at most so long. A process that is killed meanwhile leaves it to the next.
func (s *site) deployed(ctx context.Context, wait time.Duration) error {
	lock, err := s.hold(ctx, s.store.LockEdge, wait)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	rec, err := s.load()
	if err != nil || rec.Deploying == nil {
		return err
	}
	s.w.metrics.deploying.Inc()
	defer s.w.metrics.deploying.Dec()
	change := *rec.Deploying
	client, err := s.aws(ctx)
	if err != nil {
		return err
	}
	seen, err := client.WaitDeployed(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	took := now().Sub(change.Since)
	entry := store.Entry{Time: now(), Action: "deployed", By: event.Actor(change.By), Want: change.Order, ETagAfter: seen.ETag, Outcome: "ok"}
	if err != nil {
		s.log.Error("the change was not seen at the whole edge", "order", change.Order, "etag", change.ETag, "error", err)
		entry.Outcome = err.Error()
	} else {
		s.log.Info("deployed", "order", change.Order, "etag", seen.ETag, "took", took)
		entry.Details = fmt.Sprintf("%s after the swap", took.Round(time.Second))
	}
	s.note(entry)
	// Invalidating before the order has arrived would let originals in again; but
	// to leave them in for good, because AWS was slow, is no better.
	if change.Invalidate {
		s.invalidate(ctx, change)
	}
	return s.arrived(ctx, change)
}

// invalidate removes from the edge what it took from the true origin.
func (s *site) invalidate(ctx context.Context, change store.Deploying) {
	client, err := s.aws(ctx)
	var ids []string
	if err == nil {
		ids, err = client.Invalidate(ctx, s.config.InvalidatePaths)
	}
	entry := store.Entry{
		Time: now(), Action: "invalidate", By: event.Actor(change.By), Outcome: "ok",
		Details: fmt.Sprintf("%s: invalidations %s", strings.Join(s.config.InvalidatePaths, " "), strings.Join(ids, ", ")),
	}
	if err != nil {
		entry.Outcome = err.Error()
		s.log.Error("invalidation failed; originals stay at the edge until they expire", "error", err)
	} else {
		s.log.Info("invalidated", "paths", s.config.InvalidatePaths, "ids", ids)
	}
	s.note(entry)
}

// arrived forgets the change, unless another has been made since.
func (s *site) arrived(ctx context.Context, change store.Deploying) error {
	lock, err := s.hold(ctx, s.store.Lock, lockWait)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	rec, err := s.load()
	if err != nil {
		return err
	}
	if d := rec.Deploying; d == nil || d.ETag != change.ETag || !d.Since.Equal(change.Since) {
		return nil
	}
	rec.Deploying = nil
	if err := s.save(rec); err != nil { // it is remembered in memory
		s.log.Error("state could not be written down", "error", err)
	}
	return nil
}

func (s *site) note(e store.Entry) {
	if err := s.store.Audit(e); err != nil {
		s.log.Error("audit log could not be written", "error", err)
	}
}
