package flight

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Options are the limits of a group. Sizes are in bytes; what is 0 or less gets
// the default.
type Options struct {
	// Memory bounds the bodies of all flights in memory together
	// (limits.inflight_bytes). Three quarters are for spools, a quarter for Whole.
	// Default 512 MiB.
	Memory int64
	// BodyMemory bounds one body in memory; a larger one goes to disk. Above what is
	// converted at all (convert.max_bytes) there is no use in it. Default 32 MiB.
	BodyMemory int64
	// Disk bounds the temporary files of all flights together. Default 8 GiB.
	Disk int64
	// Dir is the folder for them; "" means the system's own for temporary files.
	Dir string
	// Stall is how long a viewer of a paced flight may hold up the others
	// (origin.idle). Default 10 s.
	Stall time.Duration
	// Log hears of panics in tasks and of flights that became paced, the latter at
	// most once a minute. nil means slog.Default().
	Log *slog.Logger
}

// Group is the set of flights under way, by key. It is safe for use by many
// goroutines.
type Group[K comparable] struct {
	store   *store
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	viewers atomic.Int64
	warned  atomic.Int64 // Unix nanoseconds of the last word about paced flights
	wg      sync.WaitGroup

	// mu is taken before a flight's lock, and that before a spool's.
	mu      sync.Mutex
	closed  bool
	flights map[K]*Flight
}

// New makes a group.
func New[K comparable](o Options) *Group[K] {
	orDefault := func(v, def int64) int64 {
		if v <= 0 {
			return def
		}
		return v
	}
	o.Memory = orDefault(o.Memory, 512<<20)
	o.BodyMemory = orDefault(o.BodyMemory, 32<<20)
	o.Disk = orDefault(o.Disk, 8<<30)
	o.Stall = time.Duration(orDefault(int64(o.Stall), int64(10*time.Second)))
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	g := &Group[K]{log: o.Log, flights: make(map[K]*Flight)}
	assemble := max(o.Memory/4, 1)
	g.store = &store{
		most: o.BodyMemory, stall: o.Stall, assemble: assemble, assembly: semaphore.NewWeighted(assemble),
		open: func() (file, error) { return openUnnamed(o.Dir) }, refused: g.refused,
	}
	g.store.memory.max, g.store.disk.max = o.Memory-assemble, o.Disk
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Join makes the caller a viewer of the key's flight, and starts one if there is
// none that takes new viewers. It does not wait. The handle must be closed; ctx
// is the viewer's own and ends its reads, but not the fetch.
//
// A background fetch without a viewer is a Join whose handle is closed at once.
func (g *Group[K]) Join(ctx context.Context, key K, req Request) *Handle {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return refusal(ctx)
	}
	if f := g.flights[key]; f != nil {
		if h, ok := f.join(ctx, false); ok {
			return g.count(h)
		}
	}
	fetchCtx, cancel := context.WithCancelCause(g.ctx)
	f := newFlight(req.State, cancel, func(f *Flight) { g.depart(key, f) })
	g.flights[key] = f
	return g.launch(ctx, fetchCtx, f, req)
}

// Known gives the flight that a Join with the key would make the caller a viewer
// of, nil if it would start one.
func (g *Group[K]) Known(key K) *Flight {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flights[key]
}

// Alone fetches for one viewer only: for requests that must not be shared, and
// for those who got ErrNotShared. The fetch goes at the viewer's pace and ends
// with it. The handle must be closed.
func (g *Group[K]) Alone(ctx context.Context, fetch Fetch) *Handle {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return refusal(ctx)
	}
	fetchCtx, cancel := context.WithCancelCause(g.ctx)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	f := newFlight(nil, func(err error) { stop(); cancel(err) }, func(*Flight) {})
	f.private = true
	return g.launch(ctx, fetchCtx, f, Request{Fetch: fetch})
}

// launch starts f with its first viewer. The lock is held.
func (g *Group[K]) launch(ctx, fetchCtx context.Context, f *Flight, req Request) *Handle {
	h, _ := f.join(ctx, true) // a flight that has not started takes everybody
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		f.run(fetchCtx, g.ctx, g.store, req, func(msg string, err error) { g.log.Error(msg, "error", err) })
	}()
	return g.count(h)
}

func (g *Group[K]) count(h *Handle) *Handle {
	g.viewers.Add(1)
	h.left = func() { g.viewers.Add(-1) }
	return h
}

// refusal is the handle of a group that is closed.
func refusal(ctx context.Context) *Handle {
	f := newFlight(nil, func(error) {}, func(*Flight) {})
	h, _ := f.join(ctx, true)
	f.fail(ErrClosed)
	return h
}

func (g *Group[K]) depart(key K, f *Flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flights[key] == f {
		delete(g.flights, key)
	}
}

// Forget makes the flights whose key matches unknown to new viewers, who get new
// ones; those who are there keep theirs, and its task goes on. It is for purges:
// what was asked for before a purge must not be given to who asks after it.
func (g *Group[K]) Forget(match func(K) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key := range g.flights {
		if match(key) {
			delete(g.flights, key)
		}
	}
}

// Stats is a moment's view of a group.
type Stats struct {
	Flights int   // that can be joined, those that linger for their task included
	Viewers int64 // handles that are open, Alone's included
	Memory  int64 // bytes reserved by spools
	Disk    int64 // bytes in temporary files
	Spilled int64 // flights that went to a file, ever
	Paced   int64 // flights that became paced, ever
}

// Stats counts.
func (g *Group[K]) Stats() Stats {
	g.mu.Lock()
	n := len(g.flights)
	g.mu.Unlock()
	return Stats{
		Flights: n, Viewers: g.viewers.Load(),
		Memory: g.store.memory.used.Load(), Disk: g.store.disk.used.Load(),
		Spilled: g.store.spilled.Load(), Paced: g.store.paced.Load(),
	}
}

// refused logs why a flight became paced.
func (g *Group[K]) refused(err error) {
	now, last := time.Now().UnixNano(), g.warned.Load()
	if now-last < int64(time.Minute) || !g.warned.CompareAndSwap(last, now) {
		return
	}
	g.log.Warn("a fetch goes at the pace of its slowest viewer, since its body can be put nowhere: free disk space or raise limits.inflight_bytes", "error", err)
}

// Close ends every fetch, and waits for all of them and for their tasks. Viewers
// who are still there get an error. It can be called more than once.
func (g *Group[K]) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	g.wg.Wait()
}
