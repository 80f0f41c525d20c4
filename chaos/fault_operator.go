package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"karui/internal/admin"
	"karui/internal/server"
)

// operatorFaults are what operators do: purges that are disturbed, and moves of the dial.
func operatorFaults() []fault {
	const create = "cloudfront:CreateInvalidation"
	return []fault{
		{name: "purge-kill", area: onProxy, draw: func(p *proof, rng *rand.Rand) deed {
			changed, away := rng.IntN(1000), between(rng, 20*time.Millisecond, 300*time.Millisecond)
			all := rng.IntN(2) == 0
			return deed{fmt.Sprintf("a changed picture is purged; SIGKILL as soon as karui has said so, started again after %v", away), func(ctx context.Context) error {
				o := p.operator
				c := o.turning[changed%len(o.turning)]
				o.look(ctx, orderOf(c)) // so that there is something to purge
				o.change(c)
				what := orderOf(c)
				if all {
					what = newOrder(o.turning, nearPath+turningFolder, farPrefix+turningFolder)
				}
				o.purge(ctx, false, what, func() error {
					p.killProxy()
					pause(ctx, away)
					return p.startProxy(ctx)
				})
				return nil
			}}
		}},
		{name: "purge-denied", area: onWatchdog, draw: func(p *proof, rng *rand.Rand) deed {
			changed, hold := rng.IntN(1000), between(rng, time.Second, 4*time.Second)
			return deed{fmt.Sprintf("the role may not invalidate for %v, while a changed picture is purged", hold), func(ctx context.Context) error {
				o := p.operator
				c, control, role := o.turning[changed%len(o.turning)], p.system.front.control, p.system.front.purgeRole
				o.change(c)
				control.Deny(role, create)
				allow := time.AfterFunc(hold, func() { control.Allow(role, create) })
				defer allow.Stop()
				defer control.Allow(role, create)
				o.purge(ctx, true, orderOf(c), nil)
				return nil
			}}
		}},
		{name: "dial-defer", area: onProxy, draw: func(p *proof, rng *rand.Rand) deed {
			hold, killed := between(rng, 1500*time.Millisecond, 4*time.Second), rng.IntN(2) == 0
			words := fmt.Sprintf("dial 3, which makes no variants, for %v", hold)
			if killed {
				words += "; SIGKILL in its middle"
			}
			return deed{words, func(ctx context.Context) error {
				return p.steer(ctx, server.DialChange{Level: "defer"}, server.DialChange{Level: "auto"}, func() error {
					pause(ctx, hold/2)
					if killed {
						p.killProxy()
						if err := p.startProxy(ctx); err != nil {
							return err
						}
					}
					pause(ctx, hold/2)
					return p.notePostponed(ctx)
				})
			}}
		}},
		{name: "dial-shed", area: onProxy, draw: func(p *proof, rng *rand.Rand) deed {
			hold, share := between(rng, 1500*time.Millisecond, 4*time.Second), fmt.Sprintf("%d%%", 20+rng.IntN(60))
			return deed{fmt.Sprintf("%s of the requests are turned away for %v", share, hold), func(ctx context.Context) error {
				return p.steer(ctx, server.DialChange{Shed: share}, server.DialChange{Shed: "0%"}, func() error {
					pause(ctx, hold)
					return nil
				})
			}}
		}},
	}
}

// steer makes a change of the dial, does something, and takes the change back.
func (p *proof) steer(ctx context.Context, there, back server.DialChange, meanwhile func() error) error {
	client := admin.New("http://"+p.system.admin, "")
	defer client.Close()
	if err := client.Do(ctx, http.MethodPut, "/dial", there, nil); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	err := meanwhile()
	// Also when the proof is over, so that the way can become normal.
	return errors.Join(err, client.Do(context.WithoutCancel(ctx), http.MethodPut, "/dial", back, nil))
}

// notePostponed looks at how much waits for better times.
func (p *proof) notePostponed(ctx context.Context) error {
	client := admin.New("http://"+p.system.admin, "")
	defer client.Close()
	var backlog server.BacklogAnswer
	if err := client.Get(ctx, "/backlog", &backlog); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	p.operator.note(func(n *operations) { n.Postponed = max(n.Postponed, backlog.Entries) })
	return nil
}
