package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Times of the ping. A good answer is never older than pingFresh: the pause and
// the longest conversion that counts as good fit into it three times.
const (
	pingPause = 15 * time.Second
	pingLimit = 3 * time.Second
	pingFresh = time.Minute
)

// The paths of the ping. The second one is for probes of the proxy's own host
// name and belongs to a site that has that path.
const (
	pingPath      = "/.karui/ping.jpg"
	pingShortPath = "/ping.jpg"
)

// isPing tells whether a request is a health check.
func (r *router) isPing(path string, req *http.Request) bool {
	return path == pingPath || path == pingShortPath && r.foreign(req.Header, req.Host)
}

// pinger proves over and over that conversions work.
type pinger struct {
	convert Converter
	results *prometheus.CounterVec
	log     *slog.Logger
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu       sync.Mutex
	body     []byte
	at       time.Time
	failures int
}

func startPing(c Converter, results *prometheus.CounterVec, log *slog.Logger) *pinger {
	ctx, stop := context.WithCancel(context.Background())
	g := &pinger{convert: c, results: results, log: log, stop: stop}
	g.ended.Go(func() { g.run(ctx) })
	return g
}

func (g *pinger) close() {
	g.stop()
	g.ended.Wait()
}

func (g *pinger) run(ctx context.Context) {
	for {
		g.once(ctx)
		select {
		case <-time.After(pingPause):
		case <-ctx.Done():
			return
		}
	}
}

// once converts and notes how that went.
func (g *pinger) once(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	body, err := g.attempt(limited)
	if ctx.Err() != nil {
		return
	}
	if err == nil && limited.Err() != nil {
		err = fmt.Errorf("took over %v", pingLimit)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.failures++
		g.results.WithLabelValues("failed").Inc()
		g.log.Error("the conversion behind the ping failed", "in a row", g.failures, "error", err)
		return
	}
	g.body, g.at, g.failures = body, time.Now(), 0
	g.results.WithLabelValues("good").Inc()
}

func (g *pinger) attempt(ctx context.Context) (body []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return g.convert.Ping(ctx)
}

// answer gives the last picture, unless it proves nothing any more.
func (g *pinger) answer() ([]byte, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.body == nil || g.failures >= 2 || time.Since(g.at) > pingFresh {
		return nil, false
	}
	return g.body, true
}

func (g *pinger) well() bool {
	_, ok := g.answer()
	return ok
}

// pong gives what the ping answers with, or why it answers 503.
func (p *Proxy) pong(set *settings) ([]byte, reason) {
	if p.draining() {
		return nil, becauseDrain
	}
	now := p.now()
	if since, why := p.stressed(now); !since.IsZero() && now.Sub(since) >= set.stressAfter {
		return nil, why
	}
	body, ok := p.ping.answer()
	if !ok {
		return nil, becausePing
	}
	return body, ""
}

// answerPing answers a health check.
func (x *exchange) answerPing() {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.plain(http.StatusMethodNotAllowed, http.Header{"Allow": {"GET, HEAD"}}, "the ping is for GET and HEAD\n")
		x.did = didRefuse
		return
	}
	body, why := x.p.pong(x.set)
	if why != "" {
		x.unavailable(why)
		return
	}
	h := http.Header{
		"Content-Type":   {"image/jpeg"},
		"Content-Length": {strconv.Itoa(len(body))},
	}
	x.plain(http.StatusOK, h, string(body))
	x.did = didPing
}
