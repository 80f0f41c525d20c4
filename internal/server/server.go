// Package server runs karui's proxy: it builds the parts from the configuration,
// listens, takes a changed configuration over, and ends without breaking an
// image.
//
// Guaranteed: while it drains, the public address goes on answering, so that an
// edge that asks gets a 503 and not a refused connection; answers under way have
// the configured time to end; a configuration that cannot be used changes
// nothing. Not guaranteed: that bodies longer than the drain are finished.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"karui/cache"
	"karui/convert"
	"karui/convert/header"
	"karui/internal/api"
	"karui/internal/config"
	"karui/internal/logging"
	"karui/internal/purging"
	"karui/internal/status"
	"karui/proxy"
	"karui/proxy/backlog"
	"karui/proxy/origin"
	"karui/proxy/success"
)

// Options are what Run needs.
type Options struct {
	Config Config
	// Reload gives the configuration anew, whenever Hangup says so. nil means that
	// it cannot change.
	Reload func() (Config, error)
	Hangup <-chan os.Signal
	// Log gets JSON lines, those of the access log among them.
	Log io.Writer
	// Version is what metrics name as karui's; empty for "unknown".
	Version string
	// Started is told the addresses once both listeners answer; nil for nobody.
	Started func(public, admin net.Addr)
	// ConvertOptions are for the pool of workers.
	ConvertOptions []convert.Option
	// Routes gives the API's routes of packages that the server does not know; nil
	// for none. It is called once, before anybody is answered.
	Routes func(Parts) []api.Route
}

// Parts are what routes of other packages may act on.
type Parts struct {
	Cache *cache.Cache
	Pool  *convert.Pool
	Proxy *proxy.Proxy
	// Backlog is what is to be made when the workers have time. A purge is to reach it.
	Backlog *backlog.Backlog
	// Config gives the configuration in force, and Origin the way to a site's origin
	// in force, nil for a site that is not configured. Both change with a reload.
	Config func() Config
	Origin func(site string) proxy.Fetcher
	Log    *slog.Logger
}

// shutdownTime is what connections have to take the last answers after a drain.
const shutdownTime = 2 * time.Second

// server is one run.
type server struct {
	options Options
	began   time.Time
	mu      sync.Mutex // guards config, which is written by reload alone
	config  Config
	log     *slog.Logger
	level   *slog.LevelVar
	clients clients
	keeping sync.Mutex // orders the writes of what operators set, and of the quarantine
	// quarantined is what the quarantine's file says, nil where it could not be written.
	quarantined []byte
	success     *success.Ledger
	// connections is how many viewers' there may be within the open files, 0 for as
	// many as are configured.
	connections int
	// lines are those of the access log, nil where it is written with all else.
	lines    *logging.Queue
	reloaded reloads
	cache    *cache.Cache
	pool     *convert.Pool
	proxy    *proxy.Proxy
	backlog  *backlog.Backlog
	queues   queues
	recorder *status.Recorder
	// purging runs purges, and purgePage is for people who do.
	purging   *purging.Service
	purgePage http.Handler
	registry  *prometheus.Registry
	// register is the registry, or what a test puts before it.
	register prometheus.Registerer
}

// Run serves until ctx ends, then drains and returns nil. An error means that it
// could not start, or that a listener failed.
func Run(ctx context.Context, o Options) error {
	s := &server{options: o, began: time.Now(), config: o.Config, level: &slog.LevelVar{}, registry: prometheus.NewRegistry(), quarantined: []byte{}}
	s.register = s.registry
	s.level.Set(s.config.Log.SlogLevel())
	sink := logging.Shared(o.Log)
	s.log = logging.New(sink, s.level)
	s.reloaded.note(s.began, nil)
	s.fitFiles()

	public, err := listen(ctx, "listen", s.config.Listen)
	if err != nil {
		return err
	}
	private, err := listen(ctx, "admin.listen", s.config.Admin.Listen)
	if err != nil {
		return errors.Join(err, public.Close())
	}
	// Nobody who is answered waits for whoever takes the log.
	s.lines = logging.NewQueue(sink, logging.QueueSize)
	defer s.endAccessLog()
	if err := s.build(); err != nil {
		return errors.Join(err, public.Close(), private.Close())
	}
	defer s.teardown()
	return s.serve(ctx, public, private)
}

func listen(ctx context.Context, key, address string) (net.Listener, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s (%s): %w%s", address, key, err, remedy(err, address))
	}
	return l, nil
}

// remedy says what to do about an address that cannot be listened on.
func remedy(err error, address string) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		_, port, _ := net.SplitHostPort(address) // it was listened on
		return fmt.Sprintf(": another program has it, perhaps another karui; end that one (`ss -ltnp 'sport = :%s'` shows it) or choose another address", port)
	case errors.Is(err, syscall.EACCES):
		return ": ports below 1024 need the capability CAP_NET_BIND_SERVICE; give it, or choose another port"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return ": this machine does not have the address; leave the host out to listen on all it has"
	}
	return ""
}

// build makes the parts.
func (s *server) build() (err error) {
	defer func() {
		if err != nil {
			s.teardown()
		}
	}()
	s.clients.switches, s.clients.log = origin.NewSwitches(nil), s.log
	settings, _, err := s.clients.build(s.fitting(s.config))
	if err != nil {
		return err
	}
	if s.cache, err = cache.Open(s.config.Cache, s.config.Disk, cache.Options{Log: s.log}); err != nil {
		return fmt.Errorf("open cache: %w", err)
	}
	s.restoreSuccess()
	if s.pool, err = convert.New(s.config.Convert, append([]convert.Option{convert.WithLogger(s.log)}, s.options.ConvertOptions...)...); err != nil {
		return fmt.Errorf("start workers: %w", err)
	}
	s.register.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.openBacklog()
	s.queues = queues{stats: s.pool.Stats, now: time.Now}
	s.proxy = proxy.New(proxy.Options{
		Queues: s.queues.look, Postponed: s.backlog.Ask, Purged: s.backlog.Purge,
		Settings: settings, Cache: s.cache, Convert: s.pool, Log: s.log, Access: s.accessLog(), Registry: s.register,
		SpoolDir: s.spoolDir(), Tally: s.success, Load: s.load, Volumes: s.volumes,
	})
	s.restoreSwitches()
	s.restoreQuarantine()
	s.recorder = s.newRecorder()
	if err := s.startPurging(); err != nil {
		return err
	}
	s.register.MustRegister(collector{cache: s.cache.Stats, pool: s.pool.Stats, flights: s.proxy.Flights, places: s.clients.status, success: s.success.Snapshot, self: s.self, backlog: s.backlogNow, edge: s.purging.Stats})
	return nil
}

// spoolDir gives the folder for bodies under way that memory has no room for. It
// lies on the first of the cache's disks that works, since the system's folder for temporary files is often
// memory itself. The cache's lock is held, so what lies there is a dead process's.
func (s *server) spoolDir() string {
	var failures []error
	for _, v := range s.config.Cache.Volumes {
		dir := filepath.Join(v.Path, "spool")
		err := os.RemoveAll(dir)
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		if err == nil {
			return dir
		}
		failures = append(failures, err)
	}
	s.log.Warn("bodies that memory has no room for go to the system's folder for temporary files", "error", errors.Join(failures...))
	return ""
}

// teardown ends the parts, each before those that it uses.
func (s *server) teardown() {
	if s.purging != nil {
		s.purging.Close()
	}
	if s.proxy != nil {
		s.proxy.Close()
	}
	if s.pool != nil {
		s.pool.Close()
	}
	if s.backlog != nil {
		s.backlog.Close()
	}
	if s.cache != nil {
		if err := s.cache.Close(); err != nil {
			s.log.Error("cache could not be closed well", "error", err)
		}
	}
	s.clients.close()
}

// serve answers on both listeners until ctx ends, and drains.
func (s *server) serve(ctx context.Context, public, private net.Listener) error {
	calls := s.api()
	people, err := s.statusPage(calls)
	if err != nil {
		return errors.Join(err, public.Close(), private.Close())
	}
	limits := s.fitting(s.config).Limits
	front := &http.Server{
		Handler:           s.proxy,
		ReadHeaderTimeout: limits.HeaderTimeout,
		IdleTimeout:       limits.IdleTimeout,
		MaxHeaderBytes:    int(limits.HeaderBytes),
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if corker, ok := c.(proxy.Corker); ok {
				return proxy.WithCorker(ctx, corker)
			}
			return ctx
		},
	}
	back := &http.Server{
		Handler:           operators(s.config.Admin, s.proxy.Well, s.registry, calls, people, s.purgePage),
		ReadHeaderTimeout: min(limits.HeaderTimeout, operatorsTime),
		ReadTimeout:       operatorsTime,
		WriteTimeout:      limits.IdleTimeout,
		IdleTimeout:       limits.IdleTimeout,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 2)
	var serving sync.WaitGroup
	run := func(server *http.Server, l net.Listener) {
		serving.Go(func() {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve on %s: %w", l.Addr(), err)
			}
		})
	}
	run(front, newTelling(newListener(public, limits.Connections, limits.IdleTimeout), s.log))
	run(back, newGate(newTelling(private, s.log), s.log))
	defer serving.Wait()
	// It goes on through the drain, which is counted as well.
	counting, counted := context.WithCancel(context.WithoutCancel(ctx))
	defer counted()
	serving.Go(func() { s.keepSuccess(counting) })
	serving.Go(func() { s.keepQuarantine(counting) })
	serving.Go(func() { s.backlog.Keep(counting) })
	working, worked := context.WithCancel(ctx) // it ends as the drain begins
	defer worked()
	serving.Go(func() { s.backlog.Work(working, s.proxy.Postponed()) })
	serving.Go(func() { s.recorder.Run(counting) })
	defer func() { _, _ = front.Close(), back.Close() }() // whatever is left now has had its time

	s.announce(public.Addr(), private.Addr())
	sites := s.config.Sites // a reload replaces them
	serving.Go(func() { s.checkEncoders(ctx, sites) })
	if s.options.Started != nil {
		s.options.Started(public.Addr(), private.Addr())
	}
	for {
		select {
		case err := <-failed:
			return err
		case <-s.options.Hangup:
			s.reload()
		case <-ctx.Done():
			s.drain(front)
			return nil
		}
	}
}

// announce logs what an operator wants to see at a start.
func (s *server) announce(public, private net.Addr) {
	if len(s.config.Edge.Secrets) == 0 {
		s.log.Warn("edge.secrets is empty: whoever reaches the public address can ask, not only the edge")
	}
	for _, remark := range s.config.Remarks() {
		s.log.Warn(remark)
	}
	ids := make([]string, len(s.config.Sites))
	for i, site := range s.config.Sites {
		ids[i] = site.ID
	}
	s.log.Info("karui serves", "public", public.String(), "admin", private.String(), "sites", ids, "pid", os.Getpid())
}

// checkEncoders warns of formats that sites list and this machine cannot write:
// their viewers get the next format, or the original.
func (s *server) checkEncoders(ctx context.Context, sites []proxy.SiteConfig) {
	var formats []header.Format
	for _, site := range sites {
		for _, name := range site.Formats {
			if f, ok := header.ParseFormat(name); ok && !slices.Contains(formats, f) {
				formats = append(formats, f)
			}
		}
	}
	err := s.pool.CheckEncoders(ctx, formats)
	if err == nil || ctx.Err() != nil {
		return
	}
	s.log.Warn("a format of sites cannot be made on this machine, and its viewers get the next one", "error", err)
}

// drain lets answers under way end, while new requests are sent to the true origin.
func (s *server) drain(front *http.Server) {
	s.log.Info("draining", "for at most", s.config.Drain.String())
	began := time.Now()
	limited, cancel := context.WithTimeout(context.Background(), s.config.Drain)
	defer cancel()
	if err := s.proxy.Drain(limited); err != nil {
		s.log.Warn("drain is over, what is still under way is cut off", "after", time.Since(began).String())
	}
	// The last answers have been handed over; their viewers may still be taking them.
	last, stop := context.WithTimeout(context.Background(), shutdownTime)
	defer stop()
	if err := front.Shutdown(last); err != nil {
		s.log.Debug("some connections did not end by themselves", "error", err)
	}
	if err := s.cache.Flush(limited); err != nil {
		s.log.Warn("drain is over before everything is in the cache", "error", err)
	}
	s.log.Info("drained", "took", time.Since(began).String())
}

// lasting are the keys that only a restart can change.
var lasting = []string{
	"listen", "admin", "cache", "convert", "cluster", "disk",
	"limits.header_bytes", "limits.header_timeout", "limits.idle_timeout", "limits.connections", "limits.inflight_bytes",
}

// reload takes a changed configuration over as far as that is possible while
// running; one that cannot be used changes nothing.
func (s *server) reload() {
	if s.options.Reload == nil {
		return
	}
	next, err := s.options.Reload()
	if err != nil {
		s.reloaded.note(time.Now(), err)
		s.log.Error("the configuration cannot be used and stays as it was", "error", err)
		return
	}
	for _, key := range config.Under(config.Diff(s.config, next), lasting...) {
		s.log.Warn("changed, but takes effect only with a restart", "key", key)
	}
	next.Listen, next.Admin, next.Cache, next.Convert = s.config.Listen, s.config.Admin, s.config.Cache, s.config.Convert
	next.Cluster, next.Disk, next.Limits = s.config.Cluster, s.config.Disk, s.config.Limits
	settings, closeOld, err := s.clients.build(s.fitting(next))
	s.reloaded.note(time.Now(), err)
	if err != nil {
		s.log.Error("the configuration cannot be used and stays as it was", "error", err)
		return
	}
	s.proxy.Reload(settings)
	closeOld()
	s.mu.Lock()
	s.config = next
	s.mu.Unlock()
	s.level.Set(next.Log.SlogLevel())
	s.log.Info("configuration reloaded")
}
