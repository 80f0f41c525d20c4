package flight

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"karui/proxy/origin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAPauseHasDeliveredWhatCameToEveryViewerLateJoinersToo(t *testing.T) {
	for _, length := range []int64{2048, -1} {
		f := newFeed(length)
		g := newGroup(t, Options{})
		data := noise(2048)
		early := make([]*Handle, 10)
		for i := range early {
			early[i] = closing(t, g.Join(t.Context(), "k", f.request()))
		}
		f.head <- nil
		f.pieces <- data[:1024]
		for _, h := range early {
			wantBytes(t, h, data[:1024])
		}
		late := closing(t, g.Join(t.Context(), "k", f.request()))
		wantBytes(t, late, data[:1024])
		f.pieces <- data[1024:]
		close(f.pieces)
		for _, h := range append(early, late) {
			wantRest(t, h, data[1024:])
		}
		if n := f.asked.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
	}
}

func TestLateJoinerAtEveryStage(t *testing.T) {
	f := newFeed(-1)
	g := newGroup(t, Options{})
	data := noise(300 << 10)
	release := make(chan struct{})
	req := f.request()
	req.Task = func(context.Context, *Flight) { <-release }
	var all []*Handle
	join := func() {
		h := closing(t, g.Join(t.Context(), "k", req))
		if h.Leader() != (len(all) == 0) {
			t.Fatalf("viewer %d leads: %v", len(all), h.Leader())
		}
		all = append(all, h)
	}
	join() // the first
	join() // before the head
	f.head <- nil
	if _, err := all[0].Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	join() // after the head, before the first byte
	for at := 0; at < len(data); at += 50 << 10 {
		f.pieces <- data[at:min(at+50<<10, len(data))]
		join() // in the body
	}
	close(f.pieces)
	<-all[0].Flight().Done()
	join() // after the last byte, while the task works
	for _, h := range all {
		wantRest(t, h, data)
	}
	if n := f.asked.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	if n := all[0].Flight().Viewers(); n != len(all) {
		t.Errorf("%d viewers are counted, there are %d", n, len(all))
	}
	close(release)
	for g.Stats().Flights > 0 { // the task returns in its own time
		runtime.Gosched()
	}
	again := newFeed(0)
	again.head <- nil
	close(again.pieces)
	next := closing(t, g.Join(t.Context(), "k", again.request()))
	if !next.Leader() {
		t.Error("a flight whose task has returned took another viewer")
	}
	wantRest(t, next, nil)
}

func TestViewersWhoLeaveDoNotEndTheFetch(t *testing.T) {
	for _, stage := range []string{"before the head", "after the head", "in the body", "all of them"} {
		t.Run(stage, func(t *testing.T) {
			f := newFeed(10)
			g := newGroup(t, Options{})
			got := make(chan string, 1)
			req := f.request()
			req.Task = func(ctx context.Context, f *Flight) {
				whole, err := f.Whole(ctx, 100)
				if err != nil {
					t.Error(err)
				}
				got <- string(whole)
			}
			ctx, leave := context.WithCancel(t.Context())
			leader := g.Join(ctx, "k", req)
			other := g.Join(t.Context(), "k", req)
			if stage == "before the head" {
				leave()
				_ = leader.Close()
			}
			f.head <- nil
			if _, err := other.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
			if stage == "after the head" {
				leave()
				_ = leader.Close()
			}
			f.pieces <- []byte("01234")
			if stage == "in the body" || stage == "all of them" {
				wantBytes(t, leader, []byte("01"))
				leave()
				_ = leader.Close()
			}
			if stage == "all of them" {
				_ = other.Close()
			}
			f.pieces <- []byte("56789")
			close(f.pieces)
			if stage != "all of them" {
				wantRest(t, other, []byte("0123456789"))
				_ = other.Close()
			}
			if whole := <-got; whole != "0123456789" {
				t.Errorf("the task got %q", whole)
			}
			leave()
		})
	}
}

func TestErrorBeforeTheHeadReachesEveryViewer(t *testing.T) {
	f := newFeed(0)
	g := newGroup(t, Options{})
	var all []*Handle
	for range 10 {
		all = append(all, closing(t, g.Join(t.Context(), "k", f.request())))
	}
	refused := &origin.Error{Kind: origin.KindConnect}
	f.head <- refused
	for _, h := range all {
		if _, err := h.Head(t.Context()); err != refused {
			t.Errorf("got %v", err)
		}
		if _, err := h.WriteTo(io.Discard); err != refused {
			t.Errorf("got %v", err)
		}
	}
	f.head <- nil
	if h := closing(t, g.Join(t.Context(), "k", f.request())); !h.Leader() {
		t.Error("joined a flight that failed")
	}
}

func TestErrorInTheBodyReachesEveryViewerAfterTheBytesSoFar(t *testing.T) {
	for _, before := range []string{"", "0123"} {
		for _, own := range []bool{false, true} {
			f := newFeed(10)
			f.end = io.ErrUnexpectedEOF
			g := newGroup(t, Options{})
			req := f.request()
			viewers := 3
			if own {
				viewers, req.Shareable = 1, nil
			}
			var all []*Handle
			for range viewers {
				all = append(all, closing(t, g.Join(t.Context(), "k", req)))
			}
			f.head <- nil
			go func() {
				if before != "" {
					f.pieces <- []byte(before)
				}
				close(f.pieces)
			}()
			for i, h := range all {
				p, err := h.Prefix(t.Context(), 5)
				if string(p) != before || !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("prefix %q, %v", p, err)
				}
				var got []byte
				if i == 0 {
					got, err = io.ReadAll(h)
				} else {
					var buf bytes.Buffer
					_, err = h.WriteTo(&buf)
					got = buf.Bytes()
				}
				if string(got) != before || !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
					t.Errorf("got %q, %v", got, err)
				}
			}
			flight := all[0].Flight()
			<-flight.Done()
			if !errors.Is(flight.Err(), io.ErrUnexpectedEOF) {
				t.Errorf("the flight says %v", flight.Err())
			}
			if h := closing(t, g.Join(t.Context(), "k", newFeed(0).request())); !h.Leader() {
				t.Error("joined a body that is broken")
			}
		}
	}
}

// Between the last byte and the entry in the cache, and between a look into the
// cache and joining, nobody may cause a second request.
func TestStampedeInTheGap(t *testing.T) {
	g := newGroup(t, Options{})
	data := noise(10 << 10)
	var stored atomic.Pointer[[]byte]
	var requests, tasks atomic.Int32
	view := func() []byte {
		for {
			if entry := stored.Load(); entry != nil {
				return *entry
			}
			h := g.Join(t.Context(), "k", Request{
				Fetch: func(ctx context.Context) (*origin.Response, error) {
					if stored.Load() != nil {
						return nil, ErrStored
					}
					requests.Add(1)
					return body(data, true)(ctx)
				},
				Shareable: shareable,
				Task: func(ctx context.Context, f *Flight) {
					tasks.Add(1)
					whole, err := f.Whole(ctx, 1<<20)
					if err != nil {
						t.Error(err)
					}
					stored.Store(&whole)
				},
			})
			got, err := io.ReadAll(h)
			_ = h.Close()
			if errors.Is(err, ErrStored) {
				continue
			}
			if err != nil {
				t.Error(err)
			}
			return got
		}
	}
	for range 200 {
		stored.Store(nil)
		requests.Store(0)
		tasks.Store(0)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if !bytes.Equal(view(), data) {
					t.Error("not the whole body")
				}
			})
		}
		wg.Wait()
		for g.Stats().Flights > 0 {
			runtime.Gosched()
		}
		if requests.Load() != 1 || tasks.Load() != 1 {
			t.Fatalf("%d requests, %d tasks", requests.Load(), tasks.Load())
		}
	}
}

func TestPanicsAreContained(t *testing.T) {
	var logged syncBuffer
	g := newGroup(t, Options{Log: logged.logger()})
	var p *PanicError
	h := closing(t, g.Join(t.Context(), "fetch", Request{Fetch: func(context.Context) (*origin.Response, error) { panic("a") }}))
	if _, err := h.Head(t.Context()); !errors.As(err, &p) || p.Value != "a" || len(p.Stack) == 0 {
		t.Errorf("got %v", err)
	}
	f := newFeed(0)
	f.head <- nil
	h = closing(t, g.Join(t.Context(), "shareable", Request{Fetch: f.fetch, Shareable: func(*origin.Head) bool { panic("b") }}))
	if _, err := h.Head(t.Context()); !errors.As(err, &p) || p.Value != "b" || !f.closed.Load() {
		t.Errorf("got %v", err)
	}
	h = closing(t, g.Join(t.Context(), "nothing", Request{Fetch: func(context.Context) (*origin.Response, error) { return nil, nil }}))
	if _, err := h.Head(t.Context()); err == nil {
		t.Error("a fetch without answer and error gave no error")
	}
	h = closing(t, g.Join(t.Context(), "body", Request{Shareable: shareable, Fetch: func(context.Context) (*origin.Response, error) {
		return &origin.Response{Body: io.NopCloser(panicking{})}, nil
	}}))
	if _, err := io.ReadAll(h); !errors.As(err, &p) || p.Value != "c" {
		t.Errorf("got %v", err)
	}
	h = closing(t, g.Join(t.Context(), "task", Request{Fetch: body([]byte("ok"), true), Shareable: shareable, Task: func(context.Context, *Flight) { panic("d") }}))
	wantRest(t, h, []byte("ok"))
	for g.Stats().Flights > 0 {
		runtime.Gosched()
	}
	if !bytes.Contains(logged.Bytes(), []byte("panic in a fetch: d")) {
		t.Errorf("logged %q", logged.Bytes())
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("c") }

func TestCloseEndsEverything(t *testing.T) {
	g := newGroup(t, Options{})
	var feeds []*feed
	var handles []*Handle
	task := make(chan error, 1)
	for _, key := range []string{"before the head", "in the body", "own"} {
		f := newFeed(100)
		req := f.request()
		if key == "own" {
			req.Shareable = nil
		}
		if key == "in the body" {
			req.Task = func(ctx context.Context, f *Flight) {
				_, err := f.Whole(ctx, 1000)
				<-ctx.Done()
				task <- err
			}
		}
		handles = append(handles, closing(t, g.Join(t.Context(), key, req)))
		feeds = append(feeds, f)
		if key != "before the head" {
			f.head <- nil
			go func() { f.pieces <- []byte("0123") }()
			wantBytes(t, handles[len(handles)-1], []byte("01"))
		}
	}
	g.Close()
	for _, h := range handles {
		if _, err := io.ReadAll(h); err == nil {
			t.Error("a fetch that was ended looks whole")
		}
	}
	if err := <-task; err == nil {
		t.Error("the task got a whole body")
	}
	for _, h := range []*Handle{g.Join(t.Context(), "k", feeds[0].request()), g.Alone(t.Context(), feeds[0].fetch)} {
		if _, err := h.Head(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		_ = h.Close()
	}
	g.Close()
}

func TestForgottenFlightsKeepTheirViewersAndTakeNoNewOnes(t *testing.T) {
	g := newGroup(t, Options{})
	before, after := newFeed(3), newFeed(3)
	worked := make(chan struct{})
	req := before.request()
	req.Task = func(ctx context.Context, f *Flight) {
		_, _ = f.Whole(ctx, 10)
		close(worked)
	}
	old := closing(t, g.Join(t.Context(), "/a/x", req))
	same := closing(t, g.Join(t.Context(), "/b/x", newFeed(3).request()))
	g.Forget(func(key string) bool { return key < "/b" })
	young := closing(t, g.Join(t.Context(), "/a/x", after.request()))
	if !young.Leader() {
		t.Fatal("joined a flight from before the purge")
	}
	if closing(t, g.Join(t.Context(), "/b/x", after.request())).Leader() {
		t.Error("another key was forgotten as well")
	}
	_ = same
	before.head <- nil
	after.head <- nil
	before.pieces <- []byte("old")
	after.pieces <- []byte("new")
	close(before.pieces)
	wantRest(t, old, []byte("old"))
	<-worked
	if closing(t, g.Join(t.Context(), "/a/x", after.request())).Leader() {
		t.Error("the end of the old flight took the new one along")
	}
	close(after.pieces)
	wantRest(t, young, []byte("new"))
}

func TestStateIsTheLeaders(t *testing.T) {
	g := newGroup(t, Options{})
	f := newFeed(0)
	req := f.request()
	req.State = "first"
	closing(t, g.Join(t.Context(), "k", req))
	req.State = "second"
	h := closing(t, g.Join(t.Context(), "k", req))
	if h.State() != "first" || h.Flight().State() != "first" {
		t.Errorf("got %v", h.State())
	}
}

func TestWaitingEndsWithTheViewer(t *testing.T) {
	g := newGroup(t, Options{})
	f := newFeed(10)
	closing(t, g.Join(t.Context(), "k", f.request()))
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	h := closing(t, g.Join(ctx, "k", f.request()))
	short, stop := context.WithCancel(t.Context())
	stop()
	if _, err := h.Head(short); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	f.head <- nil
	if _, err := h.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Prefix(short, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	time.AfterFunc(time.Millisecond, func() { cancel(gone) })
	if _, err := h.Read(make([]byte, 1)); err != gone {
		t.Errorf("got %v", err)
	}
	if _, err := h.WriteTo(io.Discard); err != gone {
		t.Errorf("got %v", err)
	}
}

func TestViewersAreCounted(t *testing.T) {
	g := newGroup(t, Options{})
	f := newFeed(10)
	a, b := g.Join(t.Context(), "k", f.request()), g.Join(t.Context(), "k", f.request())
	if s := g.Stats(); s.Flights != 1 || s.Viewers != 2 || a.Flight().Viewers() != 2 {
		t.Errorf("got %+v", s)
	}
	_ = a.Close()
	_ = a.Close()
	if s := g.Stats(); s.Viewers != 1 || a.Flight().Viewers() != 1 {
		t.Errorf("got %+v", s)
	}
	_ = b.Close()
	if s := g.Stats(); s.Viewers != 0 || s.Flights != 1 {
		t.Errorf("got %+v", s)
	}
}
