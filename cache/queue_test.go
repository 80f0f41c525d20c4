package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"karui/internal/units"
)

// stalled is a cache whose disk begins no write until release is called.
func stalled(t *testing.T, queue units.Size, volumes int) (c *Cache, files *faulty, release func()) {
	t.Helper()
	cfg := testConfig(t.TempDir())
	base := cfg.Volumes[0]
	cfg.Volumes = nil
	for i := range volumes {
		v := base
		v.Path += fmt.Sprintf("/%d", i)
		cfg.Volumes = append(cfg.Volumes, v)
	}
	cfg.WriteQueue = queue
	log := newMessages()
	files = &faulty{}
	c, err := open(cfg, roomy(), Options{Log: slogger(log), Now: newClock().Now, upkeepEvery: time.Hour}, files)
	if err != nil {
		t.Fatal(err)
	}
	for range volumes {
		log.wait(t, "cache volume loaded")
	}
	gate := make(chan struct{})
	files.break_(func(op, name string) error {
		if op == "create" && strings.Contains(name, "/0/tmp/") {
			<-gate
		}
		return nil
	})
	var once sync.Once
	release = func() { once.Do(func() { close(gate) }) }
	t.Cleanup(func() {
		release()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, files, release
}

func flush(t *testing.T, c *Cache) {
	t.Helper()
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func queueIsEmpty(t *testing.T, c *Cache) {
	t.Helper()
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	lanes := int64(0)
	for _, l := range c.queue.lanes {
		lanes += l.bytes
	}
	if q := c.queue; q.bytes != 0 || lanes != 0 || len(q.newest) != 0 || len(q.writing) != 0 || len(q.fences) != 0 || q.count.Load() != 0 {
		t.Errorf("%d bytes, %d in lanes, %d waiting, %d being written, %d fences, count %d: want none",
			q.bytes, lanes, len(q.newest), len(q.writing), len(q.fences), q.count.Load())
	}
}

// A disk that does not move holds up no Put, no Get, no Update and no Delete; what
// was put is answered from memory, and written when the disk comes back.
func TestStalledDisk(t *testing.T) {
	c, _, release := stalled(t, 64<<20, 1)
	key := func(i int) Key { return Key{Path: fmt.Sprint(i)} }
	content := func(i, n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d.%d ", i, n), 500) }
	for i := range 40 {
		if err := c.Put(key(i), Meta{FetchStart: at(1)}, content(i, 1)); err != nil {
			t.Fatal(err)
		}
		check(t, c, key(i), Meta{FetchStart: at(1)}, content(i, 1))
	}
	for i := range 10 { // put again
		if err := c.Put(key(i), Meta{FetchStart: at(2)}, content(i, 2)); err != nil {
			t.Fatal(err)
		}
		if err := c.Put(key(i), Meta{FetchStart: at(1)}, content(i, 1)); !errors.Is(err, ErrSuperseded) {
			t.Errorf("an older Put: %v", err)
		}
		check(t, c, key(i), Meta{FetchStart: at(2)}, content(i, 2))
	}
	meta := Meta{FetchStart: at(3), Expires: at(1 << 30), Attributes: []byte("renewed")}
	for i := 5; i < 20; i++ { // renewed, the first of them while being written
		e, ok := c.Get(key(i))
		if !ok {
			t.Fatal("miss")
		}
		if err := c.Update(e, meta); err != nil {
			t.Fatal(err)
		}
		if err := c.Update(e, Meta{FetchStart: at(2)}); !errors.Is(err, ErrSuperseded) {
			t.Errorf("an older Update: %v", err)
		}
	}
	for i := 30; i < 40; i++ {
		if err := c.Delete(key(i), at(1)); err != nil {
			t.Fatal(err)
		}
	}
	whole := func() {
		t.Helper()
		for i := range 40 {
			switch {
			case i < 5:
				check(t, c, key(i), Meta{FetchStart: at(2)}, content(i, 2))
			case i < 10:
				check(t, c, key(i), meta, content(i, 2))
			case i < 20:
				check(t, c, key(i), meta, content(i, 1))
			case i < 30:
				check(t, c, key(i), Meta{FetchStart: at(1)}, content(i, 1))
			default:
				if _, ok := c.Get(key(i)); ok {
					t.Errorf("%d was deleted", i)
				}
				if err := c.Put(key(i), Meta{FetchStart: at(1)}, nil); !errors.Is(err, ErrSuperseded) {
					t.Errorf("a Put of before the Delete: %v", err)
				}
			}
		}
	}
	whole()
	if s := c.Stats(); s.QueueBytes < 30*2000 || s.Volumes[0].Files != 0 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
	release()
	flush(t, c)
	queueIsEmpty(t, c)
	whole()
	c.volumes[0].reload()
	c.memory.tier.Wait()
	whole()
	if s := c.Stats(); s.QueueBytes != 0 || s.Volumes[0].Files != 30 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// A queue that is full turns writes away and says so; its room is never passed, and
// another volume's lane takes nothing from it.
func TestFullQueue(t *testing.T) {
	c, _, release := stalled(t, 2<<20, 2) // 1 MiB for each
	accepted, refused := 0, 0
	on := func(i int) *volume { return best(Key{Path: fmt.Sprint(i)}.hash(), c.volumes) }
	for i := range 400 {
		err := c.Put(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, make([]byte, 20_000))
		switch {
		case err == nil:
			accepted++
			check(t, c, Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, make([]byte, 20_000))
		case !errors.Is(err, ErrUnavailable) || on(i) != c.volumes[0]:
			t.Fatalf("%d for %s: %v", i, on(i).path, err)
		default:
			refused++
			if _, ok := c.Get(Key{Path: fmt.Sprint(i)}); ok {
				t.Error("what was refused is answered")
			}
		}
		if on(i) == c.volumes[1] { // this disk is well, and so keeps up
			for c.queueLane(1) > 0 {
				runtime.Gosched()
			}
		}
		if s := c.Stats(); s.QueueBytes > s.QueueMax || s.QueueMax != 2<<20 {
			t.Fatalf("%+v", s)
		}
	}
	if refused == 0 || c.Stats().Dropped != uint64(refused) {
		t.Errorf("%d refused, %d counted", refused, c.Stats().Dropped)
	}
	// A large body that goes past the queue is not let in either.
	for i := 1000; i < 1010; i++ {
		if on(i) == c.volumes[0] {
			err := c.PutFrom(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, 3<<20, zeros{})
			if !errors.Is(err, ErrUnavailable) {
				t.Errorf("PutFrom: %v", err)
			}
			break
		}
	}
	release()
	flush(t, c)
	queueIsEmpty(t, c)
	if n := c.Stats().Volumes[0].Files + c.Stats().Volumes[1].Files; int(n) != accepted {
		t.Errorf("%d files, %d were accepted", n, accepted)
	}
}

func (c *Cache) queueLane(i int) int64 {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return c.queue.lanes[c.volumes[i]].bytes
}

// A write that fails after it was answered leaves nothing older behind: not the file
// that was there before, and not in another volume.
func TestFailedQueuedWrite(t *testing.T) {
	c, files, release := stalled(t, 64<<20, 1)
	key := Key{Path: "/a"}
	release()
	if err := c.Put(key, Meta{FetchStart: at(1)}, []byte("old")); err != nil {
		t.Fatal(err)
	}
	flush(t, c)
	files.break_(failing(syscall.EMFILE, "create")) // harms nothing but this write
	if err := c.Put(key, Meta{FetchStart: at(2)}, []byte("new")); err != nil {
		t.Fatal(err)
	}
	flush(t, c)
	if e, ok := c.Get(key); ok {
		t.Errorf("the body of %v is answered after a newer one was", e.Meta.FetchStart)
	}
	if s := c.Stats(); s.Dropped != 1 || s.Volumes[0].State != StateOK {
		t.Errorf("%+v", s)
	}
	files.break_(nil)
	if err := c.Put(key, Meta{FetchStart: at(3)}, []byte("newest")); err != nil {
		t.Fatal(err)
	}
	flush(t, c)
	check(t, c, key, Meta{FetchStart: at(3)}, []byte("newest"))
	settle(c)

	// A volume that is out takes nothing in: what it has is not put at risk.
	files.break_(failing(syscall.EIO, "create"))
	if err := c.Put(Key{Path: "/b"}, Meta{FetchStart: at(1)}, nil); err != nil {
		t.Fatal(err)
	}
	flush(t, c)
	if err := c.Put(key, Meta{FetchStart: at(4)}, []byte("more")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Put: %v", err)
	}
	check(t, c, key, Meta{FetchStart: at(3)}, []byte("newest")) // from memory
}

// Of two volumes one fails: what waits for it is written by the other.
func TestQueueGoesElsewhere(t *testing.T) {
	c, files, release := stalled(t, 64<<20, 2)
	release()
	files.break_(func(op, name string) error {
		if op == "create" && strings.Contains(name, "/0/tmp/") {
			return syscall.EIO
		}
		return nil
	})
	for i := range 100 {
		if err := c.Put(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, c)
	for i := range 100 {
		check(t, c, Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, fmt.Append(nil, i))
	}
	if s := c.Stats(); s.Dropped != 0 || s.Volumes[0].State != StateOut || s.Volumes[1].Files != 100 {
		t.Errorf("%+v", s)
	}
}

// Close writes what waits; a disk that never answers is not waited for.
func TestCloseFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(t.TempDir())
		files := &faulty{}
		c, err := open(cfg, roomy(), Options{Log: slogger(newMessages()), Now: newClock().Now}, files)
		if err != nil {
			t.Fatal(err)
		}
		files.break_(func(op, _ string) error {
			if op == "create" {
				<-time.After(100 * time.Millisecond) // of the bubble's clock
			}
			return nil
		})
		for i := range 50 {
			if err := c.Put(Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Flush(short1(t)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not written yet") {
			t.Errorf("Flush without time: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.Put(Key{}, Meta{FetchStart: at(1)}, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Put after Close: %v", err)
		}
		files.break_(nil)
		c, err = open(cfg, roomy(), Options{Log: slogger(newMessages()), Now: newClock().Now}, files)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			check(t, c, Key{Path: fmt.Sprint(i)}, Meta{FetchStart: at(1)}, fmt.Append(nil, i))
		}

		hang := make(chan struct{})
		files.break_(func(op, _ string) error {
			if op == "create" {
				<-hang
			}
			return nil
		})
		for i := range 20 {
			if err := c.Put(Key{Path: fmt.Sprint("x", i)}, Meta{FetchStart: at(1)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if err := c.Close(); err == nil || !strings.Contains(err.Error(), "20 entries were not written in time") || time.Since(start) > closeWait {
			t.Errorf("Close after %v: %v", time.Since(start), err)
		}
		close(hang)
		synctest.Wait()
	})
}

func short1(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// Bodies that go past the queue and those that wait in it keep the order of fetches.
func TestStreamAndQueue(t *testing.T) {
	c, files, release := stalled(t, 64<<20, 1)
	key := Key{Path: "/a"}
	large := func(b byte) io.Reader { return bytes.NewReader(bytes.Repeat([]byte{b}, 1<<20)) }
	if err := c.Put(key, Meta{FetchStart: at(2)}, []byte("queued")); err != nil {
		t.Fatal(err)
	}
	if err := c.PutFrom(key, Meta{FetchStart: at(1)}, 1<<20, large('x')); !errors.Is(err, ErrSuperseded) {
		t.Errorf("an older body past the queue: %v", err)
	}
	// The worker hangs in its file; the newer large one overtakes it.
	files.break_(nil)
	if err := c.PutFrom(key, Meta{FetchStart: at(3)}, 1<<20, large('y')); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte{'y'}, 1<<20)
	check(t, c, key, Meta{FetchStart: at(3)}, want)
	release()
	flush(t, c)
	check(t, c, key, Meta{FetchStart: at(3)}, want)
	queueIsEmpty(t, c)
}

// A Delete that meets a write at any point of its way never lets it come back. The
// disk is held at each of its calls in turn while the Delete goes through.
func TestDeleteDuringEachStep(t *testing.T) {
	for _, volumes := range []int{1, 3} {
		for _, step := range []string{"waiting", "create", "write", "close", "rename", "written"} {
			t.Run(fmt.Sprint(step, volumes), func(t *testing.T) {
				c, files, release := stalled(t, 64<<20, volumes)
				release()
				key := Key{Path: "/a"}
				if err := c.Put(key, Meta{FetchStart: at(1)}, []byte("before")); err != nil {
					t.Fatal(err)
				}
				flush(t, c)
				reached, goOn := make(chan struct{}), make(chan struct{})
				var first atomic.Bool
				files.break_(func(op, name string) error {
					at := step
					if at == "waiting" {
						at = "create"
					}
					if op == at && !strings.HasSuffix(name, ".note") && first.CompareAndSwap(false, true) {
						close(reached)
						<-goOn
					}
					return nil
				})
				put := func(second int, body string) error { return c.Put(key, Meta{FetchStart: at(second)}, []byte(body)) }
				if step == "waiting" { // another write of the key is in hand, this one waits behind it
					if err := put(2, "in hand"); err != nil {
						t.Fatal(err)
					}
					<-reached
				}
				if err := put(3, "old picture"); err != nil {
					t.Fatal(err)
				}
				if step == "written" {
					flush(t, c)
					close(reached)
				}
				<-reached
				deleted := make(chan error, 1)
				go func() { deleted <- c.Delete(key, at(3)) }()
				if step == "rename" { // the name is being given: the Delete has to wait for it
					c.untilFenced(key)
				} else if err := <-deleted; err != nil {
					t.Fatal(err)
				}
				gone := func() {
					t.Helper()
					if e, ok := c.Get(key); ok {
						t.Errorf("the picture of second %v is back", e.Meta.FetchStart.Sub(base))
					}
				}
				if step != "rename" {
					gone()
				}
				if err := put(3, "old picture"); !errors.Is(err, ErrSuperseded) {
					t.Errorf("the same Put again: %v", err)
				}
				close(goOn)
				if step == "rename" {
					if err := <-deleted; err != nil {
						t.Fatal(err)
					}
				}
				gone()
				flush(t, c)
				gone()
				for _, v := range c.volumes {
					v.reload()
				}
				gone()
				if err := put(4, "new picture"); err != nil {
					t.Fatal(err)
				}
				check(t, c, key, Meta{FetchStart: at(4)}, []byte("new picture"))
				flush(t, c)
				check(t, c, key, Meta{FetchStart: at(4)}, []byte("new picture"))
				queueIsEmpty(t, c)
			})
		}
	}
}

// untilFenced waits until a Delete of the key has begun.
func (c *Cache) untilFenced(key Key) {
	for {
		c.queue.mu.Lock()
		f := c.queue.fences[key.hash()]
		c.queue.mu.Unlock()
		if f != nil {
			return
		}
		runtime.Gosched()
	}
}

// Thousands of interleavings of Puts, Deletes, Updates and readers over three
// volumes whose weights change: no picture that was deleted comes back, and no
// reader ever sees an older one after a newer.
func TestDeletesRaceWithQueuedWrites(t *testing.T) {
	c, _, release := stalled(t, 64<<20, 3)
	release()
	rounds := 1500
	if testing.Short() {
		rounds = 200
	}
	var serial atomic.Int64
	stamp := func() Meta { return Meta{FetchStart: base.Add(time.Duration(serial.Add(1)))} }
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for round := range rounds {
		key := Key{Path: fmt.Sprint(round % 11)}
		c.volumes[round%3].weighed.Store(math.Float64bits(1 + 99*r.Float64()))
		old := stamp()
		if err := c.Put(key, old, []byte("old")); err != nil {
			t.Fatal(err)
		}
		if r.IntN(3) == 0 {
			flush(t, c)
		}
		deletion := stamp()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				var last time.Time
				for range 4 {
					e, ok := c.Get(key)
					if !ok {
						continue
					}
					if e.Meta.FetchStart.Before(last) {
						t.Errorf("fetch %v after %v", e.Meta.FetchStart, last)
					}
					last = e.Meta.FetchStart
					_ = c.Update(e, old)
					_ = e.Close()
				}
			})
		}
		all.Go(func() { _ = c.Put(key, old, []byte("slow")) })
		all.Go(func() { _ = c.PutFrom(key, old, 4, strings.NewReader("slow")) })
		if err := c.Delete(key, deletion.FetchStart); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if e, ok := c.Get(key); ok {
				t.Fatalf("a deleted picture is back: %v, deleted %v", e.Meta.FetchStart, deletion.FetchStart)
			}
		}
		all.Wait()
		if r.IntN(2) == 0 {
			flush(t, c)
		}
		if e, ok := c.Get(key); ok {
			t.Fatalf("a deleted picture is back: %v, deleted %v", e.Meta.FetchStart, deletion.FetchStart)
		}
	}
	flush(t, c)
	queueIsEmpty(t, c)
	for i := range 11 {
		if _, ok := c.Get(Key{Path: fmt.Sprint(i)}); ok {
			t.Error("a deleted picture is back in the end")
		}
	}
}

// A write that a disk holds for longer than a Delete is remembered.
func TestDeleteOutlivesItsGrave(t *testing.T) {
	c, files, release := stalled(t, 64<<20, 1)
	reached := make(chan struct{})
	var first atomic.Bool
	held := files.fail
	files.break_(func(op, name string) error {
		if op == "create" && first.CompareAndSwap(false, true) {
			close(reached)
		}
		return held(op, name)
	})
	key := Key{Path: "/a"}
	if err := c.Put(key, Meta{FetchStart: at(1)}, []byte("old")); err != nil {
		t.Fatal(err)
	}
	<-reached
	if err := c.Delete(key, at(1)); err != nil {
		t.Fatal(err)
	}
	c.volumes[0].tendGraves(at(1).Add(2 * graveAge))
	if n := len(c.volumes[0].graves); n != 0 {
		t.Fatalf("%d graves are left", n)
	}
	release()
	flush(t, c)
	if _, ok := c.Get(key); ok {
		t.Error("the old picture is back")
	}
}
