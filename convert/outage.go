package convert

import "sync"

// outage tells those who wait for a worker when no worker can be started at all.
type outage struct {
	mu    sync.Mutex
	down  int // workers whose last start failed
	of    int // workers
	total chan struct{}
}

func newOutage(workers int) *outage {
	return &outage{of: workers, total: make(chan struct{})}
}

// fail notes a worker that cannot be started; recover notes that it could be again.
func (o *outage) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down++; o.down == o.of {
		close(o.total)
	}
}

func (o *outage) recover() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down == o.of {
		o.total = make(chan struct{})
	}
	o.down--
}

// all is closed while no worker can be started.
func (o *outage) all() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}
