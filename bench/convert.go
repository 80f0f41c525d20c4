package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"karui/bench/floor"
)

// quality is what everybody converts at.
const quality = 80

// converter is one competitor: it converts n photographs of a class that it never saw, and tells the CPU time of all
// its processes and the bytes that came out.
type converter struct {
	name string
	run  func(ctx context.Context, c class, n int) (time.Duration, int64, error)
	one  func(ctx context.Context, p photo, path string) ([]byte, error)
}

// convertTable measures the CPU time of a first variant.
func convertTable(ctx context.Context, b *bench) error {
	karui, err := startKarui(ctx, b, "karui", karuiOptions{memory: "256MiB", wait: "30s"})
	if err != nil {
		return err
	}
	defer karui.stop()
	all := []converter{viaServer(b, karui), viaFloor(b, 2), viaFloor(b, 4)}
	for _, p := range b.peers {
		peer, err := findPeer(p)
		if err != nil {
			return err
		}
		all = append(all, viaServer(b, peer))
	}
	scores, err := scoreAll(ctx, b, all)
	if err != nil {
		return err
	}
	for _, c := range classes {
		if !slices.Contains(b.classes, c.name) {
			continue
		}
		if err := b.convertClass(ctx, c, all, scores); err != nil {
			return fmt.Errorf("class %s: %w", c.name, err)
		}
	}
	return nil
}

func (b *bench) convertClass(ctx context.Context, c class, all []converter, scores map[string]map[string]float64) error {
	cpu, size := make([][]float64, len(all)), make([][]float64, len(all))
	for round := -1; round < b.rounds; round++ { // the first one warms up
		b.say("conversions %s, round %d of %d", c.name, round+1, b.rounds)
		for turn := range all {
			// Who comes first changes, so that nobody has the better half of each round.
			i := (turn + max(round, 0)) % len(all)
			n := c.count
			if round < 0 {
				n = photosPerClass
			}
			used, out, err := all[i].run(ctx, c, n)
			if err != nil {
				return fmt.Errorf("%s: %w", all[i].name, err)
			}
			if round >= 0 {
				cpu[i] = append(cpu[i], milliseconds(used)/float64(n))
				size[i] = append(size[i], float64(out)/float64(n))
			}
		}
	}
	t := newTable(fmt.Sprintf("First variant, class %s: %d rounds of %d conversions", c.name, b.rounds, c.count),
		"who", "CPU-ms each", "karui's CPU / this", "bytes", "karui's bytes / this", "butteraugli 3-norm")
	for i, who := range all {
		score := "-"
		if v, ok := scores[c.name][who.name]; ok {
			score = fmt.Sprintf("%.3f", v)
		}
		t.row(who.name, spread(cpu[i], "%.1f"), spread(ratios(cpu[0], cpu[i]), "%.2f"),
			fmt.Sprintf("%.0f", median(size[i])), fmt.Sprintf("%.3f", median(ratios(size[0], size[i]))), score)
	}
	t.print(b)
	return nil
}

// concurrency is how many conversions are asked for at a time.
const concurrency = 2

func viaServer(b *bench, s *server) converter {
	client := newClient(concurrency)
	get := func(ctx context.Context, path string) ([]byte, error) {
		return getWebP(ctx, client, s.at(b.origin.url, path))
	}
	return converter{
		name: s.name,
		run: func(ctx context.Context, c class, n int) (time.Duration, int64, error) {
			before, err := s.cpu()
			if err != nil {
				return 0, 0, err
			}
			sizes := make(chan int, n)
			group, ctx := errgroup.WithContext(ctx)
			group.SetLimit(concurrency)
			for range n {
				group.Go(func() error {
					body, err := get(ctx, b.origin.fresh(c.name))
					sizes <- len(body)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				return 0, 0, err
			}
			close(sizes)
			var out int64
			for size := range sizes {
				out += int64(size)
			}
			after, err := s.cpu()
			return after - before, out, err
		},
		one: func(ctx context.Context, _ photo, path string) ([]byte, error) { return get(ctx, path) },
	}
}

// getWebP asks for a variant. Anything else is an error: it would be cheaper, and not what is measured.
func getWebP(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	r, err := request(ctx, url, takesWebP)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if got := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || got != "image/webp" {
		return nil, fmt.Errorf("%s: status %d, type %q, %d bytes, where WebP was due", url, answer.StatusCode, got, len(body))
	}
	return body, nil
}

// viaFloor converts in this process, on one thread.
func viaFloor(b *bench, method int) converter {
	return converter{
		name: fmt.Sprintf("libjpeg-turbo + libwebp, method %d", method),
		run: func(_ context.Context, c class, n int) (time.Duration, int64, error) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			photos, out := b.album[c.name], int64(0)
			before, err := threadCPU()
			if err != nil {
				return 0, 0, err
			}
			for i := range n {
				body, err := floor.Convert(photos[i%len(photos)].body, quality, method)
				if err != nil {
					return 0, 0, err
				}
				out += int64(len(body))
			}
			after, err := threadCPU()
			return after - before, out, err
		},
		one: func(_ context.Context, p photo, _ string) ([]byte, error) {
			return floor.Convert(p.body, quality, method)
		},
	}
}

func threadCPU() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// scoreAll gives by class and by name how far variants look from their originals, 0 for the same.
func scoreAll(ctx context.Context, b *bench, all []converter) (map[string]map[string]float64, error) {
	scores := map[string]map[string]float64{}
	judge, err := newJudge(b.dir)
	if errors.Is(err, errNoPeer) {
		b.say("no scores: butteraugli_main (libjxl-devtools) or dwebp (webp) is not installed")
		return scores, nil
	}
	if err != nil {
		return nil, err
	}
	for _, c := range classes {
		if !slices.Contains(b.classes, c.name) {
			continue
		}
		scores[c.name] = map[string]float64{}
		for _, who := range all {
			b.say("score of %s, class %s", who.name, c.name)
			for i, p := range b.album[c.name] {
				path := fmt.Sprintf("/%s/%d/%d.jpg", c.name, i, b.origin.next.Add(1))
				body, err := who.one(ctx, p, path)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", who.name, err)
				}
				s, err := judge.score(ctx, p.body, body)
				if err != nil {
					return nil, err
				}
				scores[c.name][who.name] += s / float64(len(b.album[c.name]))
			}
		}
	}
	return scores, nil
}
