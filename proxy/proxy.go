// Package proxy answers viewers: it finds the site, negotiates the format, looks
// into the cache, shares one fetch and one conversion between all who wait, and
// otherwise gets out of the way.
//
// Guaranteed:
//
//   - Every answer to a GET or HEAD is the origin's own, a variant that the viewer
//     named in its Accept, or 503 with no-store, by which the edge asks the true
//     origin itself. Whatever fails inside karui ends in one of these.
//   - A body that cannot be sent whole aborts the connection, and is not stored.
//   - The request target and the end-to-end headers reach the origin byte for byte,
//     as far as the origin is asked for one viewer; what a shared fetch carries is
//     in its key, or says nothing about the picture.
//   - What is kept, and what is answered from it, is shareable by the origin's own
//     word (package rules).
//   - Whoever asks after a purge has returned gets nothing that was fetched before it,
//     in no form and by no way: not from the cache, a fetch or a conversion under way, or
//     an origin's word that nothing has changed, which is not asked for; and what is
//     under way is not stored, nor may an edge store it, if its head leaves later. It
//     holds over a restart if the purge says so.
//
// Not guaranteed: that a viewer gets a variant. Conversion is a favour, and no
// viewer waits for it longer than first_response.wait.
package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"karui/cache"
	"karui/proxy/backlog"
	"karui/proxy/dial"
	"karui/proxy/flight"
	"karui/proxy/rules"
	"karui/proxy/stress"
)

// Proxy is the handler of the public listener.
type Proxy struct {
	store    *cache.Cache
	convert  Converter
	flights  *flight.Group[cache.Key]
	log      *slog.Logger
	access   *slog.Logger
	now      func() time.Time
	began    time.Time
	metrics  *metrics
	tally    Tally
	set      atomic.Pointer[settings]
	ping     *pinger
	buffers  copyBuffers
	decoded  *decodedRecords
	resting  *resting
	pardoned pardons
	failures *rate.Limiter
	work     *workload
	strain
	postponed func(cache.Key, backlog.Ask)
	purged    func(match func(cache.Key) bool)
	// purges counts those that have been made.
	purges  atomic.Uint64
	unwatch func() // ends watch and waits for it
}

// Options are the parts that a Proxy is made of.
type Options struct {
	Settings Settings
	Cache    *cache.Cache
	Convert  Converter
	Log      *slog.Logger
	// Access gets one record for each request, where the settings ask for it; its
	// level is not asked for. nil means Log.
	Access   *slog.Logger
	Registry prometheus.Registerer
	// Tally counts what was answered well; nil for nobody.
	Tally Tally
	// SpoolDir is the folder for bodies under way that memory has no room for.
	SpoolDir string
	// Load gives the load of the workers for WebP and of those for slow formats, Queues
	// what is before them, and Volumes the state of the cache's disks; nil for nobody
	// who knows. Queues is asked for many a request, so it must be quick.
	Load    func() (fast, slow dial.Load)
	Queues  func() (fast, slow Queue)
	Volumes func() []stress.Volume
	// Postponed is told the keys of variants that can be made later, and of requests
	// that asked for these again; nil for nobody. It must not wait for anything.
	Postponed func(cache.Key, backlog.Ask)
	// Purged is told of what is purged: what was postponed of keys that match is not to
	// be made any more. nil for nobody.
	Purged func(match func(cache.Key) bool)
	// Now is the clock of lifetimes; nil means time.Now. Limits are kept by timers.
	Now func() time.Time
}

// New makes a Proxy and starts its ping. Close ends it.
func New(o Options) *Proxy {
	p := &Proxy{
		store: o.Cache, convert: o.Convert, log: o.Log, access: o.Access, now: o.Now,
		metrics: newMetrics(o.Registry),
		// One failing origin must not fill the disk with lines about it.
		failures: rate.NewLimiter(1, 20),
		work:     newWorkload(),
		decoded:  newDecodedRecords(),
		pardoned: pardons{at: map[rules.Digest]time.Time{}},
	}
	if p.now == nil {
		p.now = time.Now
	}
	if p.tally = o.Tally; p.tally == nil {
		p.tally = noTally{}
	}
	if p.access == nil {
		p.access = p.log
	}
	p.began = p.now()
	p.resting = newResting(p.now)
	p.flights = flight.New[cache.Key](flight.Options{
		Memory: int64(o.Settings.Limits.InflightBytes), BodyMemory: int64(o.Settings.Convert.MaxBytes),
		Dir: o.SpoolDir, Log: o.Log,
	})
	p.newStrain(&o)
	p.postponed, p.purged = o.Postponed, o.Purged
	p.set.Store(newSettings(o.Settings, p.metrics, p.latency))
	o.Registry.MustRegister(strainCollector{p})
	p.unwatch = start(p.watch)
	p.ping = startPing(p.convert, p.metrics.pings, p.log)
	return p
}

// Reload puts other settings in force. Requests under way keep theirs. The
// bounds of memory stay as they were at the start.
func (p *Proxy) Reload(s Settings) {
	next := newSettings(s, p.metrics, p.latency)
	p.set.Store(next)
	ids := make([]string, len(next.sites))
	for i, site := range next.sites {
		ids[i] = site.config.ID
	}
	p.latency.Retain(ids)
	p.latency.Configure(stress.Config(s.Stress))
	p.dial.Configure(s.Dial.settings())
}

// start runs f until the returned function is called, which waits for its end.
func start(f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// Flights counts the fetches under way.
func (p *Proxy) Flights() flight.Stats { return p.flights.Stats() }

// Well tells whether the proxy would serve: it does not drain, and conversions work.
func (p *Proxy) Well() bool { return !p.draining() && p.ping.well() }

// Drain turns new requests away, and waits until those under way are answered
// and what they began is converted and stored, or until ctx ends.
func (p *Proxy) Drain(ctx context.Context) error { return p.work.drain(ctx) }

func (p *Proxy) draining() bool { return p.work.draining() }

// Close ends whatever is still under way. Call it after the server that the proxy
// serves was shut down.
func (p *Proxy) Close() {
	p.work.refuse()
	p.flights.Close()
	p.ping.close()
	p.unwatch()
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{p: p, set: p.set.Load(), w: w, r: r, start: time.Now(), purges: p.purges.Load()}
	p.metrics.active.Inc()
	defer p.metrics.active.Dec()
	defer x.finish()
	x.ignoreBody()
	x.serve()
}

// finish accounts for the exchange, and keeps a panic of karui's own from
// breaking an image.
func (x *exchange) finish() {
	failure := recover()
	aborted := failure == http.ErrAbortHandler //nolint:errorlint // it is compared so by net/http
	switch {
	case failure == nil:
	case aborted:
		x.did = didAbort
	case x.begun:
		x.did = didAbort
		x.p.log.Error("panic while answering", "panic", failure, "stack", string(debug.Stack()))
	default:
		x.p.log.Error("panic before answering", "panic", failure, "stack", string(debug.Stack()))
		x.unavailable(becausePanic)
	}
	x.timed()
	took := time.Since(x.start)
	x.p.metrics.answered(x, took)
	x.tally()
	x.logAccess(took)
	if failure != nil && x.did == didAbort {
		x.breakOff()
		panic(http.ErrAbortHandler)
	}
}

// complain logs what an operator should know, but not a thousand times a second.
func (p *Proxy) complain(message string, args ...any) {
	if p.failures.Allow() {
		p.log.Warn(message, args...)
	}
}

// serve is the way of a request: route, negotiate, cache, fetch, convert, answer.
func (x *exchange) serve() {
	target, ok := rules.ParseTarget(x.r.RequestURI)
	x.target = target
	router := x.set.router
	if ok && router.isPing(target.Path, x.r) {
		x.unlogged = true
		x.answerPing()
		return
	}
	x.site = router.site(x.r.Header, x.r.Host)
	x.negotiated = x.site != nil && x.site.convertible(target.Path)
	if !x.p.work.begin() {
		x.unavailable(becauseDrain)
		return
	}
	defer x.p.work.leave()
	switch {
	case x.site == nil:
		x.p.complain("no site for a request: the edge gets 503 and asks the true origin; check sites, hosts and default",
			"host", x.r.Host, "routing", x.r.Header.Get(x.set.router.header))
		x.unavailable(becauseRoute)
	case !x.set.secrets.admit(x.r.Header):
		x.p.complain("wrong or missing X-Karui-Key: the edge gets 503 and asks the true origin; compare its origin header with edge.secrets",
			"site", x.site.config.ID)
		x.unavailable(becauseSecret)
	case x.r.Method != http.MethodGet && x.r.Method != http.MethodHead && x.r.Method != http.MethodOptions:
		x.plain(http.StatusMethodNotAllowed, http.Header{"Allow": {"GET, HEAD, OPTIONS"}}, "karui serves GET, HEAD and OPTIONS\n")
		x.did = didRefuse
	case !ok && x.r.Method != http.MethodOptions:
		x.plain(http.StatusBadRequest, nil, "the request target has no path\n")
		x.did = didRefuse
	default:
		if why := x.turnedAway(); why != "" {
			x.unavailable(why)
			return
		}
		x.answer()
	}
}

// answer answers a request that is not turned away.
func (x *exchange) answer() {
	target := x.target
	switch {
	case x.r.Method == http.MethodOptions:
		x.negotiated = false
		x.passThrough()
	case x.site.private(x.r.Header):
		x.passThrough()
	case x.negotiated:
		x.image(true)
	case x.site.config.Extensionless && x.site.included(target.Path) && x.r.Header.Get("Range") == "":
		x.image(false)
	default:
		x.passThrough()
	}
}
