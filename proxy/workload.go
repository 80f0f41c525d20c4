package proxy

import (
	"context"
	"sync"
	"sync/atomic"
)

// workload counts what is under way, so that a drain can wait for it.
type workload struct {
	mu       sync.Mutex
	active   int
	stopping atomic.Bool
	// idle is made by a drain, and closed when nothing is under way.
	idle chan struct{}
}

func newWorkload() *workload { return &workload{} }

// begin counts a request in, which leave counts out, unless the proxy drains.
func (w *workload) begin() bool {
	if w.stopping.Load() {
		return false
	}
	w.enter()
	return true
}

// attend counts work in that a request began, also during a drain.
func (w *workload) attend() (done func()) {
	w.enter()
	return w.leave
}

func (w *workload) enter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active++
}

func (w *workload) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active--
	if w.active == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

func (w *workload) draining() bool { return w.stopping.Load() }

func (w *workload) refuse() { w.stopping.Store(true) }

// drain refuses new requests and waits until nothing is under way.
func (w *workload) drain(ctx context.Context) error {
	w.refuse()
	return w.wait(ctx)
}

// wait waits until nothing is under way.
func (w *workload) wait(ctx context.Context) error {
	for {
		w.mu.Lock()
		if w.active == 0 {
			w.mu.Unlock()
			return nil
		}
		if w.idle == nil {
			w.idle = make(chan struct{})
		}
		idle := w.idle
		w.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
