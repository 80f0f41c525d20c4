package cache

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Many goroutines put, update and read the same few keys. A reader must see whole
// bodies only, no miss after the first Put, and never an older fetch after a newer.
func TestReadersSeeOrder(t *testing.T) {
	for _, memory := range []int{0, 8 << 20} {
		cfg := testConfig(t.TempDir())
		cfg.Memory = 0
		if memory > 0 {
			cfg.Memory = 8 << 20
		}
		c, _ := openOn(t, cfg, roomy(), osFiles{}, time.Now)
		const keys = 3
		key := func(i int) Key { return Key{Path: fmt.Sprint(i)} }
		content := func(serial int64, size int) []byte {
			return bytes.Repeat([]byte(strconv.FormatInt(serial, 10)+"\n"), size)
		}
		var serial atomic.Int64
		put := func(i int, r *rand.Rand) error {
			n := serial.Add(1)
			size := 10 + r.IntN(3000)
			return c.Put(key(i), Meta{FetchStart: base.Add(time.Duration(n)), Attributes: fmt.Append(nil, n, size)}, content(n, size))
		}
		for i := range keys {
			if err := put(i, rand.New(rand.NewPCG(0, 0))); err != nil {
				t.Fatal(err)
			}
		}
		var writers, readers sync.WaitGroup
		done := make(chan struct{})
		for w := range 3 {
			writers.Go(func() {
				r := rand.New(rand.NewPCG(2, uint64(w)))
				for range 200 {
					if err := put(r.IntN(keys), r); err != nil && !errors.Is(err, ErrSuperseded) {
						t.Error(err)
					}
				}
			})
			readers.Go(func() {
				r := rand.New(rand.NewPCG(3, uint64(w)))
				var last [keys]time.Time
				for n := 0; ; n++ {
					select {
					case <-done:
						return
					default:
					}
					i := r.IntN(keys)
					e, ok := c.Get(key(i))
					if !ok {
						t.Error("miss")
						return
					}
					var s int64
					var size int
					var b bytes.Buffer
					if _, err := e.WriteTo(&b); err != nil {
						t.Error(err)
					}
					if _, err := fmt.Sscan(string(e.Meta.Attributes), &s, &size); err != nil || !bytes.Equal(b.Bytes(), content(s, size)) {
						t.Errorf("wrong bytes, %v", err)
						return
					}
					if e.Meta.FetchStart.Before(last[i]) {
						t.Errorf("fetch of %v after one of %v", e.Meta.FetchStart, last[i])
						return
					}
					last[i] = e.Meta.FetchStart
					if n%5 == 0 {
						meta := Meta{FetchStart: base.Add(time.Duration(serial.Add(1))), Attributes: e.Meta.Attributes}
						if err := c.Update(e, meta); err != nil && !errors.Is(err, ErrSuperseded) {
							t.Error(err)
						}
					}
					if n%50 == 0 && w == 0 {
						c.volumes[0].reload()
					}
					_ = e.Close()
				}
			})
		}
		writers.Wait()
		close(done)
		readers.Wait()
		if s := c.Stats().Volumes[0]; s.Broken != 0 || s.ReadErrors != 0 || s.WriteErrors != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// What a Delete has taken away does not come back, from memory, from disk or by a
// Put that was fetched before it.
func TestDeletedStaysAway(t *testing.T) {
	c, _ := openOn(t, testConfig(t.TempDir()), roomy(), osFiles{}, time.Now)
	for round := range 300 {
		key := Key{Path: fmt.Sprint(round % 7)}
		start := time.Now()
		if err := c.Put(key, Meta{FetchStart: start}, []byte("old")); err != nil {
			t.Fatal(err)
		}
		if round%3 == 0 {
			c.volumes[0].reload() // the index does not know the key
		}
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { // readers bring it into memory and into the index
				if e, ok := c.Get(key); ok {
					_ = c.Update(e, Meta{FetchStart: start})
					_ = e.Close()
				}
			})
		}
		all.Go(func() { _ = c.Put(key, Meta{FetchStart: start}, []byte("slow")) })
		if err := c.Delete(key, start); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		for range 3 {
			if _, ok := c.Get(key); ok {
				t.Fatal("a deleted entry came back")
			}
		}
	}
}

// The same to the letter: a Delete between a read of a file that the index does not
// know yet, and the note of it in the index; also when the file cannot be removed.
func TestDeleteDuringTheFirstRead(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		files := &faulty{}
		c, _ := openOn(t, testConfig(t.TempDir()), roomy(), files, newClock().Now)
		key := Key{Path: "/a"}
		if err := c.Put(key, Meta{FetchStart: at(1)}, []byte("old")); err != nil {
			t.Fatal(err)
		}
		loading := make(chan struct{})
		var first atomic.Bool
		files.break_(func(op, _ string) error {
			switch {
			case op == "names":
				<-loading
			case op == "remove" && stuck:
				return syscall.EBUSY
			case op == "read" && first.CompareAndSwap(false, true):
				if err := c.Delete(key, at(1)); stuck != (err != nil) {
					t.Errorf("Delete: %v", err)
				}
			}
			return nil
		})
		c.volumes[0].reload()
		if e, ok := c.Get(key); ok { // it was there when it was opened
			_ = e.Close()
		}
		settle(c)
		if _, ok := c.Get(key); ok || !first.Load() {
			t.Errorf("a deleted entry came back: %v", ok)
		}
		close(loading)
	}
}

// An eviction that has chosen its victim leaves a file alone that was put meanwhile.
func TestPutDuringEviction(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Memory = 0
	files := &faulty{}
	c, _ := openOn(t, cfg, roomy(), files, newClock().Now)
	key := Key{Path: "/a"}
	if err := c.Put(key, Meta{FetchStart: at(1)}, []byte("old")); err != nil {
		t.Fatal(err)
	}
	// The lock of the key is held, so that the eviction waits with its victim.
	lock := c.volumes[0].keyLock(key.hash())
	lock.Lock()
	evicted := make(chan struct{})
	go func() {
		defer close(evicted)
		c.volumes[0].evict(t.Context(), 0, 1, nil)
	}()
	for c.Stats().Volumes[0].Files != 0 {
		runtime.Gosched()
	}
	c.volumes[0].mu.Lock() // as the commit of a Put does it, which has the lock
	c.volumes[0].index.put(record{hash: key.hash(), version: c.memory.nextVersion()})
	c.volumes[0].mu.Unlock()
	lock.Unlock()
	<-evicted
	check(t, c, key, Meta{FetchStart: at(1)}, []byte("old"))
}

// A slow write of one key holds nobody up: not a Get of another key, nor of the
// same, nor a Put of another.
func TestSlowWriteHoldsNobodyUp(t *testing.T) {
	files := &faulty{}
	c, _ := openOn(t, testConfig(t.TempDir()), roomy(), files, newClock().Now)
	slow, other := Key{Path: "/slow"}, Key{Path: "/other"}
	for _, k := range []Key{slow, other} {
		if err := c.Put(k, Meta{FetchStart: at(1)}, []byte("old")); err != nil {
			t.Fatal(err)
		}
	}
	reached, release := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	files.break_(func(op, _ string) error {
		if op == "write" && first.CompareAndSwap(false, true) {
			close(reached)
			<-release
		}
		return nil
	})
	result := make(chan error, 1)
	go func() { result <- c.Put(slow, Meta{FetchStart: at(2)}, []byte("new")) }()
	<-reached
	check(t, c, other, Meta{FetchStart: at(1)}, []byte("old"))
	check(t, c, slow, Meta{FetchStart: at(1)}, []byte("old"))
	if err := c.Put(other, Meta{FetchStart: at(2)}, []byte("new")); err != nil {
		t.Fatal(err)
	}
	check(t, c, other, Meta{FetchStart: at(2)}, []byte("new"))
	close(release)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	check(t, c, slow, Meta{FetchStart: at(2)}, []byte("new"))
}

// Close waits for what is under way, and everything after it is refused.
func TestClose(t *testing.T) { synctest.Test(t, testClose) }

func testClose(t *testing.T) {
	files := &faulty{}
	cfg := testConfig(t.TempDir())
	c, _ := openOn(t, cfg, roomy(), files, newClock().Now)
	key := Key{Path: "/a"}
	large := strings.Repeat("x", 1<<20)
	if err := c.Put(key, Meta{FetchStart: at(1)}, []byte(large)); err != nil {
		t.Fatal(err)
	}
	open, ok := c.Get(key)
	if !ok {
		t.Fatal("miss")
	}
	defer open.Close()
	reached, release := make(chan struct{}), make(chan struct{})
	files.break_(func(op, name string) error {
		if op == "rename" && strings.Contains(name, "/entries/") {
			close(reached)
			<-release
		}
		return nil
	})
	put, closed := make(chan error, 1), make(chan error, 1)
	go func() { put <- c.Put(key, Meta{FetchStart: at(2)}, []byte("b")) }()
	<-reached
	go func() { closed <- c.Close() }()
	synctest.Wait()
	select {
	case err := <-closed:
		t.Fatalf("closed (%v) while a write is under way", err)
	default:
	}
	close(release)
	if err := errors.Join(<-put, <-closed); err != nil {
		t.Fatal(err)
	}
	if string(body(t, open)) != large {
		t.Error("an open entry changed")
	}
	if _, ok := c.Get(key); ok {
		t.Error("hit after Close")
	}
	for what, err := range map[string]error{
		"Put": c.Put(key, Meta{FetchStart: at(3)}, nil), "PutFrom": c.PutFrom(key, Meta{FetchStart: at(3)}, 0, nil),
		"Update": c.Update(open, Meta{FetchStart: at(3)}), "Delete": c.Delete(key, at(3)),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	c, _ = openOn(t, cfg, roomy(), osFiles{}, newClock().Now) // the lock is free
	check(t, c, key, Meta{FetchStart: at(2)}, []byte("b"))
}

// Close does not wait for ever: a disk may never answer again.
func TestCloseOfADeadDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := &faulty{}
		c, err := open(testConfig(t.TempDir()), roomy(), Options{Log: slogger(newMessages())}, files)
		if err != nil {
			t.Fatal(err)
		}
		release, put := make(chan struct{}), make(chan error, 1)
		files.break_(func(op, _ string) error {
			if op == "write" {
				<-release
			}
			return nil
		})
		go func() { put <- c.Put(Key{}, Meta{FetchStart: at(1)}, []byte("a")) }()
		synctest.Wait()
		start := time.Now()
		if err := c.Close(); err == nil || time.Since(start) != closeWait {
			t.Errorf("Close after %v: %v", time.Since(start), err)
		}
		close(release)
		if err := <-put; err != nil {
			t.Error(err)
		}
		synctest.Wait() // for the worker that hung
	})
}

// What is out of bounds is refused before anything is written.
func TestBounds(t *testing.T) {
	c, _ := openOn(t, testConfig(t.TempDir()), roomy(), osFiles{}, newClock().Now)
	good := Meta{FetchStart: at(1)}
	for name, err := range map[string]error{
		"long key":        c.Put(Key{Path: strings.Repeat("a", maxKeyBytes), Form: "x"}, good, nil),
		"long attributes": c.Put(Key{}, Meta{FetchStart: at(1), Attributes: make([]byte, MaxAttributes+1)}, nil),
	} {
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"no FetchStart": c.Put(Key{}, Meta{}, nil),
		"negative size": c.PutFrom(Key{}, good, -1, strings.NewReader("")),
		"no time":       c.Delete(Key{}, time.Time{}),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if s := c.Stats().Volumes[0]; s.Files != 0 {
		t.Errorf("%+v", s)
	}
}
