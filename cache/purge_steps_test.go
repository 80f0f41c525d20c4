package cache

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stepping runs something at the n-th operation of the disk that is not its own.
type stepping struct {
	mu   sync.Mutex
	n    int // operations seen
	at   int // -1 for never
	run  func()
	busy bool // run is or was running
}

func (s *stepping) check(string, string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return nil
	}
	s.n++
	if s.n-1 == s.at {
		s.busy = true
		s.mu.Unlock()
		s.run()
		s.mu.Lock()
	}
	return nil
}

// purgeScene is something that goes on while a purge comes. Before returns what goes on.
type purgeScene struct {
	name   string
	queued bool
	memory bool
	before func(t *testing.T, f *farm) (during func())
}

var large = bytes.Repeat([]byte("old "), 8<<10)

func purgeScenes() []purgeScene {
	key := func(f *farm) Key { return f.key(1) }
	opened := func(t *testing.T, f *farm) *Entry {
		t.Helper()
		e, ok := f.c.Get(key(f))
		if !ok {
			t.Fatal("nothing is stored")
		}
		return e
	}
	put := func(second int) func(f *farm) {
		return func(f *farm) { _ = f.put(1, second) } // what it says is tested elsewhere
	}
	attributes := func(n int) []byte { return bytes.Repeat([]byte{'a'}, n) }
	return []purgeScene{
		{name: "put", before: func(_ *testing.T, f *farm) func() { return func() { put(1)(f) } }},
		{name: "put over an older one", before: func(_ *testing.T, f *farm) func() {
			f.mustPut(1, 1)
			return func() { put(2)(f) }
		}},
		{name: "put into the queue", queued: true, before: func(_ *testing.T, f *farm) func() {
			return func() {
				put(1)(f)
				_ = f.c.Flush(context.Background())
			}
		}},
		{name: "two puts into the queue", queued: true, before: func(_ *testing.T, f *farm) func() {
			f.mustPut(1, 1)
			return func() {
				put(2)(f)
				put(3)(f)
				_ = f.c.Flush(context.Background())
			}
		}},
		{name: "put from a reader", queued: true, before: func(_ *testing.T, f *farm) func() {
			return func() {
				_ = f.c.PutFrom(key(f), Meta{FetchStart: at(1)}, int64(len(large)), bytes.NewReader(large))
			}
		}},
		{name: "put of a variant of an original that was confirmed later", before: func(_ *testing.T, f *farm) func() {
			return func() { _ = f.c.Put(key(f), Meta{FetchStart: at(100), BodyStart: at(1)}, []byte("old")) }
		}},
		{name: "update in place", before: func(t *testing.T, f *farm) func() {
			f.mustPut(1, 1)
			e := opened(t, f)
			return func() {
				_ = f.c.Update(e, Meta{FetchStart: at(100)})
				_ = e.Close()
			}
		}},
		{name: "update in memory", memory: true, before: func(t *testing.T, f *farm) func() {
			f.mustPut(1, 1)
			e := opened(t, f)
			return func() {
				_ = f.c.Update(e, Meta{FetchStart: at(100)})
				_ = e.Close()
				if e, ok := f.c.Get(key(f)); ok {
					_ = e.Close()
				}
			}
		}},
		{name: "update with a new file", before: func(t *testing.T, f *farm) func() {
			f.mustPut(1, 1)
			e := opened(t, f)
			return func() {
				_ = f.c.Update(e, Meta{FetchStart: at(100), Attributes: attributes(3000)})
				_ = e.Close()
			}
		}},
		{name: "two updates", before: func(t *testing.T, f *farm) func() {
			f.mustPut(1, 1)
			return func() {
				for _, second := range []int{100, 200} {
					if e, ok := f.c.Get(key(f)); ok {
						_ = f.c.Update(e, Meta{FetchStart: at(second)})
						_ = e.Close()
					}
				}
			}
		}},
		{name: "update of what waits", queued: true, before: func(_ *testing.T, f *farm) func() {
			return func() {
				put(1)(f)
				if e, ok := f.c.Get(key(f)); ok {
					_ = f.c.Update(e, Meta{FetchStart: at(100)})
					_ = e.Close()
				}
				_ = f.c.Flush(context.Background())
			}
		}},
		{name: "read for the first time", memory: true, before: func(_ *testing.T, f *farm) func() {
			f.mustPut(1, 1)
			f.restart(nil)
			for _, v := range f.c.volumes {
				v.reload()
			}
			return func() {
				if e, ok := f.c.Get(key(f)); ok {
					_ = e.Close()
				}
			}
		}},
		{name: "load", before: func(_ *testing.T, f *farm) func() {
			f.mustPut(1, 1)
			return func() {
				for _, v := range f.c.volumes {
					v.reload()
				}
				f.loaded(len(f.c.volumes))
			}
		}},
	}
}

// TestPurgeAtEachStep has a purge come at each operation of the disk of whatever else
// goes on, with and without a whole sweep at that moment: nothing old is answered
// afterwards, nor when the purge is forgotten, nor after restarts; what is fetched
// later is.
func TestPurgeAtEachStep(t *testing.T) {
	orders := 0
	for _, scene := range purgeScenes() {
		for _, volumes := range []int{1, 2} {
			for _, sweep := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", scene.name, volumes, sweep), func(t *testing.T) {
					// A load has hundreds of steps that are all alike.
					for step := 0; ; step += 1 + step/6 {
						orders++
						if !purgeAt(t, scene, volumes, sweep, step) {
							return
						}
					}
				})
			}
		}
	}
	t.Logf("%d orders", orders)
}

// purgeAt plays a scene with a purge at a step; false if it has no such step.
func purgeAt(t *testing.T, scene purgeScene, volumes int, sweep bool, step int) bool {
	t.Helper()
	weights := make([]float64, volumes)
	for i := range weights {
		weights[i] = 1
	}
	f := newFarmOf(t, scene.queued, scene.memory, weights...)
	during := scene.before(t, f)
	f.clock.advance(200 * time.Second)
	purged := at(50)
	var came atomic.Bool
	s := &stepping{at: step}
	s.run = func() {
		came.Store(true)
		if err := f.c.Purge("s", []string{"/"}, purged); err != nil {
			t.Errorf("step %d: %v", step, err)
		}
		if sweep && !f.inTheWay() {
			untilSwept(t, f.c)
		}
	}
	f.files.break_(s.check)
	during()
	f.files.break_(nil)
	s.mu.Lock() // for a step of somebody else's goroutine
	ended := s.n <= step
	s.mu.Unlock()
	if ended {
		s.run() // after everything
	}
	if !came.Load() {
		return !ended
	}
	miss := func(when string) {
		t.Helper()
		if e, ok := f.c.Get(f.key(1)); ok {
			t.Fatalf("step %d: %s the picture of second %v is back, confirmed at %v", step, when,
				e.Meta.Born().Sub(base), e.Meta.FetchStart.Sub(base))
		}
	}
	miss("at once")
	untilSwept(t, f.c)
	miss("after the sweep")
	if step%3 == 0 {
		f.restart(nil)
		miss("after a restart")
	}
	f.forgotten()
	if n := len(f.c.Purges()); n != 0 {
		t.Fatalf("step %d: %d purges are remembered", step, n)
	}
	miss("when it is forgotten")
	if step%3 == 1 {
		f.restart(nil)
	}
	miss("after a restart when it is forgotten")
	f.only(0)
	for i, v := range f.c.volumes {
		v.mu.Lock()
		reserved := v.reserved
		v.mu.Unlock()
		if reserved != 0 {
			t.Fatalf("step %d: volume %d counts %d bytes for what is not there", step, i, reserved)
		}
	}
	if err := f.put(1, 300); err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	f.want(1, 300)
	if err := f.c.Close(); err != nil {
		t.Fatal(err)
	}
	return !ended
}

// inTheWay tells whether a sweep would have to wait for what goes on: it holds the
// lock of a key whose file has to go.
func (f *farm) inTheWay() bool {
	lock := f.c.volumes[0].keyLock(f.key(1).hash())
	if lock.TryLock() {
		lock.Unlock()
		return false
	}
	for _, n := range f.where() {
		if n > 0 {
			return true
		}
	}
	return false
}

// newFarmOf is a farm with a write queue or a memory tier.
func newFarmOf(t *testing.T, queued, memory bool, weights ...float64) *farm {
	t.Helper()
	f := newFarm(t, weights...)
	f.queued = queued
	if memory {
		f.cfg.Memory = 64 << 20
	}
	f.restart(nil)
	return f
}

// A purge hits what is being read from a book that says much.
func TestManyPurges(t *testing.T) {
	f := newFarm(t, 1)
	for i := range 20 {
		f.mustPut(i, 1)
	}
	list := make([]string, maxPurges+5)
	for i := range list {
		list[i] = fmt.Sprintf("/folder %d/%d", i/20, i)
	}
	list[77] = "/1"
	if err := f.c.Purge("s", list, at(1)); err != nil {
		t.Fatal(err)
	}
	if n := len(f.c.Purges()); n > maxPurges || n < maxPurges/100 {
		t.Errorf("%d purges are remembered", n)
	}
	check := func(when string) {
		t.Helper()
		for i := range 20 {
			if got := f.second(i); got != -1 && strings.HasPrefix(fmt.Sprint(i), "1") {
				t.Errorf("%s: %d is answered", when, i)
			}
		}
	}
	check("at once")
	f.restart(nil)
	check("after a restart")
	putAt(t, f.c, f.key(1), at(100), "new")
	if !answers(f.c, f.key(1)) {
		t.Error("a new entry is missing")
	}
}
