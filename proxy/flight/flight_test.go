package flight

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"karui/proxy/origin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func shareable(*origin.Head) bool { return true }

// newGroup makes a group whose temporary files lie in a folder of the test.
func newGroup(t testing.TB, o Options) *Group[string] {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	g := New[string](o)
	t.Cleanup(g.Close)
	return g
}

// feed is an answer whose body the test hands out piece by piece.
type feed struct {
	length int64
	pieces chan []byte
	head   chan error
	ctx    context.Context
	asked  atomic.Int32
	closed atomic.Bool
	end    error // given instead of io.EOF when pieces is closed
	rest   []byte
}

func newFeed(length int64) *feed {
	return &feed{length: length, pieces: make(chan []byte), head: make(chan error, 1)}
}

func (f *feed) fetch(ctx context.Context) (*origin.Response, error) {
	f.asked.Add(1)
	f.ctx = ctx
	select {
	case err := <-f.head:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &origin.Response{Head: origin.Head{Status: 200, Header: http.Header{}, Length: f.length, Framing: origin.Length}, Body: f}, nil
}

func (f *feed) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		select {
		case piece, ok := <-f.pieces:
			if !ok {
				if f.end != nil {
					return 0, f.end
				}
				return 0, io.EOF
			}
			f.rest = piece
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *feed) Close() error {
	f.closed.Store(true)
	return nil
}

func (f *feed) request() Request { return Request{Fetch: f.fetch, Shareable: shareable} }

// body is a fetch that gives data at once.
func body(data []byte, declared bool) Fetch {
	return func(context.Context) (*origin.Response, error) {
		length := int64(-1)
		if declared {
			length = int64(len(data))
		}
		return &origin.Response{Head: origin.Head{Status: 200, Length: length}, Body: io.NopCloser(bytes.NewReader(data))}, nil
	}
}

// noise is n bytes in which no two parts look alike.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	return data
}

func closing(t testing.TB, h *Handle) *Handle {
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// wantBytes reads n bytes.
func wantBytes(t *testing.T, h *Handle, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(h, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes that are right: %v, %v", len(got), bytes.Equal(got, want), err)
	}
}

// wantRest reads to the end.
func wantRest(t *testing.T, h *Handle, want []byte) {
	t.Helper()
	got, err := io.ReadAll(h)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes of %d, right: %v, %v", len(got), len(want), bytes.Equal(got, want), err)
	}
}

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
