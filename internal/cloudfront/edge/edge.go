package edge

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"karui/internal/cloudfront"
)

// Options are the settings that an Edge starts with. Only Control is needed.
type Options struct {
	// Control holds the distributions.
	Control *cloudfront.Double

	// Now is the clock for ages and lifetimes. Give the same one to Control.
	// Default: time.Now. Timeouts run on the machine's own clock.
	Now func() time.Time

	// Distribution serves requests whose Host belongs to none. Default: they are
	// answered with 403, as by CloudFront.
	Distribution string

	// Dial connects to an origin, given its domain and port. Default: the
	// network as it is.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// RootCAs are trusted for https origins. Default: the machine's.
	RootCAs *x509.CertPool

	// Memory is how many bytes cached answers and those on their way may take
	// together. Default 256 MiB.
	Memory int64

	// MaxObject is the largest body that is cached or shared. Larger ones stream
	// through. Default: a quarter of Memory.
	MaxObject int64

	// MaxConns bounds the viewers' connections; further ones wait. Default 4096.
	MaxConns int

	// ViewerTimeout is how long a viewer may take nothing of an answer. Default 30 s.
	ViewerTimeout time.Duration

	// FunctionTime bounds one run of a function. Default 250 ms, far above what
	// CloudFront allows, since test machines are busy.
	FunctionTime time.Duration

	// Observer is told of every request when its answer has ended. It is called
	// from many goroutines and must not block.
	Observer func(Event)
}

// Edge is a data plane. It is an http.Handler; Start gives it an address.
type Edge struct {
	control      *cloudfront.Double
	now          func() time.Time
	distribution string
	maxObject    int64
	maxConns     int
	viewerWait   time.Duration
	observer     func(Event)
	transports   *transports
	functions    *functions
	store        *store
	counters     counters

	ctx    context.Context // of everything that outlives a request
	cancel context.CancelFunc
	wg     sync.WaitGroup

	// purgeMu keeps invalidations in order; it is taken before mu and store.mu.
	purgeMu sync.Mutex
	seen    map[string]int // invalidations known, by distribution
	pending map[string][]cloudfront.Invalidation

	mu      sync.Mutex
	flights map[string]*flight
	closed  bool
}

// New makes an Edge. Close ends what it began.
func New(o Options) (*Edge, error) {
	if o.Control == nil {
		return nil, errors.New("edge: Options.Control is missing")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Memory <= 0 {
		o.Memory = 256 << 20
	}
	if o.MaxObject <= 0 || o.MaxObject > o.Memory {
		o.MaxObject = o.Memory / 4
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 4096
	}
	if o.ViewerTimeout <= 0 {
		o.ViewerTimeout = 30 * time.Second
	}
	if o.FunctionTime <= 0 {
		o.FunctionTime = 250 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Edge{
		control: o.Control, now: o.Now, distribution: o.Distribution, maxObject: o.MaxObject,
		maxConns: o.MaxConns, viewerWait: o.ViewerTimeout, observer: o.Observer,
		transports: &transports{dial: o.Dial, roots: o.RootCAs, byID: make(map[string]*pool)},
		functions:  newFunctions(o.FunctionTime),
		store:      newStore(o.Memory),
		counters:   newCounters(),
		ctx:        ctx, cancel: cancel,
		seen: make(map[string]int), pending: make(map[string][]cloudfront.Invalidation),
		flights: make(map[string]*flight),
	}, nil
}

// Close cuts what is on its way from origins, waits for it and for the answers
// to viewers. Close servers first: without connections nobody holds answers up.
func (e *Edge) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel()
	e.wg.Wait()
	e.transports.close()
}

// Cached is how many answers are kept, and the bytes that they and those on
// their way take.
func (e *Edge) Cached() (objects int, bytes int64) { return e.store.len(), e.store.used.Load() }

// Server is an Edge that listens. Whoever starts it closes it.
type Server struct {
	// URL is where viewers reach it.
	URL string

	http   *http.Server
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Start listens on addr ("127.0.0.1:0" for any free port) and serves until Close.
func (e *Edge) Start(addr string) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for the edge: %w", addr, err)
	}
	return e.Serve(listener), nil
}

// Serve serves on a listener of the caller's making, which Close closes.
func (e *Edge) Serve(listener net.Listener) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		URL: "http://" + listener.Addr().String(),
		http: &http.Server{
			Handler:           e,
			BaseContext:       func(net.Listener) context.Context { return ctx },
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       30 * time.Second,
			MaxHeaderBytes:    64 << 10, // above CloudFront's limit, which the handler answers
		},
		cancel: cancel,
		done:   make(chan struct{}),
	}
	limited := netutil.LimitListener(listener, e.maxConns)
	go func() {
		defer close(s.done)
		if err := s.http.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			s.err = fmt.Errorf("serve the edge: %w", err)
		}
	}()
	return s
}

// Close lets answers under way finish until ctx ends, cuts the rest, and returns
// when the serving goroutine is gone.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	s.cancel()
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.done
	return errors.Join(err, s.err)
}
