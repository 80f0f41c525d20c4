package flight

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"karui/proxy/origin"
)

// full gives ways in which neither memory nor disk can be had.
func full(t *testing.T, change func(*Options)) map[string]*Group[string] {
	groups := make(map[string]*Group[string])
	add := func(name string, memory, disk int64, open func() (file, error)) {
		o := Options{Memory: memory, Disk: disk, Log: new(syncBuffer).logger(), Dir: "/"}
		change(&o)
		groups[name] = newGroup(t, o)
		groups[name].store.open = open
	}
	add("no file can be made", 1, 0, func() (file, error) { return nil, syscall.EROFS })
	add("the disk is full at once", 1, 0, (&disk{}).open)
	add("the disk is full later", 1, 0, (&disk{size: 100 << 10}).open)
	add("the disk is full at the spill", 200<<10, 0, (&disk{size: 50 << 10}).open)
	add("the limit of files is reached", 200<<10, 170<<10, func() (file, error) { return &disk{size: 1 << 30}, nil })
	return groups
}

func TestFullDiskBreaksNoImage(t *testing.T) {
	data := noise(1 << 20)
	for name, g := range full(t, func(*Options) {}) {
		for _, length := range []int64{int64(len(data)), -1} {
			t.Run(name, func(t *testing.T) {
				f := newFeed(length)
				var all []*Handle
				for range 5 {
					all = append(all, closing(t, g.Join(t.Context(), "k", f.request())))
				}
				f.head <- nil
				go func() {
					for at := 0; at < len(data); at += 10_000 {
						f.pieces <- data[at:min(at+10_000, len(data))]
					}
					close(f.pieces)
				}()
				var wg sync.WaitGroup
				for i, h := range all {
					wg.Go(func() {
						if p, err := h.Prefix(t.Context(), 4096); err != nil || !bytes.Equal(p, data[:4096]) {
							t.Errorf("prefix: %d bytes, %v", len(p), err)
						}
						var buf bytes.Buffer
						var err error
						if i%2 == 0 {
							_, err = io.Copy(&buf, struct{ io.Reader }{h})
						} else {
							_, err = h.WriteTo(&buf)
						}
						if err != nil || !bytes.Equal(buf.Bytes(), data) {
							t.Errorf("viewer %d: %d bytes, %v", i, buf.Len(), err)
						}
					})
				}
				wg.Wait()
				for _, h := range all {
					_ = h.Close()
				}
				if _, err := all[0].Flight().Whole(t.Context(), 1<<30); !errors.Is(err, ErrNotKept) {
					t.Errorf("Whole: %v", err)
				}
				if _, err := all[0].Flight().Body(t.Context()); !errors.Is(err, ErrNotKept) {
					t.Errorf("Body: %v", err)
				}
				for g.Stats().Flights > 0 {
					runtime.Gosched()
				}
				if s := g.Stats(); s.Paced == 0 || s.Disk != 0 {
					t.Errorf("%+v", s)
				}
				for g.store.memory.used.Load() != 0 { // the flight lets go last
					runtime.Gosched()
				}
			})
		}
	}
}

func TestFullFileSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("karui-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err) // a file is still open
		}
	}()
	var logged syncBuffer
	g := newGroup(t, Options{Memory: 100 << 10, Dir: dir, Log: logged.logger()})
	data := noise(5 << 20)
	f := newFeed(-1)
	a, b := g.Join(t.Context(), "k", f.request()), g.Join(t.Context(), "k", f.request())
	f.head <- nil
	go func() {
		for at := 0; at < len(data); at += 100_000 {
			f.pieces <- data[at:min(at+100_000, len(data))]
		}
		close(f.pieces)
	}()
	var wg sync.WaitGroup
	for _, h := range []*Handle{a, b} {
		wg.Go(func() {
			wantRest(t, h, data)
			_ = h.Close()
		})
	}
	wg.Wait()
	g.Close()
	if s := g.Stats(); s.Spilled != 1 || s.Paced != 1 || s.Disk != 0 {
		t.Errorf("%+v", s)
	}
	if text := string(logged.Bytes()); !strings.Contains(text, "no space left on device") {
		t.Errorf("logged %q", text)
	}
}

func TestPacedFlightTakesNoNewViewers(t *testing.T) {
	for name, g := range full(t, func(*Options) {}) {
		t.Run(name, func(t *testing.T) {
			f := newFeed(-1)
			h := closing(t, g.Join(t.Context(), "k", f.request()))
			f.head <- nil
			f.pieces <- noise(300 << 10)
			for g.Stats().Paced == 0 {
				runtime.Gosched()
			}
			next := closing(t, g.Join(t.Context(), "k", newFeed(0).request()))
			if !next.Leader() {
				t.Error("joined a flight whose beginning is not kept")
			}
			if _, err := h.Prefix(t.Context(), windowBytes+200<<10); !errors.Is(err, ErrNotKept) {
				t.Errorf("got %v", err)
			}
			close(f.pieces)
			wantRest(t, h, noise(300<<10))
		})
	}
}

func TestPacedFetchGoesAtThePaceOfItsReadersAndEndsWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := full(t, func(*Options) {})["no file can be made"]
		f := newFeed(-1)
		a, b := g.Join(t.Context(), "k", f.request()), g.Join(t.Context(), "k", f.request())
		f.head <- nil
		piece := noise(windowPart)
		took := 0
		settle := func() { // offers bytes until they are not taken any more
			for {
				synctest.Wait()
				select {
				case f.pieces <- piece:
					took++
				default:
					return
				}
			}
		}
		settle()
		if most := windowBytes/windowPart + 1; took == 0 || took > most {
			t.Errorf("%d parts were fetched for readers who read none", took)
		}
		before := took
		wantBytes(t, a, piece)
		settle()
		if took != before {
			t.Error("the fetch went on though one reader has not moved")
		}
		wantBytes(t, b, piece)
		settle()
		if took == before {
			t.Error("the fetch did not go on when both readers had moved")
		}
		_ = a.Close()
		_ = b.Close()
		<-f.ctx.Done()
		<-a.Flight().Done()
		if a.Flight().Err() == nil {
			t.Error("looks whole")
		}
		g.Close()
	})
}

func TestReaderThatStallsAPacedFlightIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := full(t, func(o *Options) { o.Stall = 10 * time.Second })["no file can be made"]
		data := noise(1 << 20)
		req := Request{Fetch: body(data, false), Shareable: shareable}
		gate := make(chan struct{})
		req.Fetch = func(ctx context.Context) (*origin.Response, error) {
			<-gate
			return body(data, false)(ctx)
		}
		stuck, slow, quick := g.Join(t.Context(), "k", req), g.Join(t.Context(), "k", req), g.Join(t.Context(), "k", req)
		close(gate)
		start := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for at := 0; at < len(data); at += 16 << 10 { // 16 KiB in 9 s
				wantBytes(t, slow, data[at:at+16<<10])
				pass(9 * time.Second)
			}
			wantRest(t, slow, nil)
		}()
		wantRest(t, quick, data)
		<-done
		if took := time.Since(start); took > 15*time.Minute {
			t.Errorf("took %s", took)
		}
		if _, err := io.ReadAll(stuck); !errors.Is(err, ErrTooSlow) {
			t.Errorf("got %v", err)
		}
		for _, h := range []*Handle{stuck, slow, quick} {
			_ = h.Close()
		}
		g.Close()
	})
}

func TestWhoIsCut(t *testing.T) {
	now := time.Now()
	long := now.Add(-time.Hour)
	for _, tc := range []struct {
		name  string
		who   reader
		other reader
		cut   bool
	}{
		{"holds a waiting one up", reader{since: long}, reader{pos: windowBytes, idle: true}, true},
		{"moved lately", reader{since: now.Add(-time.Second)}, reader{pos: windowBytes, idle: true}, false},
		{"nobody waits", reader{since: long}, reader{pos: windowBytes}, false},
		{"the other one has something to read", reader{since: long}, reader{pos: windowBytes / 2, idle: true}, false},
		{"was woken and has not run yet", reader{since: long, idle: true}, reader{pos: windowBytes, idle: true}, false},
		{"leaves room in the window", reader{since: long, pos: 1}, reader{pos: windowBytes, idle: true}, false},
	} {
		s := newSpool(&store{stall: 10 * time.Second}, -1, nil)
		s.paced, s.size = true, windowBytes
		s.readers[&tc.who], s.readers[&tc.other] = struct{}{}, struct{}{}
		due := s.cutStalled(now)
		if tc.who.cut != tc.cut || tc.other.cut {
			t.Errorf("%s: cut %v, the other %v", tc.name, tc.who.cut, tc.other.cut)
		}
		if tc.cut != (due == 0) || due < 0 || due > 10*time.Second {
			t.Errorf("%s: looks again in %s", tc.name, due)
		}
	}
}

func TestSlowestReaderOfAPacedFlightIsNotCutWhenNobodyWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := full(t, func(o *Options) { o.Stall = 10 * time.Second })["no file can be made"]
		data := noise(1 << 20)
		h := g.Join(t.Context(), "k", Request{Fetch: body(data, false), Shareable: shareable})
		pass(time.Hour)
		wantBytes(t, h, data[:1000])
		pass(time.Hour)
		wantRest(t, h, data[1000:])
		_ = h.Close()
		g.Close()
	})
}
