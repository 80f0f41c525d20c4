package mail

import (
	"context"
	"time"
)

// afterGrace is a context that ends some time after its parent.
func afterGrace(parent context.Context, d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	stopped := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-stopped:
			return
		case <-parent.Done():
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-stopped:
		case <-timer.C:
			cancel(context.Cause(parent))
		}
	}()
	return ctx, func() {
		close(stopped)
		<-gone
		cancel(nil)
	}
}
