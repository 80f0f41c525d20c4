package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"
)

// fault is one kind of trouble.
type fault struct {
	name string
	// area is what it is done to; two at once are never done to the same.
	area area
	// needsDisk says that the cache has to lie on a disk of its own.
	needsDisk bool
	// draw takes its values from rng, and nothing else, so that a seed means the
	// same faults every time.
	draw func(p *proof, rng *rand.Rand) deed
}

// area is a set of parts of the system.
type area uint8

const (
	onProxy area = 1 << iota
	onWorkers
	onDisk
	onOrigin
	onWatchdog
)

// deed is a fault with its values. do returns when it is healed.
type deed struct {
	what string
	do   func(ctx context.Context) error
}

// faults are all kinds.
func faults() []fault {
	return slices.Concat(processFaults(), originFaults(), diskFaults(), controlFaults(), operatorFaults())
}

// chosen gives the faults of these names; all, without any.
func chosen(names []string) ([]fault, error) {
	all := faults()
	if len(names) == 0 {
		return all, nil
	}
	var out []fault
	for _, name := range names {
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
		if i < 0 {
			var known []string
			for _, f := range all {
				known = append(known, f.name)
			}
			return nil, fmt.Errorf("-faults: %q is none of %s", name, strings.Join(known, ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// between is a time from a to b.
func between(rng *rand.Rand, a, b time.Duration) time.Duration {
	return a + time.Duration(rng.Int64N(int64(b-a))).Round(10*time.Millisecond)
}

// What faults struck, where that is not certain before.
const (
	filesDamaged  = "cache files damaged"
	booksDamaged  = "lists of purges damaged"
	workersStruck = "workers killed or stopped"
)

// processFaults are what happens to karui's own processes.
func processFaults() []fault {
	return []fault{
		{name: "kill-proxy", area: onProxy, draw: func(p *proof, rng *rand.Rand) deed {
			away := between(rng, 50*time.Millisecond, 500*time.Millisecond)
			if rng.IntN(3) == 0 {
				away = between(rng, 2*time.Second, 4*time.Second) // long enough for the watchdog
			}
			return deed{fmt.Sprintf("SIGKILL, started again after %v", away), func(ctx context.Context) error {
				p.killProxy()
				pause(ctx, away)
				return p.startProxy(ctx)
			}}
		}},
		{name: "stop-proxy", area: onProxy, draw: func(p *proof, rng *rand.Rand) deed {
			hold := between(rng, 300*time.Millisecond, 4*time.Second)
			return deed{fmt.Sprintf("SIGSTOP for %v", hold), func(ctx context.Context) error {
				// The edge gives up on a body that has stopped.
				defer p.history.mayCut()()
				p.system.karui.signal(syscall.SIGSTOP)
				pause(ctx, hold)
				p.system.karui.signal(syscall.SIGCONT)
				return nil
			}}
		}},
		{name: "slow-proxy", area: onProxy, draw: func(p *proof, rng *rand.Rand) deed {
			hold, stopped := between(rng, 2*time.Second, 3*time.Second), between(rng, 100*time.Millisecond, 400*time.Millisecond)
			return deed{fmt.Sprintf("stopped for %v out of every %v during %v", stopped, stopped+50*time.Millisecond, hold), func(ctx context.Context) error {
				defer p.history.mayCut()()
				for end := time.Now().Add(hold); time.Now().Before(end) && ctx.Err() == nil; {
					p.system.karui.signal(syscall.SIGSTOP)
					pause(ctx, stopped)
					p.system.karui.signal(syscall.SIGCONT)
					pause(ctx, 50*time.Millisecond)
				}
				return nil
			}}
		}},
		{name: "kill-workers", area: onWorkers, draw: func(p *proof, rng *rand.Rand) deed { return p.toWorkers(rng, syscall.SIGKILL, 0) }},
		{name: "stop-workers", area: onWorkers, draw: func(p *proof, rng *rand.Rand) deed {
			return p.toWorkers(rng, syscall.SIGSTOP, between(rng, time.Second, 4*time.Second))
		}},
		{name: "restart", area: onProxy, draw: func(p *proof, _ *rand.Rand) deed {
			return deed{"SIGTERM, started again", func(ctx context.Context) error {
				if p.system.karui.end(syscall.SIGTERM, 30*time.Second) {
					p.rec.problem("karui did not end within 30 s of SIGTERM")
				} else if code := p.system.karui.exitCode(); code != 0 {
					p.rec.problem("exit code %d after SIGTERM, want 0", code)
				}
				return p.startProxy(ctx)
			}}
		}},
		{name: "reload-good", area: onProxy, draw: func(p *proof, rng *rand.Rand) deed {
			wait, quality := []string{"0s", "100ms", "1s"}[rng.IntN(3)], 60+rng.IntN(30)
			return deed{fmt.Sprintf("SIGHUP with first_response.wait %s, quality %d", wait, quality), func(ctx context.Context) error {
				if err := p.system.configure(wait, quality); err != nil {
					return err
				}
				p.system.karui.signal(syscall.SIGHUP)
				pause(ctx, 300*time.Millisecond)
				return nil
			}}
		}},
		{name: "reload-bad", area: onProxy, draw: func(p *proof, rng *rand.Rand) deed {
			text := []string{"listen: [", "no_such_key: 1\n", "", "sites: []\nttl: { short: 5 }\n"}[rng.IntN(4)]
			return deed{fmt.Sprintf("SIGHUP with %q", text), func(ctx context.Context) error {
				if err := replaceFile(p.system.settings, text); err != nil {
					return err
				}
				p.system.karui.signal(syscall.SIGHUP)
				pause(ctx, 500*time.Millisecond)
				return p.system.configure("300ms", 80)
			}}
		}},
	}
}

// toWorkers sends a signal to one worker or to all, and after hold, to those that
// were stopped, SIGCONT.
func (p *proof) toWorkers(rng *rand.Rand, s syscall.Signal, hold time.Duration) deed {
	all, one := rng.IntN(2) == 0, rng.IntN(1000)
	who := "one worker"
	if all {
		who = "all workers"
	}
	words := fmt.Sprintf("%v to %s", s, who)
	if hold > 0 {
		words += fmt.Sprintf(" for %v", hold)
	}
	return deed{words, func(ctx context.Context) error {
		workers := p.system.karui.children()
		if len(workers) == 0 {
			return nil // they are on their way
		}
		slices.Sort(workers)
		if !all {
			workers = workers[one%len(workers):][:1]
		}
		for _, pid := range workers {
			if syscall.Kill(pid, s) == nil { // it may have ended meanwhile
				p.rec.noteStruck(workersStruck, 1)
			}
		}
		if hold > 0 {
			pause(ctx, hold)
			for _, pid := range workers {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}
		return nil
	}}
}

// killProxy ends karui as a crash would.
func (p *proof) killProxy() {
	defer p.history.mayCut()()
	p.system.karui.end(syscall.SIGKILL, time.Minute)
}

// startProxy starts karui again and waits until it says that it would serve.
func (p *proof) startProxy(ctx context.Context) error {
	if err := p.system.karui.start(); err != nil {
		return err
	}
	err := p.system.karui.await(ctx, startLimit)
	if ctx.Err() != nil {
		return nil // the proof is over
	}
	return err
}
