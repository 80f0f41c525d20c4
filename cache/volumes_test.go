package cache

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// farm is a cache of several volumes whose disks can be made to fail.
type farm struct {
	t     *testing.T
	dirs  []string
	cfg   Config
	clock *clock
	files *faulty
	c     *Cache
	log   *messages
	// queued has writes wait in the queue.
	queued bool

	mu    sync.Mutex
	sick  map[string]error   // by folder
	usage map[string]float64 // used percent, by folder
}

func newFarm(t *testing.T, weights ...float64) *farm {
	base := t.TempDir()
	f := &farm{t: t, cfg: testConfig(base), clock: newClock(), sick: map[string]error{}, usage: map[string]float64{}}
	f.cfg.Memory = 0
	f.cfg.Volumes = nil
	for i, w := range weights {
		dir := filepath.Join(base, fmt.Sprint("disk", i))
		f.dirs = append(f.dirs, dir)
		f.cfg.Volumes = append(f.cfg.Volumes, VolumeConfig{Path: dir, MaxSize: 1 << 30, Weight: w, ClassWeight: 1})
	}
	f.files = &faulty{fail: func(_, name string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for dir, err := range f.sick {
			if strings.HasPrefix(name, dir+"/") || name == dir {
				return err
			}
		}
		return nil
	}}
	f.open()
	return f
}

// Usage is what the farm's disks say.
func (f *farm) Usage(dir string) (usage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	used := int64(f.usage[dir] * 1000)
	return usage{bytesUsed: used, bytesFree: 100_000 - used}, nil
}

type farmFiles struct {
	*faulty
	f *farm
}

func (x farmFiles) Usage(dir string) (usage, error) {
	if err := x.check("statfs", dir); err != nil {
		return usage{}, err
	}
	return x.f.Usage(dir)
}

func (f *farm) open() {
	f.t.Helper()
	f.log = newMessages()
	var err error
	f.c, err = open(f.cfg, roomy(), Options{Log: slogger(f.log), Now: f.clock.Now, upkeepEvery: time.Hour, writeThrough: !f.queued}, farmFiles{f.files, f})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = f.c.Close() })
	f.loaded(len(f.cfg.Volumes) - len(f.sick))
}

func (f *farm) loaded(n int) {
	f.t.Helper()
	for range n {
		f.log.wait(f.t, "cache volume loaded")
	}
}

// restart opens the same folders again, with another configuration if change says so.
func (f *farm) restart(change func(*Config)) {
	f.t.Helper()
	if err := f.c.Close(); err != nil {
		f.t.Fatal(err)
	}
	if change != nil {
		change(&f.cfg)
	}
	f.open()
}

func (f *farm) fail(i int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.sick, f.dirs[i])
	} else {
		f.sick[f.dirs[i]] = err
	}
}

// out uses a volume whose disk fails until that is noticed.
func (f *farm) out(i int, want State) {
	f.t.Helper()
	for n := range 2000 {
		if f.volume(i).stats().State == want {
			return
		}
		_, _ = f.c.Get(f.key(n % 300)) // reads
		if want == StateReadOnly {
			_ = f.put(2000+n, 1)
		}
	}
	f.t.Fatalf("volume %d is %s, want %s", i, f.volume(i).stats().State, want)
}

// heal makes a disk well and has its volume tried.
func (f *farm) heal(i int) {
	f.t.Helper()
	f.fail(i, nil)
	now := f.clock.advance(time.Minute)
	f.volume(i).retry(now)
	f.log.wait(f.t, "works again")
	f.loaded(1)
	f.volume(i).tendGraves(now)
}

func (f *farm) volume(i int) *volume {
	for _, v := range f.c.volumes {
		if v.path == f.dirs[i] {
			return v
		}
	}
	f.t.Fatalf("volume %d is not open", i)
	return nil
}

func (f *farm) key(i int) Key { return Key{Site: "s", Path: fmt.Sprintf("/%d.jpg", i), Form: "webp"} }

func (f *farm) put(i, second int) error {
	return f.c.Put(f.key(i), Meta{FetchStart: at(second)}, fmt.Appendf(nil, "%d fetched at %d", i, second))
}

func (f *farm) mustPut(i, second int) {
	f.t.Helper()
	if err := f.put(i, second); err != nil {
		f.t.Fatalf("%d: %v", i, err)
	}
}

// second gives when what is answered was fetched, -1 for a miss, and checks its bytes.
func (f *farm) second(i int) int {
	f.t.Helper()
	e, ok := f.c.Get(f.key(i))
	if !ok {
		return -1
	}
	defer e.Close()
	s := int(e.Meta.FetchStart.Sub(base) / time.Second)
	if got := string(body(f.t, e)); got != fmt.Sprintf("%d fetched at %d", i, s) {
		f.t.Fatalf("%d: %q", i, got)
	}
	return s
}

func (f *farm) want(i, second int) {
	f.t.Helper()
	if got := f.second(i); got != second {
		f.t.Errorf("key %d is of second %d, want %d", i, got, second)
	}
}

// where counts the files of each volume, on disk and by the index.
func (f *farm) where() []int {
	f.t.Helper()
	n := make([]int, len(f.dirs))
	for i, dir := range f.dirs {
		n[i] = len(filesIn(f.t, filepath.Join(dir, "entries")))
	}
	return n
}

func (f *farm) only(want int) {
	f.t.Helper()
	sum := 0
	for _, n := range f.where() {
		sum += n
	}
	if sum != want {
		f.t.Errorf("%d files on the disks %v, want %d", sum, f.where(), want)
	}
}

// Four volumes of different size and weight get files in proportion to what is
// free times their weight, and every file is found, before and after a restart.
func TestFourVolumes(t *testing.T) {
	f := newFarm(t, 1, 2, 0.5, 1)
	used := []float64{0, 30, 5, 88}
	for i, u := range used {
		f.volume(i).seed = uint64(i + 1) // not by the random path: the same in every run
		f.usage[f.dirs[i]] = u
		f.volume(i).measure(t.Context())
		f.volume(i).minutely(f.clock.Now())
	}
	want := []float64{100, 140, 50, 20}
	const files = 2500
	for i := range files {
		f.mustPut(i, 1)
	}
	for i, n := range f.where() {
		share, due := float64(n)/files, want[i]/310
		if math.Abs(share-due) > 0.03 {
			t.Errorf("volume %d has %.1f %% of the files, want %.1f %%", i, 100*share, 100*due)
		}
		if s := f.c.Stats().Volumes[i]; s.Weight != want[i] || s.Files != int64(n) {
			t.Errorf("%+v, want weight %v and %d files", s, want[i], n)
		}
	}
	for _, reorder := range []func(*Config){nil, func(c *Config) { c.Volumes[0], c.Volumes[3] = c.Volumes[3], c.Volumes[0] }} {
		for i := range files {
			f.want(i, 1)
		}
		f.restart(reorder)
	}
	f.only(files)
}

// The weights follow what is used once a minute, not at once.
func TestWeightsOnceAMinute(t *testing.T) {
	f := newFarm(t, 1, 1)
	f.usage[f.dirs[0]] = 55
	f.volume(0).measure(t.Context())
	if w := f.volume(0).weight(); w != 100 {
		t.Errorf("weight %v before the minute is over", w)
	}
	f.volume(0).minutely(f.clock.Now())
	if w := f.volume(0).weight(); w != 50 {
		t.Errorf("weight %v, want 50", w)
	}
}

// A changed weight loses nothing; a write goes to the new place, and the old copy goes.
func TestChangedWeightLosesNothing(t *testing.T) {
	f := newFarm(t, 1, 1, 1)
	const files = 300
	for i := range files {
		f.mustPut(i, 1)
	}
	before := f.where()
	f.restart(func(c *Config) { c.Volumes[1].Weight = 0.05 })
	if now := f.where(); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("files moved by themselves: %v, were %v", now, before)
	}
	for i := range files {
		f.want(i, 1)
		f.mustPut(i, 2)
		f.want(i, 2)
	}
	f.only(files)
	if now := f.where(); now[1] > before[1]/4 {
		t.Errorf("the light volume has %d files, had %d", now[1], before[1])
	}
	for i := range files {
		if err := f.put(i, 1); !errors.Is(err, ErrSuperseded) {
			t.Fatalf("an older Put: %v", err)
		}
	}
}

// A new volume takes its share of what comes, and what is there stays where it is.
func TestAddedAndRemovedVolumes(t *testing.T) {
	f := newFarm(t, 1, 1, 1)
	all := f.cfg.Volumes
	f.restart(func(c *Config) { c.Volumes = all[:2] })
	const files = 200
	for i := range files {
		f.mustPut(i, 1)
	}
	f.restart(func(c *Config) { c.Volumes = all })
	for i := range files {
		f.want(i, 1)
	}
	for i := range files {
		f.mustPut(1000+i, 2)
	}
	if n := f.where()[2]; n < files/5 || n > files/2 {
		t.Errorf("the new volume has %d of %d new files", n, files)
	}
	onThird := f.where()[2]
	f.restart(func(c *Config) { c.Volumes = all[:2] })
	found := 0
	for i := range files {
		f.want(i, 1)
		if f.second(1000+i) == 2 {
			found++
		}
	}
	if found != files-onThird {
		t.Errorf("%d entries of the two that stayed, want %d", found, files-onThird)
	}
}

// A volume that fails is out, the others carry on with its keys, and when it
// returns nothing is lost and nothing old comes back.
func TestFailedAndReturnedVolume(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.EROFS} {
		t.Run(errno.Error(), func(t *testing.T) {
			f := newFarm(t, 1, 1, 1)
			const files = 300
			for i := range files {
				f.mustPut(i, 1)
			}
			onSick := map[int]bool{}
			for i := range files {
				onSick[i] = f.volume(0).knows(f.key(i).hash())
			}
			f.fail(0, errno)
			for i := range 100 { // new bodies for a third of the keys
				f.mustPut(i, 2)
				f.want(i, 2)
			}
			for i := 100; i < 200; i++ { // a third is deleted
				if err := f.c.Delete(f.key(i), at(2)); err != nil && !onSick[i] {
					t.Errorf("Delete of %d: %v", i, err)
				}
				f.want(i, -1)
			}
			wantState := map[syscall.Errno]State{syscall.EIO: StateOut, syscall.EROFS: StateReadOnly}[errno]
			if s := f.c.Stats().Volumes[0]; s.State != wantState {
				t.Fatalf("%+v", s)
			}
			for i := 200; i < files; i++ {
				if got := f.second(i); got != 1 && !onSick[i] {
					t.Errorf("%d on a volume that is well: %d", i, got)
				}
			}
			// What is new on the others goes again, by eviction or Delete, while the
			// old copies are still on the disk that failed.
			for i := range 50 {
				for _, v := range f.c.volumes[1:] {
					v.evict(t.Context(), 0, 1, nil)
				}
				f.c.volumes[1].discard(f.key(i).hash(), func() bool { return true }, func() {})
				f.c.volumes[2].discard(f.key(i).hash(), func() bool { return true }, func() {})
			}
			f.heal(0)
			for i := range files {
				got := f.second(i)
				switch {
				case i < 100 && got != 2 && got != -1, i >= 100 && i < 200 && got != -1:
					t.Errorf("an old copy of %d came back: %d", i, got)
				case i >= 200 && got != 1 && onSick[i] && errno == syscall.EROFS:
					t.Errorf("%d is lost", i)
				}
			}
			kept := 0
			for i := 200; i < files; i++ {
				if onSick[i] && f.second(i) == 1 {
					kept++
				}
			}
			// One or two of those that lay on the sick disk may have been read and buried.
			n := 0
			for i := 200; i < files; i++ {
				if onSick[i] {
					n++
				}
			}
			if kept < n-3 {
				t.Errorf("%d of %d entries of the volume are left after its return", kept, n)
			}
			if left := f.volume(0); len(left.graves) > 0 {
				left.mu.Lock()
				for h, g := range left.graves {
					if g.file {
						t.Errorf("a file of %s is still hidden", h)
					}
				}
				left.mu.Unlock()
			}
		})
	}
}

// Two copies of a key, as a kill between the new file and the removal of the old
// one leaves them, in either order of the volumes, of loading and of reading.
func TestTwoCopies(t *testing.T) {
	for _, newer := range []int{0, 1} {
		for _, readFirst := range []bool{false, true} {
			t.Run(fmt.Sprint(newer, readFirst), func(t *testing.T) {
				f := newFarm(t, 1, 1)
				const files = 40
				older := 1 - newer
				place := func(dir string, i, second int) {
					h := f.key(i).hash().String()
					name := filepath.Join(dir, "entries", h[:2], h)
					b := fileFor(f.key(i), Meta{FetchStart: at(second)}, fmt.Appendf(nil, "%d fetched at %d", i, second))
					if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, b, 0o600)); err != nil {
						t.Fatal(err)
					}
				}
				if err := f.c.Close(); err != nil {
					t.Fatal(err)
				}
				for i := range files {
					place(f.dirs[older], i, 5)
					place(f.dirs[newer], i, 9)
				}
				loading := make(chan struct{})
				fail := f.files.fail
				f.files.break_(func(op, name string) error {
					if op == "names" && strings.Contains(name, "/entries") && readFirst {
						<-loading
					}
					return fail(op, name)
				})
				log := newMessages()
				var err error
				f.c, err = open(f.cfg, roomy(), Options{Log: slogger(log), Now: f.clock.Now, upkeepEvery: time.Hour, writeThrough: true}, farmFiles{f.files, f})
				if err != nil {
					t.Fatal(err)
				}
				if readFirst {
					for i := range files / 2 {
						f.want(i, 9)
					}
					for i := range 5 { // an Update may not revive the old one either
						e, ok := f.c.volumes[older].get(keyPointer(f.key(i)), f.key(i).hash()), true
						if e == nil || !ok {
							t.Fatal("the older copy is not readable by itself")
						}
						if err := f.c.Update(e, Meta{FetchStart: at(20)}); !errors.Is(err, ErrSuperseded) {
							t.Errorf("Update of the older copy: %v", err)
						}
						_ = e.Close()
						f.want(i, 9)
					}
				}
				close(loading)
				log.wait(t, "cache volume loaded")
				log.wait(t, "cache volume loaded")
				for i := range files {
					f.want(i, 9)
				}
				f.only(files)
				if n := f.where()[older]; n != 0 {
					t.Errorf("%d older copies are left", n)
				}
				// And the newer one gone, nothing of the older one is left to come back.
				for i := range files {
					if err := f.c.Delete(f.key(i), at(9)); err != nil {
						t.Fatal(err)
					}
					f.want(i, -1)
				}
				f.restart(nil)
				for i := range files {
					f.want(i, -1)
				}
			})
		}
	}
}

func keyPointer(k Key) *Key { return &k }

// Whatever happens to the volumes, an answer is never older than one before it.
func TestNoStepBack(t *testing.T) {
	f := newFarm(t, 1, 2, 1)
	const keys = 60
	newest := map[int]int{}
	for round := range 40 {
		switch round % 5 {
		case 1:
			f.fail(round/5%3, syscall.EIO)
		case 3:
			for i := range f.dirs {
				if f.c.Stats().Volumes[i].State != StateOK {
					f.heal(i)
				}
				f.fail(i, nil)
			}
		case 4:
			f.volume(round / 5 % 3).weighed.Store(math.Float64bits(float64(1 + round*7%100)))
		}
		for i := range keys {
			if (i+round)%3 == 0 {
				second := 10*round + 1
				if err := f.put(i, second); err == nil {
					newest[i] = second
				} else if !errors.Is(err, ErrUnavailable) && !errors.Is(err, syscall.EIO) {
					t.Fatal(err)
				}
			}
			if got := f.second(i); got != -1 && got != newest[i] {
				t.Fatalf("round %d: key %d is of second %d, was put at %d", round, i, got, newest[i])
			}
		}
	}
}

// With a disk that fails half of the time while many write and read.
func TestVolumesUnderLoad(t *testing.T) {
	f := newFarm(t, 1, 1, 1)
	var all sync.WaitGroup
	stop := make(chan struct{})
	all.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			f.fail(0, syscall.EIO)
			_ = f.put(5000, n+1)
			f.fail(0, nil)
			f.volume(0).retry(f.clock.advance(time.Minute))
			f.volume(0).tendGraves(f.clock.Now())
		}
	})
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			last := map[int]int{}
			for n := range 400 {
				i := w*100 + n%17
				_ = f.put(i, n+1) // may fail with the disk
				e, ok := f.c.Get(f.key(i))
				if !ok {
					continue
				}
				s := int(e.Meta.FetchStart.Sub(base) / time.Second)
				var got bytes.Buffer
				if _, err := e.WriteTo(&got); err == nil && got.String() != fmt.Sprintf("%d fetched at %d", i, s) {
					t.Errorf("%d: %q", i, got.String())
				}
				_ = e.Close()
				if s < last[i] {
					t.Errorf("%d: second %d after %d", i, s, last[i])
				}
				last[i] = s
			}
		})
	}
	workers.Wait()
	close(stop)
	all.Wait()
}
