package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"karui/proxy/origin"
)

// limits are those of production in a smaller measure.
var limits = origin.Config{Deadline: 2 * time.Second, Connect: time.Second, Idle: 2 * time.Second, Total: 10 * time.Second}

// handshake is how many times as dear a new TLS session is, roughly: there are so
// many fewer of its requests, sent so much more slowly, or the drill would measure
// this machine. dear measurements at a time are enough.
const (
	handshake = 4
	dear      = 2
)

// measure drills one cell.
func measure(ctx context.Context, cell Cell, o Options) (_ Cell, err error) {
	conf := o.limits
	var ca *authority
	if cell.Fault == TLSError {
		dir, terr := os.MkdirTemp("", "karui-drill-")
		if terr != nil {
			return cell, fmt.Errorf("a folder for a certificate: %w", terr)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if ca, err = newAuthority(dir); err != nil {
			return cell, err
		}
		conf.CAFile = ca.file
	}
	second := 0.0
	if o.Both {
		second = cell.Rate
	}
	servers := map[string]*place{}
	var places []origin.PlaceConfig
	for i, rate := range []float64{cell.Rate, second} {
		s, err := startPlace(cell.Fault, rate, conf.Deadline*7/10, ca)
		if err != nil {
			return cell, err
		}
		defer s.close()
		servers[s.l.Addr().String()] = s
		p := origin.DefaultPlace()
		p.Name, p.URLs = fmt.Sprintf("place%d", i+1), []string{s.url()}
		places = append(places, p)
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		return servers[address].dial(ctx, network, address)
	}
	retries := origin.DefaultRetryConfig()
	retries.Level = cell.Level
	karui, err := origin.NewPlaces(origin.PlacesOptions{Site: "drill", Config: conf, Retry: retries, Places: places, Dial: dial})
	if err != nil {
		return cell, err
	}
	defer karui.Close()
	retries.Level = 0
	edge, err := origin.NewPlaces(origin.PlacesOptions{Site: "edge", Config: conf, Retry: retries, Places: places[:1], Dial: dial})
	if err != nil {
		return cell, err
	}
	defer edge.Close()

	l := load{karui: karui, edge: edge, times: make([]time.Duration, cell.Requests)}
	every := time.Second / time.Duration(o.PerSecond)
	if cell.Fault == TLSError {
		every *= handshake
	}
	l.run(ctx, cell.Requests, every)
	return l.sum(cell), nil
}

// load is the requests of one cell, sent at their times whether earlier ones are
// answered or not.
type load struct {
	karui, edge      *origin.Places
	good, goodAtEdge atomic.Int64
	failovers        atomic.Int64
	times            []time.Duration
}

func (l *load) run(ctx context.Context, n int, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	for i := range n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		asking.Go(func() {
			start := time.Now()
			l.one(ctx, i)
			l.times[i] = time.Since(start)
		})
	}
}

// one is a viewer's request, as the edge sees it through.
func (l *load) one(ctx context.Context, i int) {
	target := fmt.Sprintf("/%d.jpg", i)
	good, begun := fetch(ctx, l.karui, target)
	if good {
		l.good.Add(1)
		l.goodAtEdge.Add(1)
		return
	}
	if begun {
		return // the viewer has half of it, and the edge nothing to ask for
	}
	l.failovers.Add(1)
	if good, _ := fetch(ctx, l.edge, target); good {
		l.goodAtEdge.Add(1)
	}
}

// fetch asks once. Begun tells that a part of a body came before it broke off.
func fetch(ctx context.Context, p *origin.Places, target string) (good, begun bool) {
	resp, err := p.Do(ctx, origin.Request{Method: http.MethodGet, Target: target})
	if err != nil {
		return false, false
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	return err == nil && resp.Status == http.StatusOK && n == bodyBytes, resp.Status == http.StatusOK && n > 0
}

func (l *load) sum(cell Cell) Cell {
	n := float64(cell.Requests)
	status := l.karui.Status()
	tries := l.failovers.Load()
	for _, p := range status.Places {
		for _, count := range p.Total {
			tries += count
		}
	}
	slices.Sort(l.times)
	cell.Good, cell.GoodAtEdge = float64(l.good.Load())/n, float64(l.goodAtEdge.Load())/n
	cell.Added = float64(tries)/n - 1
	cell.P50, cell.P99 = Millis(l.times[len(l.times)/2]), Millis(l.times[len(l.times)*99/100])
	cell.Retries = status.Retries
	return cell
}
