package origin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"karui/proxy/origin/retry"
)

// PlacesOptions are what Places are made from.
type PlacesOptions struct {
	// Site is the site's id, for logs and Switches.
	Site   string
	Config Config
	Retry  RetryConfig
	Places []PlaceConfig
	// Strip names headers that are never sent.
	Strip []string
	// Switches may be nil for none.
	Switches *Switches
	// Log gets a line when a place is left or used again; nil for none.
	Log *slog.Logger
	// Now gives Head.Start; nil means time.Now. Limits are kept by timers.
	Now func() time.Time
	// AWS is for s3:// urls; nil means the environment's.
	AWS *AWS
	// Dial makes connections to the configured addresses; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Places fetch from all places of a site. New requests are shared by weight; one
// that failed before its first byte has at most one second try, as package retry
// decides. It is safe for use by many goroutines.
//
// A sole address is never left and never tried twice: it is asked as a Client
// would ask it.
type Places struct {
	site     string
	conf     Config
	retry    RetryConfig
	switches *Switches
	log      *slog.Logger
	places   []*place
	sole     bool
	random   func() float64 // uniform in [0, 1)
	began    time.Time      // of the clock of windows

	mu     sync.Mutex // guards the fields below, and every place's health
	cutOff retry.CutOff
	cut    bool
	closed bool
	beats  bool // a heartbeat runs

	ctx    context.Context // of heartbeats
	cancel context.CancelFunc
	wait   sync.WaitGroup
	second [3]atomic.Int64 // second tries by retry.Next
}

// place is one of Places.
type place struct {
	name    string
	weight  float64
	clients []*Client
	health  *retry.Health
	sick    bool          // what was logged last
	turn    atomic.Uint32 // addresses share by turns
	active  atomic.Int64
	fates   [retry.Void + 1]atomic.Int64
	failure atomic.Pointer[string] // why the last try that failed did
}

// maxActive bounds the requests to one place that are under way, answers that are
// being read included. One that hangs holds about 40 KiB, so a place that hangs
// entirely costs 240 MiB at most; what comes beyond is a 503, by which the edge
// asks the true origin at once.
const maxActive = 6000

// NewPlaces checks the places; it dials nobody.
func NewPlaces(o PlacesOptions) (*Places, error) {
	if len(o.Places) == 0 {
		return nil, errors.New("the site has no origins: name at least one")
	}
	p := &Places{
		site: o.Site, conf: o.Config, retry: o.Retry, switches: o.Switches, log: o.Log,
		random: rand.Float64, began: time.Now(),
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	addresses := 0
	for _, conf := range o.Places {
		pl := &place{name: conf.Name, weight: conf.Weight, health: retry.NewHealth(len(conf.URLs), o.Retry.Level)}
		if pl.weight <= 0 {
			pl.weight = 1
		}
		if len(conf.URLs) == 0 {
			return nil, fmt.Errorf("origin %q has no urls: name at least one", conf.Name)
		}
		for _, url := range conf.URLs {
			one := conf
			one.URLs = []string{url}
			c, err := New(Options{Config: o.Config, Place: one, Strip: o.Strip, Now: o.Now, AWS: o.AWS, Dial: o.Dial})
			if err != nil {
				return nil, err
			}
			pl.clients = append(pl.clients, c)
			addresses++
		}
		p.places = append(p.places, pl)
	}
	p.sole = addresses == 1
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Close ends heartbeats and closes the connections that are kept. Requests under
// way finish, and their connections are closed after them.
func (p *Places) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.wait.Wait()
	for _, pl := range p.places {
		for _, c := range pl.clients {
			c.Close()
		}
	}
}

// Do asks one place, and after a failure at most one more address, as retry.level
// allows. It returns as soon as the head of an answer is there, or with the first
// byte of its body where that may still lead to a second try. Any status is an
// answer; an error is always an *Error.
//
// origin.deadline covers all tries up to the first byte of a body, origin.total
// all of the fetch.
func (p *Places) Do(ctx context.Context, r Request) (*Response, error) {
	began := time.Now()
	whole := allowance{first: p.conf.Deadline, late: errDeadline, total: p.conf.Total}
	at := p.first()
	follow, again := p.mayFollow(at)
	if !repeatable(r) || !follow {
		// A lost connection to the only address there is may be made again.
		if again {
			whole.replays = 1
		}
		resp, _, err := p.try(ctx, at, r, whole, false)
		return resp, err
	}
	share := whole
	share.first, share.late = whole.first/2, errShare
	resp, fate, err := p.try(ctx, at, r, share, true)
	to, next := p.after(at, fate)
	if next == retry.Stop {
		return resp, err
	}
	if resp != nil {
		_ = resp.Body.Close() // its status was all that mattered
	}
	p.second[next-retry.Stop].Add(1)
	spent := time.Since(began)
	whole.first, whole.total = whole.first-spent, whole.total-spent
	status, failed := 0, err
	if resp != nil {
		status = resp.Status
	}
	resp, _, err = p.try(ctx, to, r, whole, false)
	if err != nil {
		err = afterAnother(err, p.places[at.place].name, failed, status)
	} else {
		resp.Tries = 2
	}
	return resp, err
}

// repeatable tells whether a request may be sent twice.
func repeatable(r Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Body == nil
}

// try asks one address. With peek it waits for the first byte of a body.
func (p *Places) try(ctx context.Context, at spot, r Request, a allowance, peek bool) (*Response, retry.Fate, error) {
	pl := p.places[at.place]
	if n := pl.active.Add(1); n > maxActive {
		pl.active.Add(-1)
		closeBody(r.Body)
		detail := fmt.Sprintf("%d requests to this place are under way, and no more are sent: it does not answer, or there are more misses than it bears", maxActive)
		return nil, retry.Overloaded, &Error{Kind: KindBusy, Place: pl.name, Detail: detail}
	}
	resp, err := pl.clients[at.address].do(ctx, r, a)
	if err != nil {
		pl.active.Add(-1)
		fate := fateOf(ctx, err)
		p.failed(at, fate, why(err))
		p.record(at, fate)
		return nil, fate, err
	}
	b := &watched{inner: resp.Body, ctx: ctx, places: p, at: at}
	resp.Body = b
	fate := retry.Answered
	if resp.Status == http.StatusTooManyRequests || resp.Status == http.StatusServiceUnavailable {
		fate = retry.Overloaded
		p.failed(at, fate, whyStatus(resp.Status))
	}
	if fate == retry.Overloaded || resp.Length == 0 || r.Method == http.MethodHead {
		b.tell(fate)
		return resp, fate, nil
	}
	if !peek {
		return resp, fate, nil
	}
	if err := b.peek(); err != nil {
		_ = b.Close() // the first error says more
		return nil, fateOf(ctx, err), err
	}
	return resp, fate, nil
}

// fateOf reads an error for the decision. ctx is the caller's own.
func fateOf(ctx context.Context, err error) retry.Fate {
	if ctx.Err() != nil {
		return retry.Void
	}
	switch KindOf(err) {
	case KindDNS, KindConnect, KindTLS, KindReset, KindProtocol, KindSetup:
		return retry.Unavailable
	case KindTimeout:
		return retry.TimedOut
	case KindBusy:
		return retry.Overloaded
	case KindAccess:
		return retry.Answered // it lives, and says no
	}
	return retry.Void
}
