package probe

import (
	"context"
	"sync"
	"time"

	"karui/watchdog/event"
)

// shareFor is how long one look at the controls serves others. When the
// watchdog's own network is gone, all sites are down in the same seconds.
const shareFor = time.Second

// Controls are addresses that answer whenever the watchdog has a network. Looks
// are shared: a thousand sites that ask at once cost one request an address.
type Controls struct {
	prober *Prober

	mu   sync.Mutex
	last *look
}

// look is one look at all addresses.
type look struct {
	key    string
	start  time.Time
	done   chan struct{}
	probes []event.Probe // set when done is closed
}

// NewControls makes Controls.
func NewControls(p *Prober) *Controls { return &Controls{prober: p} }

// Ask asks all addresses at once, or shares a look at the same ones that is under
// way or began within the last second. The error is only ever that ctx ended.
func (c *Controls) Ask(ctx context.Context, addresses []string, timeout time.Duration) ([]event.Probe, error) {
	key := ""
	for _, a := range addresses {
		key += a + "\n"
	}
	c.mu.Lock()
	l := c.last
	now := c.prober.now()
	age := time.Duration(0)
	if l != nil {
		age = now.Sub(l.start)
	}
	mine := l == nil || l.key != key || age < 0 || age > shareFor+timeout
	if l != nil && !mine && age > shareFor {
		select {
		case <-l.done:
			mine = true
		default: // still under way
		}
	}
	if mine {
		l = &look{key: key, start: now, done: make(chan struct{})}
		c.last = l
	}
	c.mu.Unlock()
	if mine {
		// Others rely on it, so that it does not end with ctx but by its timeout.
		l.probes = c.ask(context.WithoutCancel(ctx), addresses, timeout)
		close(l.done)
	}
	select {
	case <-l.done:
		return append([]event.Probe(nil), l.probes...), ctx.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Controls) ask(ctx context.Context, addresses []string, timeout time.Duration) []event.Probe {
	out := make([]event.Probe, len(addresses))
	var wait sync.WaitGroup
	for i, a := range addresses {
		wait.Go(func() { out[i] = c.prober.Answers(ctx, a, timeout) })
	}
	wait.Wait()
	return out
}

// AllSilent tells whether none of at least one look was answered.
func AllSilent(probes []event.Probe) bool {
	for _, p := range probes {
		if p.OK {
			return false
		}
	}
	return len(probes) > 0
}
