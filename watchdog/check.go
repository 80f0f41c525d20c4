package watchdog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"karui/watchdog/machine"
	"karui/watchdog/store"
)

// glance is how long check waits for a change to reach the edge: it looks, and
// leaves the rest to the next check.
const glance = 10 * time.Second

// Check runs one round of every site, acts as Run would, sends the mails, and
// returns what came of it, in the configuration's order. The error joins what
// kept rounds from being carried out and mails from being sent.
func (w *Watchdog) Check(ctx context.Context) ([]Result, []error) {
	sites := w.all()
	results := make([]Result, len(sites))
	errs := make([]error, len(sites), len(sites)+1)
	var wait sync.WaitGroup
	for i, s := range sites {
		wait.Go(func() {
			s.contained(ctx, "round", func(ctx context.Context) {
				results[i].Site, errs[i] = s.config.ID, fmt.Errorf("site %s: the round failed for a mistake in the program", s.config.ID)
				r, err := s.round(ctx)
				results[i], errs[i] = r, nil
				if err != nil {
					results[i].Error = err.Error()
					errs[i] = fmt.Errorf("site %s: %w", s.config.ID, err)
					return
				}
				if err := s.unwritten(); err != nil {
					errs[i] = fmt.Errorf("site %s: what was found and done could not be written down (%s): %w", s.config.ID, hintDisk(s.common.StateDir), err)
				}
				look, cancel := context.WithTimeout(ctx, glance)
				defer cancel()
				if err := s.deployed(look, 0); err != nil && look.Err() == nil && errs[i] == nil && !errors.As(err, new(*store.BusyError)) {
					errs[i] = fmt.Errorf("site %s: %w", s.config.ID, err)
				}
			})
		})
	}
	wait.Wait()
	if err := w.outbox.Flush(ctx); err != nil {
		errs = append(errs, fmt.Errorf("mail: %w", err))
	}
	var out []error
	for _, err := range errs {
		if err != nil {
			out = append(out, err)
		}
	}
	return results, out
}

// AllUp tells whether every site's proxy was found up.
func AllUp(results []Result) bool {
	for _, r := range results {
		if r.Round.Verdict != machine.VerdictUp {
			return false
		}
	}
	return len(results) > 0
}

// AllRead tells whether the order was read in every round that had to: where it
// was not, the watchdog could not act either.
func AllRead(results []Result) bool {
	for _, r := range results {
		if r.Round.OrderError != "" {
			return false
		}
	}
	return true
}
