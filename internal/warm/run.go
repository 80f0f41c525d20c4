package warm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Options are what a run is made of.
type Options struct {
	Sources []Source
	// Forms are asked for one after another, for every image.
	Forms []Form
	Scope Scope
	Proxy Proxy
	// Pages is whether pages that a sitemap names without images are read.
	Pages bool
	Stdin io.Reader
	Limits
	// Rate bounds the requests a second, pages and images together, and Parallel those
	// that are under way for images.
	Rate     float64
	Parallel int
	// Patience is how long the proxy may give no good answer.
	Patience time.Duration
	// DoneFor is how long an image counts as warm.
	DoneFor time.Duration
	// DryRun finds the images and asks for none. Found is told of each, nil for nobody.
	DryRun bool
	Found  func(target string)
	// State remembers what is done; that of [Memory] forgets it.
	State *State
	// Watch says how the proxy is loaded, nil for no way to know.
	Watch func(context.Context) (Load, error)
	// Progress is told how far the run is, often. Say is told what people should know
	// meanwhile. Neither may be nil.
	Progress func(Progress)
	Say      func(string)
}

// Progress is how far a run is. Done and All are images times forms.
type Progress struct {
	Done, All, Failed int
	// Walking is whether further images may be found.
	Walking bool
	// Waiting says why nothing is asked, empty if it is.
	Waiting string
}

// ErrOutage is the error of a run that ended since the proxy gave no good answer.
var ErrOutage = errors.New("gave up")

// errEnded is the cause with which a run's own goroutines end.
var errEnded = errors.New("the run has ended")

// Run finds the images of a site and asks for each until it is settled. The report is
// good with an error, too: what was not dealt with is left for the next run.
func Run(ctx context.Context, o Options) (*Report, error) {
	for _, s := range o.Sources {
		if a, ok := s.url(); ok {
			o.Scope.name(a.host)
		}
	}
	if o.Proxy.Host == "" {
		o.Proxy.Host = o.Scope.host()
	}
	asker := newAsker(o.Proxy, o.Parallel)
	defer asker.close()
	fetch := newFetcher(&o.Scope, o.Limits)
	defer fetch.close()
	return newRun(o, asker.ask, fetch).run(ctx)
}

// run is one run. Its fields belong to the goroutine of run.
type run struct {
	o       Options
	ask     func(ctx context.Context, target string, form Form) answer
	fetch   *fetcher
	limiter *rate.Limiter

	started time.Time
	// fresh is the time since which what was settled is still warm.
	fresh    time.Time
	queue    *queue
	pressure *pressure
	report   Report
	forms    map[Form]*FormReport
	failed   map[string]int  // images that failed, by their place in report.Failures, -1 for none
	dead     map[string]bool // images that do not exist
	seen     map[string]bool
	kept     int64 // bytes of what was seen
	walking  bool
	load     Load
	loaded   time.Time // since when the load is too high, zero if it is not
	ticket   *rate.Reservation
	saveAt   time.Time
	told     string
	fatal    error

	work    chan *task
	results chan result
	// do brings what the walk and the watch have to say.
	do chan func()
}

// result is an answer to a task.
type result struct {
	task  *task
	began time.Time
	judgement
}

func newRun(o Options, ask func(context.Context, string, Form) answer, fetch *fetcher) *run {
	r := &run{
		o: o, ask: ask, fetch: fetch, limiter: rate.NewLimiter(rate.Limit(o.Rate), 1),
		queue: newQueue(o.Parallel), pressure: newPressure(), forms: map[Form]*FormReport{}, failed: map[string]int{}, dead: map[string]bool{}, seen: map[string]bool{},
		work: make(chan *task), results: make(chan result, o.Parallel), do: make(chan func()),
	}
	r.report = Report{Site: o.Proxy.Site, Sources: names(o.Sources), State: o.State.File(), Failures: []Failure{}, Dead: []Failure{}}
	r.report.Hostless = o.Scope.hostless()
	r.report.Forms = make([]FormReport, len(o.Forms))
	for i, f := range o.Forms {
		r.report.Forms[i] = FormReport{Format: f.String(), KeptWhy: map[string]int{}}
		r.forms[f] = &r.report.Forms[i]
	}
	return r
}

func (r *run) run(ctx context.Context) (*Report, error) {
	r.started = time.Now()
	r.fresh = r.started.Add(-r.o.DoneFor)
	r.o.State.forget(r.fresh)
	r.saveAt = r.started
	r.say(r.o.State.Moved())
	inner, end := context.WithCancelCause(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer end(errEnded)
	if !r.o.DryRun {
		for range r.o.Parallel {
			parts.Go(func() { r.works(inner) })
		}
		if r.o.Watch != nil {
			parts.Go(func() { r.watches(inner) })
		}
	}
	r.walking = true
	parts.Go(func() { r.walks(inner) })
	err := r.loop(ctx)
	if errors.Is(err, ErrOutage) {
		r.name()
	}
	r.report.Seconds = time.Since(r.started).Round(time.Millisecond).Seconds()
	r.report.Finished = err == nil
	if saving := r.o.State.Save(); saving != nil {
		err = errors.Join(err, saving)
	}
	return &r.report, err
}

// works asks what the loop hands out.
func (r *run) works(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-r.work:
			began := time.Now()
			answer := r.ask(ctx, t.target, t.form)
			// There is room for one result of each.
			r.results <- result{t, began, judge(answer, t.form, r.o.Proxy.Short)}
		}
	}
}

// walks finds the images.
func (r *run) walks(ctx context.Context) {
	to := &intake{r: r, ctx: ctx}
	w := walk{
		fetch: r.fetch, scope: &r.o.Scope, limits: r.o.Limits, pages: r.o.Pages, stdin: r.o.Stdin,
		wait: r.limiter.Wait, sink: to,
	}
	_ = w.run(ctx, r.o.Sources) // only that of the context, which the loop sees itself
	to.tell(func() { r.walking = false })
}

// loop is the run's own goroutine: it alone knows how things stand.
func (r *run) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		if err := r.ended(ctx, now); err != nil {
			return err
		}
		if !r.walking && r.queue.empty() {
			return nil
		}
		r.tell(now)
		r.save(now)
		t, at := r.turn(now)
		var work chan *task
		if t != nil {
			work = r.work
		}
		timer.Reset(max(at.Sub(now), 0))
		select {
		case work <- t:
			r.queue.start(t)
			r.ticket = nil
			r.report.Requests++
		case res := <-r.results:
			r.take(res, time.Now())
		case f := <-r.do:
			f()
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// lookAgain is how often the loop looks at the clock when nothing happens.
const lookAgain = time.Second

// turn gives the task whose turn it is, or when to look again.
func (r *run) turn(now time.Time) (*task, time.Time) {
	later := now.Add(lookAgain)
	switch {
	case !r.loaded.IsZero():
		return nil, later
	case r.queue.active() >= r.pressure.allowed(now, r.o.Parallel):
		if now.Before(r.pressure.until) {
			later = earlier(later, r.pressure.until)
		}
		return nil, later
	}
	t, due := r.queue.next(now, !r.pressure.since.IsZero())
	if t == nil {
		if !due.IsZero() {
			later = earlier(later, due)
		}
		return nil, later
	}
	r.limiter.SetLimitAt(now, rate.Limit(r.o.Rate*r.pressure.share))
	if r.ticket == nil {
		r.ticket = r.limiter.ReserveN(now, 1)
	}
	if wait := r.ticket.DelayFrom(now); wait > 0 {
		return nil, earlier(later, now.Add(wait))
	}
	return t, later
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// ended tells why the run ends before its work is done.
func (r *run) ended(ctx context.Context, now time.Time) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.fatal != nil {
		return r.fatal
	}
	if bears := r.pressure.bears(now); bears > r.o.Patience {
		return fmt.Errorf("%w after %s without a good answer: %s", ErrOutage, bears.Round(time.Second), r.pressure.reason)
	}
	if !r.loaded.IsZero() && now.Sub(r.loaded) > r.o.Patience {
		return fmt.Errorf("%w: the proxy has been under load for %s: %s", ErrOutage, now.Sub(r.loaded).Round(time.Second), r.load.high())
	}
	return nil
}

// take deals with an answer.
func (r *run) take(res result, now time.Time) {
	t, j := res.task, res.judgement
	switch j.next {
	case stressed:
		r.pressure.bad(res.began, now, j.reason)
		// While nobody gets a good answer, that is not the image's fault. Half the tries
		// are enough otherwise, since it is asked at longer intervals.
		if r.pressure.good.After(t.stressed) && !t.stressed.IsZero() {
			t.tries += 2
		}
		t.stressed, t.unserved = now, ""
		if !r.exhausted(t, j.reason) {
			r.queue.turned(t, now)
		}
	case unserved:
		r.unserved(t, res, now)
	case again:
		r.well(j, now)
		t.tries++
		if !r.exhausted(t, j.reason) {
			r.queue.retry(t, now)
		}
	case settled:
		r.well(j, now)
		r.forms[t.form].add(j, t.tries > 0)
		r.o.State.settle(t.target, t.form, now)
		r.queue.done()
	case missing:
		r.well(j, now)
		r.queue.done()
		r.forms[t.form].Missing++
		if !r.dead[t.target] {
			r.dead[t.target] = true
			r.deadLink(t.target, j.reason)
		}
	case hopeless:
		r.fatal = errors.New(j.reason)
		r.queue.done()
	default:
		r.well(j, now)
		r.fail(t, j.reason)
	}
}

// well takes note of an answer that is neither of a stressed proxy nor of an origin that
// does not give the image.
func (r *run) well(j judgement, now time.Time) {
	r.pressure.well(now)
	if !j.ready { // else it may be from the cache, and says nothing of the origin
		r.pressure.serves(now)
	}
}

// unserved deals with an image that the origin did not give. As long as others come, it
// is the image's own fault and slows nobody down, and it is given up in the end. When
// none comes, the origin is left alone. When there are no others, nothing can tell:
// the image has as many tries.
func (r *run) unserved(t *task, res result, now time.Time) {
	r.queue.scattered = true
	last := !r.walking && r.queue.alone()
	if last {
		r.pressure.quicken(1.0 / 4) // each has its own pauses
	}
	if !t.stressed.IsZero() && (r.pressure.served.After(t.stressed) || last) {
		t.own = true
		t.tries += 2 // half of them are enough: the pauses are longer
	}
	if !t.own {
		r.pressure.unserved++
	}
	if !t.own && r.pressure.unserved > chance || !r.pressure.since.IsZero() && !last {
		r.pressure.bad(res.began, now, res.reason)
	}
	t.stressed, t.unserved = now, res.reason
	if !r.exhausted(t, res.reason) {
		r.queue.turned(t, now)
	}
}

// name tells, at the end of a run that gave up, of the images that the origin was asked
// for and did not give: they may be why.
func (r *run) name() {
	for _, t := range r.queue.away {
		if t.unserved != "" {
			r.queue.running++ // fail lets it go
			r.fail(t, "when the run gave up: "+t.unserved)
		}
	}
}

// exhausted gives an image up that was tried often enough.
func (r *run) exhausted(t *task, reason string) bool {
	if t.tries < maxTries {
		return false
	}
	r.fail(t, "after many tries: "+reason)
	return true
}

// fail gives an image up in one form.
func (r *run) fail(t *task, reason string) {
	r.queue.done()
	r.forms[t.form].Failed++
	place, known := r.failed[t.target]
	switch {
	case !known:
		r.report.Failed++
		r.failed[t.target] = -1
		if len(r.report.Failures) < r.o.Failures {
			r.failed[t.target] = len(r.report.Failures)
			r.report.Failures = append(r.report.Failures, Failure{t.target, []string{t.form.String()}, reason})
		}
	case place >= 0:
		f := &r.report.Failures[place]
		f.Formats = append(f.Formats, t.form.String())
	}
}

// deadLink notes what is named and does not exist.
func (r *run) deadLink(name, reason string) {
	r.report.DeadLinks++
	if len(r.report.Dead) < r.o.Failures {
		r.report.Dead = append(r.report.Dead, Failure{Name: name, Reason: reason})
	}
}

// found takes an image.
func (r *run) found(target string) {
	if r.seen[target] {
		return
	}
	if len(r.seen) >= r.o.Images || r.kept+int64(len(target)) > r.o.Kept {
		r.report.OverLimit++
		return
	}
	r.seen[target] = true
	r.kept += int64(len(target))
	r.report.Images++
	if r.o.DryRun {
		if r.o.Found != nil {
			r.o.Found(target)
		}
		return
	}
	for _, form := range r.o.Forms {
		if r.o.State.settledSince(target, form, r.fresh) {
			r.forms[form].Before++
			continue
		}
		r.queue.add(&task{target: target, form: form})
	}
}

// save writes the state now and then: what is lost by a kill is a few seconds, which
// are asked again. Large files are written less often.
func (r *run) save(now time.Time) {
	if now.Before(r.saveAt) {
		return
	}
	if err := r.o.State.Save(); err != nil {
		r.say("the state is not kept, so that the next run begins anew: " + err.Error())
	}
	end := time.Now()
	r.saveAt = end.Add(max(2*time.Second, 20*end.Sub(now)))
}

// tell says how far the run is.
func (r *run) tell(now time.Time) {
	p := Progress{Walking: r.walking}
	for i := range r.report.Forms {
		f := &r.report.Forms[i]
		p.Done += f.settled()
		p.Failed += f.Failed
	}
	p.All = r.report.Images * len(r.o.Forms)
	switch {
	case !r.loaded.IsZero():
		p.Waiting = "the proxy is left alone: " + r.load.high()
	case now.Before(r.pressure.until):
		p.Waiting = "the proxy is left alone: " + r.pressure.reason
	}
	r.say(p.Waiting)
	r.o.Progress(p)
}

// say tells people something new.
func (r *run) say(words string) {
	if words == "" || words == r.told {
		return
	}
	r.told = words
	r.o.Say(words)
}
