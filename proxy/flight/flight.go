package flight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"karui/proxy/origin"
)

// Fetch gets the answer of a flight. ctx ends when nobody can use the answer any
// more; the body's reads must end with it.
type Fetch func(ctx context.Context) (*origin.Response, error)

// Request is what the first viewer of a key brings along. Those who join later
// bring theirs in vain.
type Request struct {
	// Fetch is called once, in a goroutine of the group. Its error reaches every
	// viewer as it is. See ErrStored for a second look into the cache.
	Fetch Fetch
	// Shareable says from the head whether everybody may have the answer. It is
	// called once; nil means that nobody else may.
	Shareable func(*origin.Head) bool
	// State is handed to every viewer and to Task: what they share about this
	// flight, such as the outcome of its conversion.
	State any
	// Task works on the answer in a goroutine of its own, from the moment its head
	// proved shareable; ctx ends with the group. It may follow the body with
	// Prefix, wait for it with Whole, convert and store it. The flight can be
	// joined until Task has returned (or the body failed), so it must return only
	// when whatever it stores can be found. Viewers do not wait for it. nil for none.
	Task func(ctx context.Context, f *Flight)
}

// outcome is what became of a flight's request.
type outcome uint8

const (
	pending outcome = iota
	failed          // no head
	alone           // the answer is the first viewer's
	shared          // the answer is everybody's
)

// Flight is one fetch and everybody who waits for it. Its methods may be called
// by many goroutines.
type Flight struct {
	state   any
	fetched context.CancelCauseFunc // ends the fetch
	depart  func(*Flight)           // makes the flight unknown to new viewers
	ready   chan struct{}           // closed when outcome is known
	done    chan struct{}           // closed when the body has ended
	over    chan struct{}           // closed when the flight is unknown to new viewers
	private bool                    // nobody else can join: ends with its viewer even before the head

	mu      sync.Mutex
	outcome outcome
	err     error // before the head, or of the body once done is closed
	head    *origin.Head
	spool   *spool
	solo    *solo
	leader  *Handle
	waiting map[*Handle]struct{} // with outcome pending
	viewers int
}

func newFlight(state any, cancel context.CancelCauseFunc, depart func(*Flight)) *Flight {
	f := &Flight{
		state: state, fetched: cancel, over: make(chan struct{}),
		ready: make(chan struct{}), done: make(chan struct{}), waiting: make(map[*Handle]struct{}, 1),
	}
	leave := sync.OnceFunc(func() {
		depart(f)
		close(f.over)
	})
	f.depart = func(*Flight) { leave() }
	return f
}

// State gives Request.State.
func (f *Flight) State() any { return f.state }

// Head gives the answer's head, nil before it is there.
func (f *Flight) Head() *origin.Head {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// Done is closed when the body has ended, well or not, or the fetch has failed.
func (f *Flight) Done() <-chan struct{} { return f.done }

// Over is closed when whoever asks for the key from now on gets another flight.
func (f *Flight) Over() <-chan struct{} { return f.over }

// Err gives the reason why there is no whole body, once Done is closed; nil if there is one.
func (f *Flight) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Viewers is the number of handles that are open.
func (f *Flight) Viewers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.viewers
}

// Prefix waits until n bytes of the body are there and gives them, fewer if the
// whole body has fewer. If the body failed before, it gives what there was
// together with the reason; that is "cut off before the first byte" if it is
// nothing. Bytes that lie together in memory are not copied. In a paced flight n
// can be 64 KiB; ErrNotKept for more, and for an answer that is not shared.
func (f *Flight) Prefix(ctx context.Context, n int) ([]byte, error) {
	s, err := f.kept(ctx)
	if err != nil {
		return nil, err
	}
	return s.prefix(ctx, n)
}

// Whole waits for the body and gives all of it. It fails with ErrTooLarge as soon
// as the body is known to have more than most bytes, with ErrNotKept if it is not
// kept, and with the body's own error.
//
// A body with a declared length that found room in memory is not copied. Any
// other is put together in memory of its own: a quarter of Options.Memory is set
// aside for these, and Whole waits for its turn. The turn ends with Task, so call
// Whole there. The slice itself stays valid as long as somebody holds it.
func (f *Flight) Whole(ctx context.Context, most int64) ([]byte, error) {
	s, err := f.kept(ctx)
	if err != nil {
		return nil, err
	}
	return s.complete(ctx, most)
}

// Body waits for the body and gives a reader of all of it, wherever it lies: for
// bodies that are too large for Whole. It holds until Task has returned, and fails
// as Whole does, except for the size.
func (f *Flight) Body(ctx context.Context) (*io.SectionReader, error) {
	s, err := f.kept(ctx)
	if err != nil {
		return nil, err
	}
	return s.section(ctx)
}

// kept waits for the head and gives the spool of a shared flight.
func (f *Flight) kept(ctx context.Context) (*spool, error) {
	select {
	case <-f.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.spool != nil:
		return f.spool, nil
	case f.outcome == failed:
		return nil, f.err
	}
	return nil, ErrNotKept
}

// join adds a viewer, or refuses it if the flight has nothing for new ones.
func (f *Flight) join(ctx context.Context, leader bool) (*Handle, bool) {
	h := &Handle{ctx: ctx, flight: f, leader: leader}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.outcome {
	case pending:
		f.waiting[h] = struct{}{}
		if leader {
			f.leader = h
		}
	case shared:
		r, ok := f.spool.attach()
		if !ok {
			return nil, false
		}
		h.reader = r
	default:
		return nil, false
	}
	f.viewers++
	return h, true
}

// run owns the fetch from its beginning to the end of its task.
func (f *Flight) run(ctx, tasks context.Context, st *store, req Request, log func(msg string, err error)) {
	resp, err := contained(func() (*origin.Response, error) { return req.Fetch(ctx) })
	if err == nil && (resp == nil || resp.Body == nil) {
		err = errors.New("flight: the fetch returned neither an answer nor an error")
	}
	if err != nil {
		f.fail(err)
		return
	}
	ok, err := contained(func() (bool, error) { return req.Shareable != nil && req.Shareable(&resp.Head), nil })
	if err != nil {
		_ = resp.Body.Close() // err says more
		f.fail(err)
		return
	}
	if !ok {
		f.handOver(resp)
		return
	}
	f.fly(ctx, tasks, st, req, resp, log)
}

// contained turns a panic into an error.
func contained[T any](call func() (T, error)) (result T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return call()
}

// fail ends a flight that has no head.
func (f *Flight) fail(err error) {
	f.fetched(nil)
	f.depart(f)
	f.mu.Lock()
	f.outcome, f.err, f.waiting = failed, err, nil
	f.mu.Unlock()
	close(f.done)
	close(f.ready)
}

// handOver gives the answer to the first viewer, and to nobody if that one has left.
func (f *Flight) handOver(resp *origin.Response) {
	f.depart(f)
	f.mu.Lock()
	f.outcome, f.head, f.waiting = alone, &resp.Head, nil
	f.solo = &solo{body: resp.Body, end: f.fetched}
	left := f.leader == nil
	if !left {
		f.solo.stop = context.AfterFunc(f.leader.ctx, f.solo.shut)
	}
	f.mu.Unlock()
	close(f.ready)
	if left {
		f.solo.shut()
		f.land(ErrClosed)
	}
}

// land marks the end of a body that is not in a spool.
func (f *Flight) land(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.done:
	default:
		f.err = err
		close(f.done)
	}
}

// fly spools a shareable answer for everybody.
func (f *Flight) fly(ctx, tasks context.Context, st *store, req Request, resp *origin.Response, log func(string, error)) {
	s := newSpool(st, resp.Length, func() { f.fetched(errAbandoned) })
	f.mu.Lock()
	for h := range f.waiting {
		h.reader, _ = s.attach() // nothing can be wrong with a spool that is empty
	}
	f.outcome, f.head, f.spool, f.waiting = shared, &resp.Head, s, nil
	f.mu.Unlock()
	close(f.ready)

	worked := make(chan struct{})
	if req.Task == nil {
		close(worked)
	} else {
		go func() {
			defer close(worked)
			if _, err := contained(func() (struct{}, error) { req.Task(tasks, f); return struct{}{}, nil }); err != nil {
				log("task of a shared fetch", err)
			}
		}()
	}

	stop := context.AfterFunc(ctx, func() { _ = resp.Body.Close() }) // for a body that does not heed ctx
	_, err := contained(func() (struct{}, error) { return struct{}{}, s.fill(ctx, resp.Body) })
	stop()
	_ = resp.Body.Close() // the reads have said what there is to say
	f.fetched(nil)
	if err != nil {
		f.depart(f)
	}
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	s.finish(err)
	close(f.done)

	<-worked
	f.depart(f)
	s.mu.Lock()
	s.forgetWhole()
	s.mu.Unlock()
	s.release()
}

// solo is an answer that belongs to one viewer, read straight from the origin.
type solo struct {
	body   io.ReadCloser
	end    context.CancelCauseFunc
	stop   func() bool // of what shuts it when the viewer's context ends
	prefix []byte      // read ahead, and not given out yet
	err    error       // after prefix
	once   sync.Once
}

// shut ends the fetch. It may interrupt a read.
func (o *solo) shut() {
	o.once.Do(func() {
		o.end(context.Canceled)
		_ = o.body.Close() // nobody reads on
	})
}

// ahead reads until n bytes are there, or the end.
func (o *solo) ahead(ctx context.Context, n int) ([]byte, error) {
	defer context.AfterFunc(ctx, o.shut)()
	for len(o.prefix) < n && o.err == nil {
		if cap(o.prefix) < n {
			o.prefix = append(make([]byte, 0, n), o.prefix...)
		}
		var got int
		got, o.err = o.body.Read(o.prefix[len(o.prefix):n])
		o.prefix = o.prefix[:len(o.prefix)+got]
	}
	data := o.prefix[:min(n, len(o.prefix)):min(n, len(o.prefix))]
	if len(data) == n || o.err == io.EOF { //nolint:errorlint // only the bare io.EOF is the regular end
		return data, nil
	}
	if ctx.Err() != nil {
		return data, context.Cause(ctx)
	}
	return data, o.err
}

func (o *solo) read(p []byte) (int, error) {
	if len(o.prefix) > 0 {
		n := copy(p, o.prefix)
		o.prefix = o.prefix[n:]
		return n, nil
	}
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.body.Read(p)
	o.err = err
	if n > 0 {
		err = nil
	}
	return n, err
}

// String names the outcome in test failures and logs.
func (o outcome) String() string {
	switch o {
	case pending:
		return "pending"
	case failed:
		return "failed"
	case alone:
		return "alone"
	case shared:
		return "shared"
	default:
		return fmt.Sprintf("outcome(%d)", uint8(o))
	}
}
