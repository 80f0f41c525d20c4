package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"time"

	"karui/internal/admin"
	"karui/internal/api"
	"karui/internal/purging"
	"karui/internal/purging/nodes"
)

// operator changes pictures of the origin all the time, and purges them as the people
// of a site do: with karui's own command or with its API, and again if it did not work.
type operator struct {
	proof   *proof
	rng     *rand.Rand
	turning []*changing
	aging   []*changing

	mu    sync.Mutex
	count operations
}

// operations is what operators did.
type operations struct {
	Changes int `json:"changes"`
	// Purges are those that were completed, Repeated the further tries until then.
	Purges   int `json:"purges"`
	Repeated int `json:"repeated"`
	// Killed are purges after whose acknowledgement karui was killed at once.
	Killed int `json:"killed_after"`
	// Looks are answers of karui itself before a change, and right after it said that it
	// had purged.
	Looks int `json:"looks"`
	// Longest is how long the slowest took until it was complete, in seconds.
	Longest float64 `json:"longest_s"`
	// Postponed is the most that was in the backlog at the end of a time at defer.
	Postponed int `json:"postponed"`
}

func newOperator(p *proof, changes []*changing, seed uint64) *operator {
	o := &operator{proof: p, rng: rand.New(rand.NewPCG(seed, 3))}
	for _, c := range changes {
		if c.folder == agingFolder {
			o.aging = append(o.aging, c)
		} else {
			o.turning = append(o.turning, c)
		}
	}
	return o
}

func (o *operator) note(f func(*operations)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(&o.count)
}

func (o *operator) counted() operations {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}

// run changes and purges until the context ends.
func (o *operator) run(ctx context.Context) {
	for pause(ctx, between(o.rng, 200*time.Millisecond, 2*time.Second)) {
		for range 1 + o.rng.IntN(3) {
			o.change(o.turning[o.rng.IntN(len(o.turning))])
		}
		// Of these, every version is waited for until no cache may have it any more.
		if c := o.aging[o.rng.IntN(len(o.aging))]; c.since(time.Now()) > c.keeps+10*time.Second {
			o.change(c)
		}
		if o.rng.IntN(4) > 0 { // else the next purge ends several versions at once
			what := o.choose(o.rng)
			o.look(ctx, what) // so that there is something to purge
			o.change(what.pictures[0])
			o.purge(ctx, o.rng.IntN(2) == 0, what, nil)
		}
	}
}

func (o *operator) change(c *changing) {
	if err := c.change(); err != nil {
		o.proof.rec.problem("a picture could not be changed: %v", err)
		return
	}
	o.note(func(n *operations) { n.Changes++ })
}

// choose says what is purged: one picture in both folders of the site, or both folders.
func (o *operator) choose(rng *rand.Rand) order {
	if rng.IntN(3) == 0 {
		return newOrder(o.turning, "https://www.example.com"+nearPath+turningFolder, farPrefix+turningFolder+"*")
	}
	return orderOf(o.turning[rng.IntN(len(o.turning))])
}

// order is what a purge is about.
type order struct {
	pictures []*changing
	prefixes []string
	// done are told when it is done, for each picture.
	done []func(at time.Time, direct bool)
}

func newOrder(pictures []*changing, prefixes ...string) order {
	return order{pictures, prefixes, make([]func(time.Time, bool), len(pictures))}
}

// orderOf is about one picture, in both folders of the site.
func orderOf(c *changing) order { return newOrder([]*changing{c}, c.path(nearPath), c.path(farPrefix)) }

// note says that karui has purged (direct), or that all is complete.
func (w order) note(at time.Time, direct bool) {
	for _, done := range w.done {
		done(at, direct)
	}
}

// purgeLimit is how long a purge may take with all that is done to karui meanwhile.
const purgeLimit = 3 * time.Minute

// purge purges, again and again until it is complete. Acknowledged, unless it is nil, is
// called when karui says that it has purged and the edge is still to come.
func (o *operator) purge(ctx context.Context, command bool, what order, acknowledged func() error) {
	for i, c := range what.pictures {
		what.done[i] = c.purging()
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, purgeLimit)
	defer cancel()
	wait := 300 * time.Millisecond
	for try := 0; ; try++ {
		var err error
		if try > 0 {
			// What karui cannot write down yet need not be done at the edge again and again.
			err = o.proxyAlone(limited, what)
		}
		switch {
		case err != nil:
		case command:
			err = o.byCommand(limited, what)
		default:
			err = o.byAPI(limited, what, acknowledged)
		}
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return
		}
		if limited.Err() != nil {
			o.proof.rec.problem("a purge was not complete within %v: %v", purgeLimit, err)
			return
		}
		_, _ = fmt.Fprintf(o.proof.log, "%7.1f s  purge again: %.300v\n", o.proof.history.since(time.Now()), err)
		o.note(func(n *operations) { n.Repeated++ })
		pause(limited, wait)
		wait = min(2*wait, 3*time.Second)
	}
	now := time.Now()
	what.note(now, false)
	o.note(func(n *operations) {
		n.Purges++
		n.Longest = max(n.Longest, now.Sub(began).Seconds())
	})
}

// byCommand purges with `karui purge`, which waits for the edge.
func (o *operator) byCommand(ctx context.Context, what order) error {
	s := o.proof.system
	args := append([]string{"purge", "--site", siteID, "--admin", "http://" + s.admin, "--timeout", "1m", "--json"}, what.prefixes...)
	cmd := exec.CommandContext(ctx, s.tool, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, s.environment, 5*time.Second
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("karui purge: %w: %s", err, strings.Join(strings.Fields(string(exit.Stderr)), " "))
	}
	if err != nil {
		return fmt.Errorf("karui purge: %w", err)
	}
	var result nodes.Result
	if err := json.Unmarshal(out, &result); err != nil {
		return fmt.Errorf("karui purge --json: %w", err)
	}
	for _, p := range result.Purges {
		if err := complete(p); err != nil {
			return err
		}
	}
	return nil
}

// complete tells whether a purge has ended well and holds over a restart.
func complete(p purging.Purge) error {
	switch {
	case p.State != purging.Done:
		return fmt.Errorf("the purge is %s, at the edge %s: %+v", p.State, p.Edge.State, p.Edge.Failure)
	case p.Remark != "":
		return errors.New(p.Remark)
	}
	return nil
}

// proxyAlone purges and leaves the edge alone.
func (o *operator) proxyAlone(ctx context.Context, what order) error {
	client := admin.New("http://"+o.proof.system.admin, "")
	defer client.Close()
	var p purging.Purge
	request := purging.Request{Site: siteID, Prefixes: what.prefixes, Edge: new(bool)}
	if err := client.Do(ctx, http.MethodPost, "/purge", request, &p); err != nil {
		return err
	}
	return complete(p)
}

// byAPI purges with the API.
func (o *operator) byAPI(ctx context.Context, what order, acknowledged func() error) error {
	client := admin.New("http://"+o.proof.system.admin, "")
	defer client.Close()
	var p purging.Purge
	if err := client.Do(ctx, http.MethodPost, "/purge", purging.Request{Site: siteID, Prefixes: what.prefixes}, &p); err != nil {
		return err
	}
	if p.Remark != "" {
		return errors.New(p.Remark)
	}
	what.note(time.Now(), true)
	if acknowledged != nil { // before anybody asks, and the new picture takes the old one's place
		o.note(func(n *operations) { n.Killed++ })
		if err := acknowledged(); err != nil {
			return err
		}
	}
	o.look(ctx, what)
	for p.State == purging.Running {
		if !pause(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
		err := client.Do(ctx, http.MethodGet, "/purge/"+url.PathEscape(p.ID), nil, &p)
		// karui goes on with it after a restart; what it does not know any more is purged again.
		if refused := (*api.Error)(nil); errors.As(err, &refused) {
			return err
		}
	}
	return complete(p)
}

// mostLooks bounds how many pictures are looked at after a purge.
const mostLooks = 3

// look asks karui itself for what is to be purged, or has just been, before the edge has
// been. What it
// does not answer well is the edge's to cope with.
func (o *operator) look(ctx context.Context, what order) {
	p := o.proof
	direct := newClient("http://" + p.system.address)
	defer direct.close()
	for _, c := range what.pictures[:min(len(what.pictures), mostLooks)] {
		for _, accept := range []string{"image/" + p.options.Formats[0], "*/*"} {
			target := c.path(nearPath)
			q := request{method: http.MethodGet, path: target, target: target, accept: accept, takes: takenBy(accept), direct: true}
			a := direct.do(ctx, q)
			if a.err != nil || a.status != http.StatusOK {
				continue
			}
			got, found := p.check.check(a)
			p.rec.answered(a, got)
			o.note(func(n *operations) { n.Looks++ })
			if len(found) > 0 {
				p.rec.bad(operatorID, a, q.path, found)
			}
		}
	}
}

// operatorID stands for the operator where a client is named.
const operatorID = -2
