package watchdog

import (
	"context"
	"fmt"

	"karui/watchdog/distribution"
	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/store"
)

// swap degrades for real, proves it, restores and proves that. However it ends,
// it restores; a process that is killed leaves an intent by which the next one
// does.
func (r *rehearsal) swap(ctx context.Context) {
	const name = "swap"
	switch {
	case r.config.ViewerURL == "":
		r.add(name, Fail, "refused: without viewer_url nothing could be proved", "set viewer_url")
		return
	case r.how.NoWrite:
		r.add(name, Fail, "refused: --swap writes, and --no-write forbids it", "leave one of them out")
		return
	case r.count(Fail) > 0:
		r.add(name, Fail, "refused: other points have failed", "put them right first")
		return
	case r.snapshot.Order != distribution.OrderProxy:
		hint := "run '" + r.w.command(event.ForRestore, r.config.ID) + "' first"
		if rec, err := r.peek(); err == nil && rec.State.Intent != nil {
			hint = r.settleHint()
		}
		r.add(name, Fail, "refused: the site is degraded now", hint)
		return
	}
	lock, err := r.store.Lock(ctx, r.w.what, commandWait)
	if err != nil {
		r.failed(name, Fail, err, "wait until the other is done, and rehearse again")
		return
	}
	defer lock.Unlock()
	rec, err := r.load()
	if err == nil && rec.State.Intent != nil {
		r.add(name, Fail, "refused: an earlier swap has not been settled, since its process was killed", r.settleHint())
		return
	}
	if err == nil {
		rec.State.Intent = &machine.Intent{ID: event.NewID(now()) + "-rehearsal", To: event.OrderDirect, At: now(), By: event.ActorRehearsal, Person: r.how.Person}
		err = r.save(rec)
	}
	if err != nil {
		r.failed(name, Fail, err, "see that "+r.common.StateDir+" can be written to and has room")
		return
	}
	if r.there(ctx, rec.State.Intent.ID) {
		r.proveOrigin(ctx)
	}
	if !r.back(ctx, rec) {
		return
	}
	// The order is as it was and nothing is left to settle, so that 'run' may act
	// again: the proxy may have died meanwhile.
	lock.Unlock()
	r.proveVariant(ctx)
}

// settleHint is for a swap that a killed process left: the next round finishes or
// forgets it, and puts the proxy first.
func (r *rehearsal) settleHint() string {
	return "run '" + r.w.command("check", "") + "', which settles it, and rehearse again"
}

// there degrades and waits. It returns whether it may be proved.
func (r *rehearsal) there(ctx context.Context, id string) bool {
	r.announce("putting the true origin first: viewers get originals until this rehearsal restores")
	acting, cancel := outlive(ctx)
	defer cancel()
	res, err := r.client.Swap(acting, distribution.OrderDirect, distribution.ForRehearsal)
	r.record(id+"-degrade", "degrade", event.OrderDirect, res, err)
	if err != nil {
		r.failed("swap_degrade", Fail, err, "look at the distribution by hand")
		return false
	}
	r.pass("swap_degrade", "the true origin comes first (version %s)", res.ETag)
	return r.deploy(ctx, "swap_degrade_deployed")
}

// deploy waits until the edge has the order.
func (r *rehearsal) deploy(ctx context.Context, name string) bool {
	r.announce("waiting until the whole edge has it (at most %s)", r.common.DeployTimeout)
	seen, err := r.client.WaitDeployed(ctx)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		r.failed(name, Fail, err, "look at the distribution's status in the console")
		return false
	}
	r.pass(name, "deployed after %s", seen.Took.Round(1e9))
	return true
}

// proveOrigin shows that viewers get the true origin's images.
func (r *rehearsal) proveOrigin(ctx context.Context) {
	const name = "swap_viewer_origin"
	target := r.fresh
	if r.route.query == "" {
		if !r.emptied(ctx, name) {
			return
		}
	}
	seen, ok := r.again(ctx, target, original, original)
	if ctx.Err() != nil {
		return
	}
	if ok {
		r.pass(name, "viewers get the true origin's image: %s, ETag %s", orNone(seen.Header.Get("Content-Type")), orNone(seen.Header.Get("ETag")))
		return
	}
	text, hint := "viewer_url still brings karui's variant", "the edge does not go by the order of this group: see that viewer_url is served by it, and by this distribution"
	switch {
	case !seen.OK || seen.Status != 200:
		text, hint = "viewer_url does not bring an image from the true origin: "+seen.Text, "the true origin has to answer for the site's images as the edge asks for them (host name, certificate, paths)"
	case fromCache(seen):
		text, hint = "the edge answers from its cache, so that nothing is proved", "put a query parameter into the cache key of the behaviour, or rehearse at another time"
	case !variant(seen):
		text = "viewer_url still goes through karui (X-Karui: " + seen.Header.Get("X-Karui") + ")"
	}
	r.add(name, Fail, text, hint)
}

// emptied removes viewer_url from the edge.
func (r *rehearsal) emptied(ctx context.Context, name string) bool {
	r.announce("invalidating viewer_url, since no query parameter makes a new cache key")
	ids, err := r.client.Invalidate(ctx, r.viewerPath())
	for _, id := range ids {
		if err == nil {
			err = r.client.WaitInvalidated(ctx, id)
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			r.failed(name, Fail, err, "give the role cloudfront:CreateInvalidation and cloudfront:GetInvalidation, or put a query parameter into the cache key")
		}
		return false
	}
	return true
}

// back restores, whatever happened to ctx. It returns whether it did.
func (r *rehearsal) back(ctx context.Context, rec store.Record) bool {
	if ctx.Err() != nil {
		r.announce("interrupted: restoring before the end")
	} else {
		r.announce("putting the proxy first again")
	}
	whatever := context.WithoutCancel(ctx)
	// The order was checked before; only what forbids an exchange counts now.
	res, err := r.client.Swap(whatever, distribution.OrderProxy, distribution.ForDegrade)
	r.record(rec.State.Intent.ID+"-restore", "restore", event.OrderProxy, res, err)
	if err != nil {
		// The intent stays: the next round of 'run' or 'check' takes it up.
		r.failed("swap_restore", Fail, fmt.Errorf("NOT RESTORED: %w", err), "")
		last := &r.out.Points[len(r.out.Points)-1]
		last.Hint = "run '" + r.w.command(event.ForRestore, r.config.ID) + "'; until then viewers get originals. " + last.Hint
		return false
	}
	rec.State.Intent = nil
	if err := r.save(rec); err != nil {
		r.failed("swap_state", Warn, err, "see that the state directory can be written to")
	}
	r.pass("swap_restore", "the proxy comes first again (version %s)", res.ETag)
	return true
}

// proveVariant shows that viewers get karui's images again.
func (r *rehearsal) proveVariant(ctx context.Context) {
	if ctx.Err() != nil || !r.deploy(ctx, "swap_restore_deployed") {
		return
	}
	const name = "swap_viewer_variant"
	target := r.config.ViewerURL
	if r.route.query != "" {
		target = r.fresh()
	} else if !r.emptied(ctx, name) {
		return
	}
	seen, ok := r.again(ctx, func() string { return target }, variant, variant)
	if ctx.Err() != nil {
		return
	}
	if ok {
		r.pass(name, "viewers get karui's variant again: %s", seen.Header.Get("ETag"))
		return
	}
	text, hint := r.noVariant(ctx, seen)
	r.add(name, Fail, text, hint)
}

// record writes down what a rehearsal did to a distribution.
func (r *rehearsal) record(id, action string, want event.Order, res distribution.Result, err error) {
	e := store.Entry{
		Time: now(), Action: action, By: event.ActorRehearsal, Person: r.how.Person, Why: "rehearsal", Want: want, Was: event.Order(res.Was),
		Changed: res.Changed, ETagBefore: res.ETagWas, ETagAfter: res.ETag, As: res.As, Calls: calls(res.Steps),
		Documents: r.keep(id, res), Difference: res.Difference, Outcome: "ok",
	}
	if err != nil {
		e.Outcome = err.Error()
	}
	r.note(e)
}
