package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// hitBytes is the size of cached answers.
const hitBytes = 50_000

// hitTime is how long each load lasts.
const hitTime = 3 * time.Second

// cachedTable measures what a cached answer costs, next to nginx.
func cachedTable(ctx context.Context, b *bench) error {
	wrk, err := exec.LookPath("wrk")
	if err != nil {
		b.say("no cached answers: wrk is not installed")
		return nil
	}
	rivals, err := startCaches(ctx, b)
	defer func() {
		for _, r := range rivals {
			r.stop()
		}
	}()
	if err != nil {
		return err
	}
	path, body, err := hitPath(ctx, b, rivals[0].server)
	if err != nil {
		return err
	}
	bare, err := startBare(ctx, b, body)
	if err != nil {
		return err
	}
	rivals = slices.Insert(rivals, 0, rival{server: bare})
	for i := range rivals {
		if err := rivals[i].warm(ctx, b, path); err != nil {
			return fmt.Errorf("%s: %w", rivals[i].name, err)
		}
	}
	for round := -1; round < b.rounds; round++ {
		b.say("cached answers, round %d of %d", round+1, b.rounds)
		for turn := range rivals {
			r := &rivals[(turn+max(round, 0))%len(rivals)]
			got, used, err := r.load(ctx, wrk, b.origin.url, path)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if round >= 0 {
				r.cpu = append(r.cpu, float64(used)/float64(time.Microsecond)/float64(got.requests))
				r.p99 = append(r.p99, milliseconds(got.p99))
				r.rate = append(r.rate, got.rate)
			}
		}
	}
	base := rivals[len(rivals)-1].cpu // nginx, or karui itself without one
	t := newTable(fmt.Sprintf("Cached answer of %d bytes, wrk -t2 -c64, %d rounds of %s", len(body), b.rounds, hitTime),
		"who", "CPU-us a request", "this / "+rivals[len(rivals)-1].name, "p99 ms", "requests a second")
	for _, r := range rivals {
		t.row(r.name, spread(r.cpu, "%.1f"), spread(ratios(r.cpu, base), "%.2f"), spread(r.p99, "%.1f"), fmt.Sprintf("%.0f", median(r.rate)))
	}
	t.print(b)
	return nil
}

// rival is one server that has the answer in its cache.
type rival struct {
	*server
	tier           string // where karui must find it
	cpu, p99, rate []float64
}

func startCaches(ctx context.Context, b *bench) ([]rival, error) {
	var all []rival
	for _, k := range []struct {
		name, tier string
		o          karuiOptions
	}{
		{"karui, from memory", "memory", karuiOptions{memory: "256MiB", wait: "30s"}},
		{"karui, from memory, access log", "memory", karuiOptions{memory: "256MiB", wait: "30s", access: true}},
		{"karui, from disk", "disk", karuiOptions{memory: "0B", wait: "30s"}},
	} {
		s, err := startKarui(ctx, b, k.name, k.o)
		if err != nil {
			return all, err
		}
		all = append(all, rival{server: s, tier: k.tier})
	}
	for _, n := range []struct {
		name   string
		access bool
	}{{"nginx proxy_cache, access log", true}, {"nginx proxy_cache", false}} {
		s, err := startNginx(ctx, b, n.name, n.access)
		if errors.Is(err, errNoPeer) {
			b.say("nginx is not installed: nothing to compare with")
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, rival{server: s})
	}
	return all, nil
}

// hitPath finds a photograph whose variant has about hitBytes, and lets the origin give the same bytes to those that
// convert nothing.
func hitPath(ctx context.Context, b *bench, karui *server) (path string, body []byte, err error) {
	client := newClient(1)
	defer client.CloseIdleConnections()
	var best []byte
	for i := range b.album["S"] {
		p := fmt.Sprintf("/S/%d/%d.jpg", i, b.origin.next.Add(1))
		body, err := getWebP(ctx, client, karui.url+p)
		if err != nil {
			return "", nil, err
		}
		if best == nil || abs(len(body)-hitBytes) < abs(len(best)-hitBytes) {
			best, path = body, p
		}
	}
	b.origin.put("/made"+path, func(w http.ResponseWriter, _ *http.Request) { sendImage(w, "image/webp", best) })
	return path, best, nil
}

// pathFor is the path of the answer at this server.
func (r *rival) pathFor(path string) string {
	if r.admin == "" {
		return "/made" + path
	}
	return path
}

// warm brings the answer into the cache, and asks until it comes from the tier that is measured.
func (r *rival) warm(ctx context.Context, b *bench, path string) error {
	client := newClient(1)
	defer client.CloseIdleConnections()
	for range 50 {
		if _, err := getWebP(ctx, client, r.at(b.origin.url, r.pathFor(path))); err != nil {
			return err
		}
		if r.admin == "" {
			return nil
		}
		labels := fmt.Sprintf("tier=%q", r.tier)
		n, err := r.metric(ctx, "karui_cache_gets_total", labels)
		if err != nil {
			return err
		}
		if n > 3 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("nothing is answered from %s", r.tier)
}

func (r *rival) load(ctx context.Context, wrk, originURL, path string) (wrkResult, time.Duration, error) {
	before, err := r.server.cpu()
	if err != nil {
		return wrkResult{}, 0, err
	}
	out, err := exec.CommandContext(ctx, wrk, "-t2", "-c64", fmt.Sprintf("-d%ds", hitTime/time.Second), "--latency",
		"-H", "Accept: "+takesWebP, r.at(originURL, r.pathFor(path))).CombinedOutput()
	if err != nil {
		return wrkResult{}, 0, fmt.Errorf("wrk: %w: %s", err, out)
	}
	after, err := r.server.cpu()
	if err != nil {
		return wrkResult{}, 0, err
	}
	got, err := parseWrk(string(out))
	return got, after - before, err
}

type wrkResult struct {
	requests int64
	rate     float64
	p99      time.Duration
}

var (
	wrkRequests = regexp.MustCompile(`(?m)^\s*(\d+) requests in `)
	wrkRate     = regexp.MustCompile(`(?m)^Requests/sec:\s*([\d.]+)`)
	wrkP99      = regexp.MustCompile(`(?m)^\s*99%\s+(\S+)\s*$`)
	wrkBad      = regexp.MustCompile(`(?m)^\s*(Non-2xx|Socket errors).*$`)
)

// parseWrk reads what wrk prints. Any failed request makes the whole run worthless.
func parseWrk(out string) (wrkResult, error) {
	if bad := wrkBad.FindString(out); bad != "" {
		return wrkResult{}, fmt.Errorf("wrk: %s", bad)
	}
	var r wrkResult
	requests, rate, p99 := wrkRequests.FindStringSubmatch(out), wrkRate.FindStringSubmatch(out), wrkP99.FindStringSubmatch(out)
	if requests == nil || rate == nil || p99 == nil {
		return r, fmt.Errorf("wrk: cannot read %q", out)
	}
	var err1, err2, err3 error
	r.requests, err1 = strconv.ParseInt(requests[1], 10, 64)
	r.rate, err2 = strconv.ParseFloat(rate[1], 64)
	r.p99, err3 = time.ParseDuration(p99[1])
	if err := errors.Join(err1, err2, err3); err != nil || r.requests == 0 {
		return r, fmt.Errorf("wrk: cannot read %q: %w", out, err)
	}
	return r, nil
}

// drain reads an answer to its end and tells how many bytes came.
func drain(answer *http.Response) (int64, error) {
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if err != nil {
		return n, fmt.Errorf("read answer: %w", err)
	}
	return n, nil
}
