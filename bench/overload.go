package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"karui/internal/cloudfront/edge"
)

const (
	// overloadTime is how long too much is asked for, and calmTime how long the dial has to come back.
	overloadTime = time.Minute
	calmTime     = 150 * time.Second
	// overloadFactor is what is offered against what conversions can carry.
	overloadFactor = 3
	// capacityTime is how long a rate of conversions is measured.
	capacityTime = 10 * time.Second
	// overloadHits is how many hits a second are asked for meanwhile.
	overloadHits = 100
)

// capacity measures how many conversions a second karui carries, with its viewers waiting for them, and what they make.
func (b *bench) capacity(ctx context.Context, karui *server, class string) (perSecond float64, cpu time.Duration, bytesEach float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := newClient(busyViewers)
	defer client.CloseIdleConnections()
	before, err := karui.cpu()
	if err != nil {
		return 0, 0, 0, err
	}
	began := time.Now()
	var (
		running sync.WaitGroup
		mu      sync.Mutex
		n, size int
		failure error
	)
	for range busyViewers {
		running.Go(func() {
			for time.Since(began) < capacityTime {
				body, err := getWebP(ctx, client, karui.url+b.origin.fresh(class))
				mu.Lock()
				if n, size = n+1, size+len(body); err != nil && failure == nil {
					failure = err
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	took := time.Since(began)
	after, err := karui.cpu()
	if err == nil {
		err = failure
	}
	if err != nil {
		return 0, 0, 0, err
	}
	return float64(n) / took.Seconds(), (after - before) / time.Duration(n), float64(size) / float64(n), nil
}

// overloadTable offers three times what conversions can carry.
func overloadTable(ctx context.Context, b *bench) error {
	patient, err := startKarui(ctx, b, "karui", karuiOptions{memory: "256MiB", wait: "30s"})
	if err != nil {
		return err
	}
	carries, _, _, err := b.capacity(ctx, patient, "M")
	patient.stop()
	if err != nil {
		return err
	}
	karui, err := startKarui(ctx, b, "karui", karuiOptions{memory: "256MiB", wait: "300ms", steered: true})
	if err != nil {
		return err
	}
	defer karui.stop()
	client := newClient(1000)
	defer client.CloseIdleConnections()
	warm := karui.url + b.origin.fresh("S")
	if err := await(ctx, client, warm); err != nil {
		return err
	}
	b.say("%.0f new photographs a second for %s, conversions can carry %.0f", overloadFactor*carries, overloadTime, carries)
	cold, hits := newSeen(), newSeen()
	limited, cancel := context.WithTimeout(ctx, overloadTime)
	defer cancel()
	var streams sync.WaitGroup
	streams.Go(func() {
		cold.stream(limited, client, overloadFactor*carries, "", func() string { return karui.url + b.origin.fresh("M") })
	})
	streams.Go(func() { hits.stream(limited, client, overloadHits, "", func() string { return warm }) })
	var levels []string
	top := 0.0
	for limited.Err() == nil {
		level, err := karui.metric(ctx, "karui_dial_level", `site=""`)
		if err != nil {
			cancel()
			streams.Wait()
			return err
		}
		if text := fmt.Sprintf("%.0f", level); len(levels) == 0 || levels[len(levels)-1] != text {
			levels = append(levels, text)
		}
		top = max(top, level)
		sleep(limited, time.Second)
	}
	streams.Wait()
	over := time.Now()
	back := "not within " + calmTime.String()
	for time.Since(over) < calmTime {
		level, err := karui.metric(ctx, "karui_dial_level", `site=""`)
		if err != nil {
			return err
		}
		if level == 0 {
			back = time.Since(over).Round(time.Second).String()
			break
		}
		sleep(ctx, time.Second)
	}
	t := newTable(fmt.Sprintf("%d x what conversions can carry (%.1f/s, class M), %s", overloadFactor, carries, overloadTime),
		"", "requests", "of them 200", "p50 ms", "p99 ms", "WebP")
	t.row("new photographs", cold.total(), cold.count(http.StatusOK), fmt.Sprintf("%.1f", cold.quantile(.5)), fmt.Sprintf("%.1f", cold.quantile(.99)), cold.variants)
	t.row("hits", hits.total(), hits.count(http.StatusOK), fmt.Sprintf("%.1f", hits.quantile(.5)), fmt.Sprintf("%.1f", hits.quantile(.99)), hits.variants)
	t.print(b)
	d := newTable("The dial", "levels on the way", "highest", "back at 0 after")
	d.row(strings.Join(levels, " "), top, back)
	d.print(b)
	return nil
}

// await asks until the variant is there.
func await(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		_, err := getWebP(ctx, client, url)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("no variant of %s: %w", url, err)
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// setDial sets the level.
func (s *server) setDial(ctx context.Context, level string) error {
	body := bytes.NewReader([]byte(`{"level": "` + level + `"}`))
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, s.admin+"/api/v1/dial", body)
	if err != nil {
		return fmt.Errorf("set the dial: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	client := newClient(1)
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("set the dial: %w", err)
	}
	defer answer.Body.Close()
	var words json.RawMessage
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&words); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("set the dial to %s: %s %s", level, answer.Status, words)
	}
	return nil
}

// dialTable measures what the levels are worth.
func dialTable(ctx context.Context, b *bench) error {
	karui, err := startKarui(ctx, b, "karui", karuiOptions{memory: "256MiB", wait: "30s"})
	if err != nil {
		return err
	}
	defer karui.stop()
	levels := []string{"full", "lean", "spare"}
	t := newTable(fmt.Sprintf("Levels of the dial, WebP only, %d rounds of %s; against full, round by round", b.rounds, capacityTime),
		"class", "level", "conversions/s", "CPU ms", "bytes", "CPU x", "bytes x")
	for _, class := range b.classes {
		rate, cpu, size := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
		for round := range b.rounds {
			for _, level := range levels {
				b.say("dial at %s, class %s, round %d of %d", level, class, round+1, b.rounds)
				if err := karui.setDial(ctx, level); err != nil {
					return err
				}
				perSecond, each, bytesEach, err := b.capacity(ctx, karui, class)
				if err != nil {
					return err
				}
				rate[level], cpu[level], size[level] = append(rate[level], perSecond), append(cpu[level], milliseconds(each)), append(size[level], bytesEach)
			}
		}
		for _, level := range levels {
			t.row(class, level, spread(rate[level], "%.1f"), spread(cpu[level], "%.1f"), spread(size[level], "%.0f"),
				spread(ratios(cpu[level], cpu["full"]), "%.2f"), spread(ratios(size[level], size["full"]), "%.2f"))
		}
	}
	t.print(b)
	return nil
}

// slownessTable slows the origin down, and looks at karui itself and through an edge.
func slownessTable(ctx context.Context, b *bench) error {
	const (
		slowBy  = 4 * time.Second
		rate    = 10
		goodFor = 5 * time.Second
		badFor  = 45 * time.Second
		healing = 40 * time.Second
	)
	karui, err := startKarui(ctx, b, "karui", karuiOptions{memory: "256MiB", wait: "300ms", steered: true})
	if err != nil {
		return err
	}
	defer karui.stop()
	front, err := edge.StartSample(edge.SampleOptions{
		Proxy: strings.TrimPrefix(karui.url, "http://"), Origin: strings.TrimPrefix(b.origin.url, "http://"),
	})
	if err != nil {
		return fmt.Errorf("start the edge: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = front.Close(closing) // the measurement is over
	}()
	client := newClient(1000)
	defer client.CloseIdleConnections()
	fresh := func(base string) func() string { return func() string { return base + b.origin.fresh("S") } }
	phase := func(d time.Duration) (direct, through *seen, firstWell, firstShed time.Duration) {
		direct, through = newSeen(), newSeen()
		limited, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		var streams sync.WaitGroup
		streams.Go(func() { through.stream(limited, client, rate, edge.SampleHost, fresh(front.URL)) })
		streams.Go(func() { direct.stream(limited, client, rate, "", fresh(karui.url)) })
		began := time.Now()
		probe := newSeen()
		for limited.Err() == nil {
			// One at a time, and not counted: what karui says to a new viewer.
			short, end := context.WithTimeout(limited, time.Second)
			switch status := probe.ask(short, client, fresh(karui.url)(), ""); {
			case status == http.StatusOK && firstWell == 0:
				firstWell = time.Since(began)
			case status == http.StatusServiceUnavailable && firstShed == 0:
				firstShed = time.Since(began)
			}
			end()
			sleep(limited, 100*time.Millisecond)
		}
		streams.Wait()
		return direct, through, firstWell, firstShed
	}
	t := newTable(fmt.Sprintf("Origin slowed by %s, %d + %d new photographs a second", slowBy, rate, rate),
		"phase", "first 200 after", "first 503 after", "karui: 200", "503", "of them no-store", "reasons", "edge: requests", "pictures", "p99 ms")
	show := func(name string, direct, through *seen, well, shed time.Duration) {
		t.row(name, well.Round(100*time.Millisecond), shed.Round(100*time.Millisecond), direct.count(200), direct.count(503), direct.uncached,
			fmt.Sprint(direct.reasons), through.total(), through.pictures, fmt.Sprintf("%.0f", through.quantile(.99)))
	}
	for _, p := range []struct {
		name  string
		delay time.Duration
		d     time.Duration
	}{{"well", 0, goodFor}, {"slow", slowBy, badFor}, {"well again", 0, healing}} {
		b.say("origin %s for %s", p.name, p.d)
		b.origin.delay.Store(int64(p.delay))
		direct, through, well, shed := phase(p.d)
		show(p.name, direct, through, well, shed)
	}
	t.print(b)
	return nil
}
