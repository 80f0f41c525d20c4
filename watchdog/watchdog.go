// Package watchdog looks after sites from outside: it asks each site's proxy for
// a ping, and when the proxy is down puts the site's true origin first in the
// origin group of its CloudFront distribution, and back when the proxy is well.
//
// Guaranteed: decisions are package machine's, and what they need is written
// down before they are carried out, so that a process killed anywhere is
// continued by the next without a mail repeated or lost. Sites do not wait for
// one another. Nothing but its context ends Run: errors and panics are logged and
// the next round comes.
//
// Not guaranteed: anything while the process is not running (heartbeat_url tells
// of that), or without rights at AWS (rehearse tells of that beforehand). When the
// state directory cannot be written to, also from the start, it still degrades, and
// does not restore; mails then go out past the outbox, and may be told twice or,
// after a crash, not at all.
package watchdog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"karui/watchdog/distribution"
	"karui/watchdog/event"
	"karui/watchdog/probe"
	"karui/watchdog/settings"
	"karui/watchdog/store"
)

const (
	// readTimeout bounds reading the order in a round; trouble there must not
	// hold up a round.
	readTimeout = 30 * time.Second

	// lockWait is how long a round waits for another process that acts.
	lockWait = 20 * time.Second

	// grace is how long a swap under way may go on after the end was asked for.
	grace = 20 * time.Second
)

// Options are what a Watchdog is made of.
type Options struct {
	Config settings.Config
	Store  *store.Store
	Outbox event.Outbox
	// AWS gives the watchdog's own configuration of AWS. It is asked again after a
	// failure. Default: distribution.Load.
	AWS func(context.Context) (aws.Config, error)
	// Probe is how the world is reached. The zero value is the real one.
	Probe probe.Options
	// Listen opens the listener of /healthz and the like. Default: TCP.
	Listen func(ctx context.Context, address string) (net.Listener, error)
	Log    *slog.Logger
	// CommandLine begins the commands that mails name, such as "karui-watchdog" or
	// "karui-watchdog --config ./watchdog.yaml"; a verb and a site follow.
	CommandLine func(verb, site string) string
	// What is the command that runs, for the messages of locks: "run", "check".
	What string
	// Version is what metrics name as the watchdog's; empty for "unknown".
	Version string
}

// Watchdog looks after all sites of a configuration.
type Watchdog struct {
	store    *store.Store
	outbox   event.Outbox
	log      *slog.Logger
	prober   *probe.Prober
	controls *probe.Controls
	metrics  *metrics
	aws      func(context.Context) (aws.Config, error)
	command  func(verb, site string) string
	what     string
	listener func(context.Context, string) (net.Listener, error)
	version  string
	page     *statusPage

	// lasting: this process goes on from round to round and remembers what it told.
	lasting atomic.Bool

	mu       sync.Mutex // guards what follows
	config   settings.Config
	sites    map[string]*site
	defaults []string // control addresses when none are configured
}

// New makes a Watchdog. It asks nobody anything yet.
func New(o Options) (*Watchdog, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Listen == nil {
		o.Listen = listenTCP
	}
	if o.AWS == nil {
		o.AWS = distribution.Load
	}
	if o.CommandLine == nil {
		o.CommandLine = func(verb, site string) string { return strings.TrimSpace("karui-watchdog " + verb + " " + site) }
	}
	if o.Store == nil || o.Outbox == nil {
		return nil, errors.New("watchdog: a store and an outbox are needed")
	}
	w := &Watchdog{
		store: o.Store, outbox: o.Outbox, log: o.Log, aws: once(o.AWS), command: o.CommandLine, what: o.What,
		metrics: newMetrics(), listener: o.Listen, version: o.Version, sites: map[string]*site{},
		defaults: defaultControls(os.Getenv),
	}
	w.metrics.outbox(o.Outbox)
	w.metrics.build.WithLabelValues(cmp.Or(o.Version, "unknown"), runtime.Version()).Set(1)
	w.metrics.configured(o.Config.Interval)
	w.prober = probe.New(o.Probe)
	w.controls = probe.NewControls(w.prober)
	w.use(o.Config)
	var err error
	if w.page, err = newStatusPage(w.picture, w.log); err != nil {
		return nil, err
	}
	return w, nil
}

// Close lets go of what the clients hold. No method may be called afterwards.
func (w *Watchdog) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sites {
		s.close()
	}
}

// use takes over a configuration and returns the sites that are not as before:
// those to start and those to stop.
func (w *Watchdog) use(c settings.Config) (start, stop []*site) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.sites
	w.sites = make(map[string]*site, len(c.Sites))
	for _, s := range c.Sites {
		if old := before[s.ID]; old != nil && sameSite(w.config, c, s) {
			w.sites[s.ID] = old
			continue
		}
		n := w.newSite(c, s)
		w.sites[s.ID] = n
		w.metrics.expect(s.ID)
		start = append(start, n)
	}
	for id, old := range before {
		if w.sites[id] != old {
			stop = append(stop, old)
		}
	}
	w.config = c
	return start, stop
}

// Config is the configuration in force.
func (w *Watchdog) Config() settings.Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.config
}

// all lists the sites in the configuration's order.
func (w *Watchdog) all() []*site {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]*site, 0, len(w.config.Sites))
	for _, s := range w.config.Sites {
		out = append(out, w.sites[s.ID])
	}
	return out
}

// site finds one.
func (w *Watchdog) site(id string) (*site, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sites[id]; s != nil {
		return s, nil
	}
	var ids []string
	for _, s := range w.config.Sites {
		ids = append(ids, s.ID)
	}
	return nil, &UnknownSiteError{ID: id, Known: ids}
}

// UnknownSiteError says that no site of the configuration has this id.
type UnknownSiteError struct {
	ID    string
	Known []string
}

func (e *UnknownSiteError) Error() string {
	const shown = 10
	known := e.Known
	more := ""
	if len(known) > shown {
		more = fmt.Sprintf(" and %d more", len(known)-shown)
		known = known[:shown]
	}
	list := ""
	for i, id := range known {
		if i > 0 {
			list += ", "
		}
		list += id
	}
	return fmt.Sprintf("no site has the id %q; the configuration has %s%s", e.ID, list, more)
}

// once keeps what load gave when it worked, and tries again when it did not.
func once(load func(context.Context) (aws.Config, error)) func(context.Context) (aws.Config, error) {
	var (
		mu   sync.Mutex
		have *aws.Config
	)
	return func(ctx context.Context) (aws.Config, error) {
		mu.Lock()
		defer mu.Unlock()
		if have != nil {
			return *have, nil
		}
		c, err := load(ctx)
		if err != nil {
			return aws.Config{}, err
		}
		have = &c
		return c, nil
	}
}

// defaultControls are the endpoints that the watchdog needs anyway.
func defaultControls(getenv func(string) string) []string {
	list := []string{"https://sts.amazonaws.com/", "https://cloudfront.amazonaws.com/"}
	for i, name := range []string{"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_CLOUDFRONT"} {
		if u := getenv(name); u != "" {
			list[i] = u
		} else if u := getenv("AWS_ENDPOINT_URL"); u != "" {
			list[i] = u
		}
	}
	return list
}
