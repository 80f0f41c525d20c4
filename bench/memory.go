package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// memoryTable converts a mix of sizes, and looks at the memory of all processes together.
func memoryTable(ctx context.Context, b *bench) error {
	const tier = 64
	karui, err := startKarui(ctx, b, "karui", karuiOptions{memory: fmt.Sprintf("%dMiB", tier), wait: "30s"})
	if err != nil {
		return err
	}
	defer karui.stop()
	watch := watchMemory(karui.roots)
	defer watch.stop()
	client := newClient(memoryViewers)
	defer client.CloseIdleConnections()
	t := newTable(fmt.Sprintf("Memory of all processes (proportional set size), cache.memory %d MiB, 6 S : 3 M : 1 L, %d at a time", tier, memoryViewers),
		"conversions", "MiB now", "MiB at most since the row before", "of this the front process now", "cache.memory in use, MiB")
	done := 0
	for _, count := range b.mixes {
		for done < count {
			n := min(count-done, 250)
			if err := b.convertMix(ctx, client, karui, done, n); err != nil {
				return err
			}
			done += n
			b.say("memory: %d conversions", done)
		}
		now, err := memoryOf(karui.roots)
		if err != nil {
			return err
		}
		front, err := memoryOfOne(karui.roots[0])
		if err != nil {
			return err
		}
		held, err := karui.metric(ctx, "karui_cache_memory_bytes", "")
		if err != nil {
			return err
		}
		b.say("memory after %d: %d MiB, %d of the front process", count, now>>20, front>>20)
		t.row(count, now>>20, watch.most()>>20, front>>20, int64(held)>>20)
	}
	t.print(b)
	return nil
}

// memoryViewers ask at a time.
const memoryViewers = 4

// convertMix converts n images of all sizes, the ones from number first on.
func (b *bench) convertMix(ctx context.Context, client *http.Client, karui *server, first, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(memoryViewers)
	for i := range n {
		c := "SSSMSMSSML"[(first+i)%10]
		group.Go(func() error {
			_, err := getWebP(ctx, client, karui.url+b.origin.fresh(string(c)))
			return err
		})
	}
	return group.Wait()
}

// memoryWatch looks at memory ten times a second.
type memoryWatch struct {
	peak atomic.Int64
	end  chan struct{}
	done sync.WaitGroup
}

func watchMemory(roots []int) *memoryWatch {
	w := &memoryWatch{end: make(chan struct{})}
	w.done.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-w.end:
				return
			case <-ticker.C:
			}
			// A process that ends while it is looked at is seen the next time.
			if n, err := memoryOf(roots); err == nil && n > w.peak.Load() {
				w.peak.Store(n)
			}
		}
	})
	return w
}

// most is the peak since it was asked the last time.
func (w *memoryWatch) most() int64 { return w.peak.Swap(0) }

func (w *memoryWatch) stop() {
	close(w.end)
	w.done.Wait()
}
