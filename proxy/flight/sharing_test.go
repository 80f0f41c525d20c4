package flight

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"karui/proxy/origin"
)

func TestOthersAttachOnlyIfTheHeadProvesTheAnswerShareable(t *testing.T) {
	f := newFeed(10)
	g := newGroup(t, Options{})
	req := f.request()
	var judged atomic.Int32
	req.Shareable = func(*origin.Head) bool { judged.Add(1); return false }
	req.Task = func(context.Context, *Flight) { t.Error("the task of an answer that is not shared ran") }
	leader := closing(t, g.Join(t.Context(), "k", req))
	var others []*Handle
	for range 10 {
		others = append(others, closing(t, g.Join(t.Context(), "k", req)))
	}
	f.head <- nil
	for _, h := range others {
		if _, err := h.Head(t.Context()); !errors.Is(err, ErrNotShared) {
			t.Errorf("got %v", err)
		}
		if _, err := h.Read(make([]byte, 1)); !errors.Is(err, ErrNotShared) {
			t.Errorf("read: %v", err)
		}
		if _, err := h.Prefix(t.Context(), 1); !errors.Is(err, ErrNotShared) {
			t.Errorf("prefix: %v", err)
		}
	}
	if head, err := leader.Head(t.Context()); err != nil || head.Status != 200 || leader.Shared() {
		t.Fatalf("got %v, %v", head, err)
	}
	go func() {
		f.pieces <- []byte("01234")
		f.pieces <- []byte("56789")
		close(f.pieces)
	}()
	if p, err := leader.Prefix(t.Context(), 7); err != nil || string(p) != "0123456" {
		t.Errorf("got the prefix %q, %v", p, err)
	}
	if _, err := leader.Flight().Whole(t.Context(), 100); !errors.Is(err, ErrNotKept) {
		t.Errorf("whole: %v", err)
	}
	wantRest(t, leader, []byte("0123456789"))
	<-leader.Flight().Done()
	if err := leader.Flight().Err(); err != nil {
		t.Error(err)
	}
	if judged.Load() != 1 || f.asked.Load() != 1 {
		t.Errorf("judged %d times, asked %d times", judged.Load(), f.asked.Load())
	}
	// Those who come later neither wait for it nor get it.
	next := newFeed(0)
	next.head <- nil
	close(next.pieces)
	if h := closing(t, g.Join(t.Context(), "k", next.request())); !h.Leader() {
		t.Error("joined an answer that is not shareable")
	}
}

func TestAnswerOfOneViewerGoesAtItsPaceAndEndsWithIt(t *testing.T) {
	for name, leave := range map[string]func(cancel func(), h *Handle){
		"closed":          func(_ func(), h *Handle) { _ = h.Close() },
		"context ended":   func(cancel func(), _ *Handle) { cancel() },
		"both, and twice": func(cancel func(), h *Handle) { cancel(); _ = h.Close(); _ = h.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(1 << 30)
			g := newGroup(t, Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h := closing(t, g.Alone(ctx, f.fetch))
			f.head <- nil
			go func() { f.pieces <- []byte("01234") }()
			wantBytes(t, h, []byte("01"))
			select {
			case f.pieces <- []byte("more"):
				t.Error("read ahead of the viewer")
			default:
			}
			leave(cancel, h)
			<-f.ctx.Done()
			for !f.closed.Load() { // by the goroutine that watches the context
				runtime.Gosched()
			}
			if _, err := io.ReadAll(h); err == nil {
				t.Error("a fetch that ended early looks whole")
			}
			if g.Stats().Memory != 0 {
				t.Error("an answer of one viewer took memory")
			}
		})
	}
}

func TestViewerWhoLeavesBeforeTheHeadOfItsOwnAnswer(t *testing.T) {
	g := newGroup(t, Options{})
	// Alone: the fetch ends at once.
	f := newFeed(1)
	asked := make(chan struct{})
	h := g.Alone(t.Context(), func(ctx context.Context) (*origin.Response, error) {
		close(asked)
		return f.fetch(ctx)
	})
	<-asked
	_ = h.Close()
	<-h.Flight().Done()
	if !errors.Is(h.Flight().Err(), context.Canceled) {
		t.Errorf("got %v", h.Flight().Err())
	}
	// Joined: nobody knows yet whether it is shareable; nobody else may have it.
	f = newFeed(1)
	req := f.request()
	req.Shareable = nil
	leader := g.Join(t.Context(), "k", req)
	other := closing(t, g.Join(t.Context(), "k", req))
	_ = leader.Close()
	f.head <- nil
	if _, err := other.Head(t.Context()); !errors.Is(err, ErrNotShared) {
		t.Errorf("got %v", err)
	}
	<-leader.Flight().Done()
	<-f.ctx.Done()
	if !f.closed.Load() {
		t.Error("the body was left open")
	}
	if _, err := leader.Head(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}
