package flight

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"karui/proxy/origin"
)

// syncBuffer is a log that tests read.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

func (b *syncBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// pass lets the clock of a synctest bubble pass.
func pass(d time.Duration) { <-time.After(d) }

// disk is a file in memory that is full after size bytes.
type disk struct {
	mu   sync.Mutex
	data []byte
	size int
}

func (d *disk) WriteAt(p []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(at)+len(p) > d.size {
		return 0, syscall.ENOSPC
	}
	if need := int(at) + len(p); need > len(d.data) {
		d.data = append(d.data, make([]byte, need-len(d.data))...)
	}
	return copy(d.data[at:], p), nil
}

func (d *disk) ReadAt(p []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.NewReader(d.data).ReadAt(p, at)
}

func (d *disk) Close() error { return nil }

func (d *disk) open() (file, error) { return d, nil }

func TestSlowViewerDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{})
		data := noise(100)
		req := Request{Fetch: body(data, true), Shareable: shareable}
		slow := g.Join(t.Context(), "k", req)
		start := time.Now()
		var took time.Duration
		var other sync.WaitGroup
		other.Go(func() {
			h := g.Join(t.Context(), "k", req)
			got, err := io.ReadAll(h)
			if err != nil || !bytes.Equal(got, data) {
				t.Error(err)
			}
			took = time.Since(start)
			_ = h.Close()
		})
		var got []byte
		for one := make([]byte, 1); ; { // one byte a second
			n, err := slow.Read(one)
			got = append(got, one[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		if !bytes.Equal(got, data) || time.Since(start) != 100*time.Second {
			t.Errorf("the slow one got %d bytes in %s", len(got), time.Since(start))
		}
		other.Wait()
		if took != 0 {
			t.Errorf("the other one took %s", took)
		}
		_ = slow.Close()
		g.Close()
	})
}

func TestBodiesGoWhereThereIsRoom(t *testing.T) {
	const kib = 1 << 10
	for _, tc := range []struct {
		name     string
		size     int
		declared bool
		o        Options
		file     bool
	}{
		{"declared, fits", 500 * kib, true, Options{}, false},
		{"declared, exactly the limit", 500 * kib, true, Options{BodyMemory: 500 * kib}, false},
		{"declared, over the limit of a body", 500*kib + 1, true, Options{BodyMemory: 500 * kib}, true},
		{"declared, over the budget", 500 * kib, true, Options{Memory: 600 * kib}, true},
		{"unknown, fits", 5000 * kib, false, Options{}, false},
		{"unknown, exactly the limit", 500 * kib, false, Options{BodyMemory: 500 * kib}, false},
		{"unknown, over the limit of a body", 5000 * kib, false, Options{BodyMemory: 500 * kib}, true},
		{"unknown, over the budget", 5000 * kib, false, Options{Memory: 600 * kib}, true},
		{"no memory at all", 100 * kib, false, Options{Memory: 1}, true},
		{"empty", 0, true, Options{}, false},
		{"one byte", 1, false, Options{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.Dir = t.TempDir()
			g := newGroup(t, tc.o)
			data := noise(tc.size)
			hold := make(chan struct{})
			h := g.Join(t.Context(), "k", Request{Fetch: body(data, tc.declared), Shareable: shareable, Task: func(ctx context.Context, f *Flight) {
				<-f.Done()
				<-hold
			}})
			late := g.Join(t.Context(), "k", Request{})
			wantRest(t, h, data)
			s := g.Stats()
			onDisk := int64(0)
			if tc.file {
				onDisk = int64(tc.size)
			}
			if tc.file != (s.Spilled == 1) || s.Disk != onDisk || s.Paced != 0 {
				t.Errorf("got %+v", s)
			}
			if !tc.file && s.Memory < int64(tc.size) || tc.declared && !tc.file && s.Memory != int64(tc.size) {
				t.Errorf("got %+v", s)
			}
			if left, err := os.ReadDir(tc.o.Dir); err != nil || len(left) != 0 {
				t.Errorf("files with names: %v, %v", left, err)
			}
			var buf bytes.Buffer
			if n, err := late.WriteTo(&buf); err != nil || n != int64(tc.size) || !bytes.Equal(buf.Bytes(), data) {
				t.Errorf("WriteTo: %d bytes, %v", n, err)
			}
			whole, err := h.Flight().Whole(t.Context(), int64(tc.size))
			if err != nil || !bytes.Equal(whole, data) {
				t.Errorf("Whole: %d bytes, %v", len(whole), err)
			}
			again, err := h.Flight().Whole(t.Context(), int64(tc.size))
			if err != nil || unsafe.SliceData(again) != unsafe.SliceData(whole) {
				t.Error("put together twice")
			}
			if _, err := h.Flight().Whole(t.Context(), int64(tc.size)-1); tc.size > 0 && !errors.Is(err, ErrTooLarge) {
				t.Errorf("got %v", err)
			}
			section, err := h.Flight().Body(t.Context())
			if err != nil || section.Size() != int64(tc.size) {
				t.Errorf("Body: %v", err)
			} else if got, err := io.ReadAll(section); err != nil || !bytes.Equal(got, data) {
				t.Errorf("Body: %d bytes, %v", len(got), err)
			} else if tc.size <= 100*kib {
				if err := iotest.TestReader(io.NewSectionReader(section, 0, section.Size()), data); err != nil {
					t.Error(err)
				}
			}
			for _, n := range []int{1, 100, tc.size, tc.size + 1} {
				p, err := h.Flight().Prefix(t.Context(), n)
				if err != nil || !bytes.Equal(p, data[:min(n, tc.size)]) {
					t.Errorf("prefix of %d: %d bytes, %v", n, len(p), err)
				}
			}
			close(hold)
			_ = h.Close()
			_ = late.Close()
			g.Close()
			if s := g.Stats(); s.Memory != 0 || s.Disk != 0 || s.Flights != 0 || s.Viewers != 0 {
				t.Errorf("left: %+v", s)
			}
		})
	}
}

func TestDeclaredBodyIsNotCopied(t *testing.T) {
	g := newGroup(t, Options{})
	data := noise(1 << 20)
	h := closing(t, g.Join(t.Context(), "k", Request{Fetch: body(data, true), Shareable: shareable}))
	whole, err := h.Flight().Whole(t.Context(), 2<<20)
	if err != nil {
		t.Fatal(err)
	}
	prefix, err := h.Prefix(t.Context(), 1000)
	if err != nil || unsafe.SliceData(prefix) != unsafe.SliceData(whole) {
		t.Error("the prefix was copied")
	}
	var seen []unsafe.Pointer
	_, err = h.WriteTo(writeFunc(func(p []byte) (int, error) {
		seen = append(seen, unsafe.Pointer(unsafe.SliceData(p)))
		return len(p), nil
	}))
	if err != nil || seen[len(seen)-1] != unsafe.Pointer(&whole[len(whole)-writeMost]) {
		t.Error("what was written was copied")
	}
}

// Whoever keeps a small body for long keeps no chunk that is many times as large.
func TestSmallBodyLeavesItsChunk(t *testing.T) {
	g := newGroup(t, Options{})
	data := noise(2000)
	h := closing(t, g.Join(t.Context(), "k", Request{Fetch: body(data, false), Shareable: shareable}))
	whole, err := h.Flight().Whole(t.Context(), firstChunk)
	if err != nil || !bytes.Equal(whole, data) {
		t.Fatalf("%d bytes, %v", len(whole), err)
	}
	prefix, err := h.Prefix(t.Context(), 1000)
	if err != nil || unsafe.SliceData(prefix) == unsafe.SliceData(whole) {
		t.Errorf("the body is a piece of its chunk of %d bytes (%v)", firstChunk, err)
	}
	if again, err := h.Flight().Whole(t.Context(), firstChunk); err != nil || unsafe.SliceData(again) != unsafe.SliceData(whole) {
		t.Error("copied twice")
	}
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

func TestWholeFailsAsSoonAsTheBodyIsTooLarge(t *testing.T) {
	for _, length := range []int64{1000, -1} {
		g := newGroup(t, Options{})
		f := newFeed(length)
		h := closing(t, g.Join(t.Context(), "k", f.request()))
		f.head <- nil
		f.pieces <- noise(200)
		if _, err := h.Flight().Prefix(t.Context(), 200); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Flight().Whole(t.Context(), 100); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		close(f.pieces)
	}
}

func TestMemoryForWholeBodiesIsTakenInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, Options{Memory: 4 << 20, Dir: "/"}) // the quarter is 1 MiB
		g.store.open = func() (file, error) { return &disk{size: 1 << 30}, nil }
		var now, most, served int
		var mu sync.Mutex
		for i := range 8 {
			h := g.Join(t.Context(), string(rune('a'+i)), Request{Fetch: body(noise(600<<10), false), Shareable: shareable, Task: func(ctx context.Context, f *Flight) {
				if _, err := f.Whole(ctx, 1<<20); err != nil {
					t.Error(err)
				}
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				pass(time.Second)
				mu.Lock()
				now--
				served++
				mu.Unlock()
			}})
			_ = h.Close()
		}
		pass(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most != 1 || served != 8 {
			t.Errorf("%d at a time, %d served", most, served)
		}
		g.Close()
	})
}

// endless is a body of n bytes that costs no memory.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.left)
	clear(p[:n])
	e.left -= n
	return int(n), nil
}

func endlessBody(n int64, declared bool) Fetch {
	return func(context.Context) (*origin.Response, error) {
		length := int64(-1)
		if declared {
			length = n
		}
		return &origin.Response{Head: origin.Head{Status: 200, Length: length}, Body: io.NopCloser(&endless{n})}, nil
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

func TestMemoryIsBoundedWithFiftySlowViewersOfLargeBodies(t *testing.T) {
	const size, viewers, memory = 100 << 20, 50, 16 << 20
	check := func(t *testing.T, g *Group[string], before int64) {
		t.Helper()
		if used := g.Stats().Memory; used > memory+viewers*(fileBuffer+windowBytes+windowPart) {
			t.Errorf("%d bytes are reserved", used)
		}
		if grown := heap() - before; grown > memory+8<<20 {
			t.Errorf("the heap has grown by %d bytes", grown)
		}
	}
	t.Run("one body", func(t *testing.T) {
		before := heap()
		g := newGroup(t, Options{Memory: memory})
		var all []*Handle
		for range viewers {
			h := closing(t, g.Join(t.Context(), "k", Request{Fetch: endlessBody(size, true), Shareable: shareable}))
			wantBytes(t, h, make([]byte, 10))
			all = append(all, h)
		}
		<-all[0].Flight().Done()
		check(t, g, before)
		if n, err := all[viewers-1].WriteTo(io.Discard); err != nil || n != size-10 {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	t.Run("a body each, and little disk", func(t *testing.T) {
		before := heap()
		g := newGroup(t, Options{Memory: memory, Disk: 64 << 20, Log: new(syncBuffer).logger()})
		var all []*Handle
		for i := range viewers {
			h := closing(t, g.Join(t.Context(), string(rune('a'+i)), Request{Fetch: endlessBody(size, i%2 == 0), Shareable: shareable}))
			wantBytes(t, h, make([]byte, 10))
			all = append(all, h)
		}
		for g.Stats().Paced < viewers {
			runtime.Gosched()
		}
		check(t, g, before)
		if s := g.Stats(); s.Disk > 64<<20 {
			t.Errorf("%d bytes on disk", s.Disk)
		}
		for _, h := range all[:5] {
			if n, err := h.WriteTo(io.Discard); err != nil || n != size-10 {
				t.Errorf("%d bytes, %v", n, err)
			}
		}
	})
}

func TestFileThatCannotBeReadIsAnError(t *testing.T) {
	g := newGroup(t, Options{Memory: 1, Dir: "/"})
	d := &disk{size: 1 << 20}
	g.store.open = d.open
	h := closing(t, g.Join(t.Context(), "k", Request{Fetch: body(noise(100<<10), false), Shareable: shareable}))
	<-h.Flight().Done()
	d.mu.Lock()
	d.data = d.data[:50<<10]
	d.mu.Unlock()
	if _, err := io.ReadAll(h); err == nil {
		t.Error("a part of the body looks whole")
	}
	if _, err := h.Flight().Whole(t.Context(), 1<<20); err == nil {
		t.Error("Whole gave a part of the body")
	}
}

// Whatever the sizes, limits and speeds: each reader gets a prefix of the body,
// all of it unless an error says why not.
func TestSpoolProperty(t *testing.T) {
	data := noise(200 << 10)
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(0, len(data)).Draw(rt, "size")
		declared := rapid.Bool().Draw(rt, "declared")
		broken := rapid.Bool().Draw(rt, "broken")
		steps := rapid.SliceOfN(rapid.IntRange(1, 40<<10), 1, 20).Draw(rt, "steps")
		reads := rapid.SliceOfN(rapid.IntRange(1, 40<<10), 1, 4).Draw(rt, "reads")
		memory := rapid.Int64Range(1, 300<<10).Draw(rt, "memory")
		bodyMemory := rapid.Int64Range(1, 300<<10).Draw(rt, "body memory")
		onDisk := rapid.IntRange(0, 300<<10).Draw(rt, "disk")

		g := New[string](Options{Memory: memory, BodyMemory: bodyMemory, Dir: "/", Log: new(syncBuffer).logger()})
		g.store.open = (&disk{size: onDisk}).open
		length := int64(-1)
		if declared {
			length = int64(size)
		}
		f := newFeed(length)
		if broken {
			f.end = io.ErrUnexpectedEOF
		}
		var handles []*Handle
		for range reads {
			handles = append(handles, g.Join(context.Background(), "k", f.request()))
		}
		f.head <- nil
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for at, i := 0, 0; at < size; i++ {
				n := min(steps[i%len(steps)], size-at)
				select {
				case f.pieces <- data[at : at+n]:
				case <-stop:
					return
				}
				at += n
			}
			close(f.pieces)
		})
		var readers sync.WaitGroup
		for i, h := range handles {
			readers.Go(func() {
				defer func() { _ = h.Close() }()
				var got []byte
				var err error
				for buf := make([]byte, reads[i]); err == nil; {
					var n int
					n, err = h.Read(buf)
					got = append(got, buf[:n]...)
				}
				if want := map[bool]error{false: io.EOF, true: io.ErrUnexpectedEOF}[broken]; !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
				if !bytes.Equal(got, data[:size]) {
					t.Errorf("got %d bytes of %d", len(got), size)
				}
			})
		}
		readers.Wait()
		close(stop)
		wg.Wait()
		g.Close()
		if s := g.Stats(); s.Memory != 0 || s.Disk != 0 || s.Flights != 0 || s.Viewers != 0 {
			t.Errorf("left: %+v", s)
		}
	})
}
