package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

const (
	// busyViewers ask for cold images, one after the other, so that no worker has a rest.
	busyViewers = 8
	// hitRate is how many hits a second are asked for, on the beat: one that is late does not delay the next.
	hitRate = 300
)

// busyTable measures hits while all workers convert.
func busyTable(ctx context.Context, b *bench) error {
	karui, err := startKarui(ctx, b, "karui", karuiOptions{memory: "256MiB", wait: "30s"})
	if err != nil {
		return err
	}
	defer karui.stop()
	path := b.origin.fresh("S")
	client := newClient(busyViewers)
	defer client.CloseIdleConnections()
	if _, err := getWebP(ctx, client, karui.url+path); err != nil {
		return err
	}
	var idle, busy load
	for round := range b.rounds {
		b.say("hits beside conversions, round %d of %d", round+1, b.rounds)
		if err := idle.attack(karui.url + path); err != nil {
			return err
		}
		stop, err := b.convertOn(ctx, client, karui)
		if err != nil {
			return err
		}
		err = busy.attack(karui.url + path)
		made, err2 := stop()
		if err != nil {
			return err
		}
		if err2 != nil {
			return err2
		}
		busy.made += made
	}
	t := newTable(fmt.Sprintf("Hits, %d a second, %d rounds of %s", hitRate, b.rounds, hitTime),
		"workers", "p50 ms", "p99 ms", "slowest ms", "conversions meanwhile")
	t.row("idle", spread(idle.p50, "%.1f"), spread(idle.p99, "%.1f"), spread(idle.most, "%.1f"), 0)
	t.row("all busy", spread(busy.p50, "%.1f"), spread(busy.p99, "%.1f"), spread(busy.most, "%.1f"), busy.made)
	t.print(b)
	return nil
}

type load struct {
	p50, p99, most []float64
	made           int
}

// attack asks for hits at a fixed rate.
func (l *load) attack(url string) error {
	target := vegeta.Target{Method: http.MethodGet, URL: url, Header: http.Header{"Accept": {takesWebP}}}
	attacker := vegeta.NewAttacker(vegeta.KeepAlive(true), vegeta.Timeout(time.Minute))
	var m vegeta.Metrics
	for r := range attacker.Attack(vegeta.NewStaticTargeter(target), vegeta.Rate{Freq: hitRate, Per: time.Second}, hitTime, "") {
		m.Add(r)
	}
	m.Close()
	if m.Success < 1 {
		return fmt.Errorf("hits: %.4f succeeded: %s", m.Success, strings.Join(m.Errors, ", "))
	}
	l.p50 = append(l.p50, milliseconds(m.Latencies.P50))
	l.p99 = append(l.p99, milliseconds(m.Latencies.P99))
	l.most = append(l.most, milliseconds(m.Latencies.Max))
	return nil
}

// convertOn keeps all workers busy until stop, which tells how many images were converted. It returns once they are.
func (b *bench) convertOn(ctx context.Context, client *http.Client, karui *server) (stop func() (int, error), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		running sync.WaitGroup
		mu      sync.Mutex
		made    int
		failure error
	)
	for range busyViewers {
		running.Go(func() {
			for ctx.Err() == nil {
				_, err := getWebP(ctx, client, karui.url+b.origin.fresh("L"))
				mu.Lock()
				if err == nil {
					made++
				} else if ctx.Err() == nil && failure == nil {
					failure = err
				}
				mu.Unlock()
			}
		})
	}
	stop = func() (int, error) {
		cancel()
		running.Wait()
		return made, failure
	}
	for range 100 {
		waiting, err := karui.metric(ctx, "karui_convert_waiting", "")
		if err != nil || waiting > 0 {
			if err != nil {
				_, _ = stop()
			}
			return stop, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	_, _ = stop()
	return nil, fmt.Errorf("the workers are not busy")
}
