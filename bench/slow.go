package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// slowViewers ask for AVIF or HEIC all the time: more than there are workers for that.
	slowViewers = 6
	// webpViewers ask for WebP meanwhile, so that no worker has a rest.
	webpViewers = 4
	// slowTime is how long WebP is counted in each round.
	slowTime = 5 * time.Second
)

// slowTable measures conversions to WebP beside those of slow codecs, and what those take of the machine.
func slowTable(ctx context.Context, b *bench) error {
	karui, err := startKarui(ctx, b, "karui", karuiOptions{memory: "256MiB", wait: "30s", formats: "[avif, heic, webp]"})
	if err != nil {
		return err
	}
	defer karui.stop()
	loads := []*slowLoad{{name: "nothing"}, {name: "AVIF", accept: "image/avif"}, {name: "HEIC", accept: "image/heic"}}
	for round := range b.rounds {
		for turn := range loads {
			l := loads[(turn+round)%len(loads)]
			b.say("WebP beside %s, round %d of %d", l.name, round+1, b.rounds)
			if err := l.measure(ctx, b, karui); err != nil {
				return fmt.Errorf("beside %s: %w", l.name, err)
			}
		}
	}
	t := newTable(fmt.Sprintf("WebP of class M beside slow codecs, %d viewers each all the time, %d rounds of %s", slowViewers, b.rounds, slowTime),
		"beside", "WebP a second", "share of that alone", "slowest WebP, ms", "slow variants a second", "processors that slow workers take", "their share of the CPU time of all workers", "their threads at most")
	for _, l := range loads {
		t.row(l.name, spread(l.webp, "%.1f"), spread(ratios(l.webp, loads[0].webp), "%.2f"), spread(l.slowest, "%.0f"),
			spread(l.made, "%.2f"), spread(l.processors, "%.2f"), spread(l.share, "%.2f"), l.threads)
	}
	t.print(b)
	return nil
}

// slowLoad is what is asked for beside WebP, and what came of it in each round.
type slowLoad struct {
	name, accept                           string
	webp, slowest, made, processors, share []float64
	threads                                int
}

func (l *slowLoad) measure(ctx context.Context, b *bench, karui *server) error {
	if err := awaitNoSlowWork(ctx, karui); err != nil {
		return err
	}
	client := newClient(slowViewers + webpViewers)
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var made atomic.Int64
	if l.accept != "" {
		first := make(chan struct{})
		var once sync.Once
		for range slowViewers {
			running.Go(func() {
				for ctx.Err() == nil {
					if err := getType(ctx, client, karui.url+b.origin.fresh("M"), l.accept); err == nil {
						made.Add(1)
						once.Do(func() { close(first) })
					}
				}
			})
		}
		select {
		case <-first:
		case <-time.After(time.Minute):
			return errors.New("no such variant was made within a minute")
		}
	}
	before, slowMade, begin := workers(karui.roots, "slow"), made.Load(), time.Now()
	fastBefore := workers(karui.roots, "fast")
	n, slowest, err := b.webpFor(ctx, client, karui)
	if err != nil {
		return err
	}
	took := time.Since(begin).Seconds()
	after, fastAfter := workers(karui.roots, "slow"), workers(karui.roots, "fast")
	l.webp = append(l.webp, float64(n)/took)
	l.slowest = append(l.slowest, milliseconds(slowest))
	l.made = append(l.made, float64(made.Load()-slowMade)/took)
	slow, fast := (after.cpu - before.cpu).Seconds(), (fastAfter.cpu - fastBefore.cpu).Seconds()
	l.processors = append(l.processors, slow/took)
	l.share = append(l.share, slow/max(slow+fast, 1e-9))
	l.threads = max(l.threads, before.threads, after.threads)
	return nil
}

// awaitNoSlowWork waits until what an earlier round has left is done.
func awaitNoSlowWork(ctx context.Context, karui *server) error {
	for range 1200 {
		busy, err := karui.metric(ctx, "karui_convert_busy", `class="slow"`)
		if err != nil {
			return err
		}
		waiting, err := karui.metric(ctx, "karui_convert_waiting", `class="slow"`)
		if err != nil || busy+waiting == 0 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("slow codecs have work for more than a minute")
}

// getType asks for a variant of a type.
func getType(ctx context.Context, client *http.Client, url, accept string) error {
	r, err := request(ctx, url, accept)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	defer answer.Body.Close()
	if got := answer.Header.Get("Content-Type"); got != accept {
		return fmt.Errorf("%s: type %q where %s was due", url, got, accept)
	}
	return nil
}

// webpFor converts to WebP for slowTime, and tells how many were made and how long the slowest took.
func (b *bench) webpFor(ctx context.Context, client *http.Client, karui *server) (int64, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, slowTime)
	defer cancel()
	var (
		running sync.WaitGroup
		made    atomic.Int64
		mu      sync.Mutex
		slowest time.Duration
		failure error
	)
	for range webpViewers {
		running.Go(func() {
			for ctx.Err() == nil {
				begin := time.Now()
				_, err := getWebP(ctx, client, karui.url+b.origin.fresh("M"))
				if ctx.Err() != nil {
					return
				}
				made.Add(1)
				mu.Lock()
				slowest = max(slowest, time.Since(begin))
				if err != nil && failure == nil {
					failure = err
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return made.Load(), slowest, failure
}

// workersUse is what the workers of a class have used and are.
type workersUse struct {
	cpu     time.Duration
	threads int
}

// workers looks at the workers of a class among the descendants of a server.
func workers(roots []int, class string) workersUse {
	var use workersUse
	all, err := readStats()
	if err != nil {
		return use
	}
	for _, pid := range tree(roots, all) {
		words, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || !strings.Contains(string(words), "KARUI_WORKER_CLASS="+class+"\x00") {
			continue
		}
		use.cpu += all[pid].self
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err == nil {
			use.threads += len(threads)
		}
	}
	return use
}
