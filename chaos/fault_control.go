package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"karui/internal/cloudfront"
)

// controlFaults are what happens to the watchdog and to the API that it uses.
// Trouble of the API matters only when there is something to swap.
func controlFaults() []fault {
	const update = "UpdateDistribution"
	trouble := func(name, words string, begin func(*cloudfront.Double, string)) fault {
		return fault{name: name, area: onProxy | onWatchdog, draw: func(p *proof, rng *rand.Rand) deed {
			away, after := between(rng, 1500*time.Millisecond, 3*time.Second), between(rng, 500*time.Millisecond, 2*time.Second)
			return deed{fmt.Sprintf("%s while karui is away for %v", words, away), func(ctx context.Context) error {
				begin(p.system.front.control, p.system.front.role)
				defer p.system.front.control.Calm()
				defer p.system.front.control.Allow(p.system.front.role, "cloudfront:"+update)
				p.killProxy()
				pause(ctx, away)
				if err := p.startProxy(ctx); err != nil {
					return err
				}
				pause(ctx, after)
				return nil
			}}
		}}
	}
	return []fault{
		{name: "kill-watchdog", area: onWatchdog, draw: func(p *proof, rng *rand.Rand) deed {
			away, lost := between(rng, 100*time.Millisecond, 2*time.Second), rng.IntN(3) > 0
			words := fmt.Sprintf("SIGKILL, started again after %v", away)
			if lost { // which also ends its doubts after many swaps
				words += ", without its state unless there is something to restore"
			}
			return deed{words, func(ctx context.Context) error {
				p.system.dog.end(syscall.SIGKILL, time.Minute)
				var err error
				// Without its state it takes a swap of its own for somebody else's, and leaves it.
				if lost && !p.system.front.degraded() {
					err = os.RemoveAll(p.system.dogState)
				}
				pause(ctx, away)
				return errors.Join(err, p.system.dog.start())
			}}
		}},
		{name: "stop-watchdog", area: onWatchdog, draw: func(p *proof, rng *rand.Rand) deed {
			hold := between(rng, time.Second, 3*time.Second)
			return deed{fmt.Sprintf("SIGSTOP for %v", hold), func(ctx context.Context) error {
				p.system.dog.signal(syscall.SIGSTOP)
				pause(ctx, hold)
				p.system.dog.signal(syscall.SIGCONT)
				return nil
			}}
		}},
		trouble("api-throttled", "the API takes one change a minute", func(d *cloudfront.Double, _ string) { d.Throttle(update, 1) }),
		trouble("api-denied", "the role may not change the distribution", func(d *cloudfront.Double, role string) { d.Deny(role, "cloudfront:"+update) }),
		trouble("api-broken", "the API fails, then cuts a connection after the change was made", func(d *cloudfront.Double, _ string) {
			d.Fail(update, 2, 500, "InternalError", "We encountered an internal error. Please try again.")
			d.Drop(update, cloudfront.DropAfter, 1)
		}),
		trouble("api-slow", "each change takes a second", func(d *cloudfront.Double, _ string) { d.SetLatency(update, time.Second) }),
	}
}
