package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"karui/cache/purge"
)

// untilSwept waits until every volume that is in use has been swept for all purges.
func untilSwept(t testing.TB, c *Cache) {
	t.Helper()
	limit := time.Now().Add(time.Minute)
	for {
		done := true
		for _, s := range c.Purges() {
			done = done && s.Done
		}
		if done {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("not swept within a minute: %+v", c.Purges())
		}
		runtime.Gosched()
	}
}

// forgotten sweeps everything and lets the time pass after which purges are forgotten.
func (f *farm) forgotten() {
	f.t.Helper()
	untilSwept(f.t, f.c)
	f.c.purges.forget(f.clock.advance(PurgeHold))
	for _, v := range f.c.volumes {
		v.tendPurges()
	}
}

// Whatever a volume misses of a purge while it is away does not come back with it, nor
// later when the purge is forgotten; and what is not hit is found again.
func TestMissedPurge(t *testing.T) {
	for name, miss := range missing {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t, 1, 1, 1)
			const files = 240
			for i := range files {
				f.mustPut(i, 1)
			}
			onSick := map[int]bool{}
			for i := range files {
				onSick[i] = f.volume(0).knows(f.key(i).hash())
			}
			// /10.jpg to /19.jpg, and /1.jpg, /100.jpg to /199.jpg
			hit := func(i int) bool { return strings.HasPrefix(fmt.Sprint(i), "1") }
			look := func(when string) {
				t.Helper()
				kept := 0
				for i := range files {
					switch got := f.second(i); {
					case hit(i) && got != -1:
						t.Fatalf("%s: %d was purged and is answered", when, i)
					case !hit(i) && got == 1:
						kept++
					case !hit(i) && !onSick[i]:
						t.Fatalf("%s: %d is lost, and was not purged", when, i)
					}
				}
				if kept < 100 {
					t.Errorf("%s: of those that were not purged, %d are left", when, kept)
				}
			}
			miss(f, func() {
				if err := f.c.Purge("s", []string{"/1"}, at(10)); err != nil {
					t.Fatal(err)
				}
				untilSwept(t, f.c)
				f.c.purges.forget(f.clock.advance(PurgeHold))
				if len(f.c.Purges()) != 1 || len(f.c.Purges()[0].Waiting) != 1 {
					t.Errorf("with a volume away: %+v", f.c.Purges())
				}
			})
			look("on return")
			f.c.volumes[0].minutely(f.clock.Now())
			f.forgotten()
			f.restart(nil)
			f.forgotten()
			if got := f.c.Purges(); len(got) != 0 {
				t.Errorf("after a complete sweep %+v is remembered", got)
			}
			look("when it is forgotten")
			f.restart(nil)
			look("after one more restart")
			for _, name := range filesIn(t, filepath.Dir(f.dirs[0])) {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(b), "s/1") {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// A kill at any instant of a purge leaves all that is not hit; and one after Purge has
// returned leaves nothing that is.
func TestPurgeAndKill(t *testing.T) {
	f := newFarm(t, 1, 1)
	root := filepath.Dir(f.dirs[0])
	for i := range 40 {
		f.mustPut(i, 1)
	}
	if err := f.c.Purge("s", []string{"/0"}, at(2)); err != nil { // so that there are books
		t.Fatal(err)
	}
	untilSwept(t, f.c)
	var copies []string
	keep := func() {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(root)); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, dir)
	}
	for _, v := range f.c.volumes { // not at the same time, to be copied at defined instants
		f.c.purges.add([]purge.Purge{{Site: "s", Prefix: "/1", At: at(3)}})
		v.bookStale.Store(true)
		f.files.break_(func(string, string) error {
			keep()
			return nil
		})
		err := f.c.purges.saveTo(v)
		f.files.break_(nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(copies) < 6 {
			t.Fatalf("%d operations of the disk", len(copies))
		}
		returned := len(copies)
		keep()
		for n, dir := range copies {
			cfg := f.cfg
			cfg.Volumes = nil
			for _, d := range f.dirs {
				cfg.Volumes = append(cfg.Volumes, VolumeConfig{Path: filepath.Join(dir, filepath.Base(d)), MaxSize: 1 << 30, Weight: 1, ClassWeight: 1})
			}
			c, _ := openOn(t, cfg, roomy(), &faulty{}, f.clock.Now)
			for i := 2; i < 40; i++ {
				old := strings.HasPrefix(fmt.Sprint(i), "1")
				got := answers(c, f.key(i))
				if !old && !got {
					t.Fatalf("copy %d of %d: %d is lost", n, len(copies), i)
				}
				if old && got && n >= returned {
					t.Fatalf("copy %d of %d: %d was purged and is answered", n, len(copies), i)
				}
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		copies = nil
	}
}

// A book that the disk has changed says nothing, so the volume starts empty.
func TestDamagedBookOfPurges(t *testing.T) {
	f := newFarm(t, 1)
	for i := range 20 {
		f.mustPut(i, 1)
	}
	if err := f.c.Purge("s", []string{"/1"}, at(2)); err != nil {
		t.Fatal(err)
	}
	if err := f.c.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(f.dirs[0], bookName)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string][]byte{
		"flipped": append([]byte{whole[0] ^ 1}, whole[1:]...), "cut": whole[:len(whole)-9], "empty": {}, "foreign": []byte("hello\n"),
	}
	for what, b := range damaged {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		keep := t.TempDir()
		if err := os.CopyFS(keep, os.DirFS(filepath.Dir(f.dirs[0]))); err != nil {
			t.Fatal(err)
		}
		cfg := f.cfg
		cfg.Volumes = []VolumeConfig{{Path: filepath.Join(keep, filepath.Base(f.dirs[0])), MaxSize: 1 << 30, Weight: 1, ClassWeight: 1}}
		c, log := openOn(t, cfg, roomy(), &faulty{}, f.clock.Now)
		log.wait(t, "the book of purges cannot be read")
		for i := range 20 {
			if answers(c, f.key(i)) {
				t.Errorf("%s: %d is answered", what, i)
			}
		}
		putAt(t, c, f.key(1), at(5), "new")
		if !answers(c, f.key(1)) {
			t.Errorf("%s: a new entry is missing", what)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A volume whose book cannot be read just now is not answered from before it could be.
func TestBookThatCannotBeReadYet(t *testing.T) {
	f := newFarm(t, 1)
	f.mustPut(1, 1)
	f.mustPut(2, 1)
	if err := f.c.Purge("s", []string{"/1"}, at(2)); err != nil {
		t.Fatal(err)
	}
	untilSwept(t, f.c)
	name := f.volume(0).name(f.key(1).hash())
	if err := f.c.Close(); err != nil {
		t.Fatal(err)
	}
	// As after a kill before the sweep had come so far.
	if err := os.WriteFile(name, fileFor(f.key(1), Meta{FetchStart: at(1)}, []byte("1 fetched at 1")), 0o600); err != nil {
		t.Fatal(err)
	}
	f.fail(0, syscall.EIO)
	f.files.break_(func(op, name string) error {
		if op == "open" && strings.HasSuffix(name, "/"+bookName) {
			return syscall.EIO
		}
		return nil
	})
	f.restart(nil)
	f.want(1, -1)
	f.volume(0).retry(f.clock.advance(time.Minute))
	f.want(1, -1)
	if s := f.volume(0).stats().State; s != StateOut {
		t.Errorf("the volume is %s", s)
	}
	f.files.break_(nil)
	f.heal(0)
	f.want(1, -1)
	f.want(2, 1)
}

// Without a disk that takes the book, the purge holds and says so, and is written when
// one does.
func TestPurgeWithoutADisk(t *testing.T) {
	f := newFarm(t, 1, 1)
	for i := range 40 {
		f.mustPut(i, 1)
	}
	f.fail(0, fs.ErrPermission)
	f.fail(1, fs.ErrPermission)
	err := f.c.Purge("s", []string{"/1"}, at(2))
	if err == nil || !strings.Contains(err.Error(), "not over a restart") {
		t.Errorf("the purge says %v", err)
	}
	f.fail(0, nil)
	f.fail(1, nil)
	if f.second(1) != -1 {
		t.Error("it does not hold")
	}
	f.c.volumes[0].tendPurges()
	f.restart(nil)
	if f.second(1) != -1 || f.second(2) != 1 {
		t.Error("it does not hold after the restart")
	}
}

// A sweep goes on after a restart where it was, and is of purges that came while it
// went on, too.
func TestSweepGoesOn(t *testing.T) {
	f := newFarm(t, 1)
	for i := range 300 {
		f.mustPut(i, 1)
	}
	v := f.volume(0)
	f.c.purges.add([]purge.Purge{{Site: "s", Prefix: "/1", At: at(2)}}) // wakes nobody
	rest := newPace(v.now)
	for range 100 {
		if _, err := v.sweepFolder(t.Context(), rest); err != nil {
			t.Fatal(err)
		}
	}
	f.c.purges.add([]purge.Purge{{Site: "s", Prefix: "/2", At: at(2)}})
	v.bookStale.Store(true)
	if err := f.c.purges.saveTo(v); err != nil {
		t.Fatal(err)
	}
	page, err := parseBook(f.c.purges.text(v))
	if err != nil || page.cursor != 100 || len(page.purges) != 2 || page.purges[0].swept+page.purges[1].swept != 100 {
		t.Fatalf("%+v, %v", page, err)
	}
	f.restart(nil)
	f.forgotten()
	if s := f.c.Stats(); s.Purges != 0 || s.Swept == 0 {
		t.Errorf("%d purges, %d files: %+v", s.Purges, s.Swept, f.c.Purges())
	}
	left := 0
	for i := range 300 {
		if f.second(i) == 1 {
			left++
		}
	}
	if left != 300-111-111 {
		t.Errorf("%d left", left)
	}
	f.only(left)
}

// What was fetched before a purge is refused for as long as it may be on its way, also
// when every volume has been swept.
func TestPurgeIsHeld(t *testing.T) {
	f := newFarm(t, 1, 1)
	if err := f.c.Purge("s", []string{"/1"}, at(0)); err != nil {
		t.Fatal(err)
	}
	untilSwept(t, f.c)
	f.c.purges.forget(f.clock.advance(PurgeHold - time.Second))
	if err := f.put(1, 1); !errors.Is(err, ErrSuperseded) {
		t.Errorf("an old picture that comes late: %v", err)
	}
	f.restart(nil)
	if err := f.put(1, 1); !errors.Is(err, ErrSuperseded) {
		t.Errorf("after a restart: %v", err)
	}
	untilSwept(t, f.c)
	f.c.purges.forget(f.clock.advance(2 * time.Second))
	if n := len(f.c.Purges()); n != 0 {
		t.Errorf("%d purges are remembered for ever", n)
	}
}

// A book is on the disk before Purge returns: the file before it gets its name, and
// then the folder.
func TestBookIsSynced(t *testing.T) {
	f := newFarm(t, 1)
	var ops []string
	var mu sync.Mutex
	f.files.break_(func(op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(name, bookName) || name == f.dirs[0] {
			ops = append(ops, op)
		}
		return nil
	})
	if err := f.c.Purge("s", []string{"/1"}, at(0)); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got, want := strings.Join(ops, " "), "create write sync close rename open sync close"; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// Purges that come at once are all kept, and one that is wider takes the place of those
// within it.
func TestManyPurgeAtOnce(t *testing.T) {
	f := newFarm(t, 1, 1)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if err := f.c.Purge("s", []string{fmt.Sprintf("/a/%d.", i)}, at(0)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f.restart(nil)
	if n := len(f.c.Purges()); n != 40 {
		t.Errorf("%d purges after a restart, want 40", n)
	}
	if err := f.c.Purge("s", []string{"/a/"}, at(0)); err != nil {
		t.Fatal(err)
	}
	if err := f.c.Purge("s", []string{"a"}, at(0)); err == nil {
		t.Error("a prefix without a slash is taken")
	}
	if got := f.c.Purges(); len(got) != 1 || got[0].Prefix != "/a/" {
		t.Errorf("%+v", got)
	}
}

// However often an origin says that a picture is still good, its bytes stay as old as
// they are, to a second.
func TestConfirmedBodiesKeepTheirAge(t *testing.T) {
	f := newFarm(t, 1)
	fetched := base.Add(1900 * time.Millisecond)
	putAt(t, f.c, f.key(1), fetched, "body")
	for i := range 50 {
		e, ok := f.c.Get(f.key(1))
		if !ok {
			t.Fatal("lost")
		}
		if born := e.Meta.Born(); born.After(fetched) || fetched.Sub(born) >= time.Second {
			t.Fatalf("after %d words of the origin the body is of %v", i, born.Sub(base))
		}
		if err := f.c.Update(e, Meta{FetchStart: base.Add(time.Duration(3+i) * 1700 * time.Millisecond)}); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What waits for a disk that hangs and was purged is let go at once, and nothing old
// comes to wait after it.
func TestPurgeOfWhatWaits(t *testing.T) {
	c, _, release := stalled(t, 64<<20, 1)
	key := func(i int) Key { return Key{Site: "s", Path: fmt.Sprintf("/%d", i)} }
	for i := range 4 * laneWorkers {
		putAt(t, c, key(i), at(1), strings.Repeat("old ", 1000))
	}
	c.purges.add([]purge.Purge{{Site: "s", Prefix: "/", At: at(2)}})
	c.queue.purge()
	if n := c.Stats().QueueBytes; n > laneWorkers*8000 {
		t.Errorf("%d bytes still wait, beside what is being written", n)
	}
	k := key(1)
	old := &Entry{Key: k, Meta: Meta{FetchStart: at(1)}, bytes: []byte("old"), size: 3, inRAM: true}
	if err := c.queue.put(k.hash(), old); !errors.Is(err, ErrSuperseded) {
		t.Errorf("an old picture that comes to wait: %v", err)
	}
	release()
	flush(t, c)
	queueIsEmpty(t, c)
	if n := c.Stats().Volumes[0].Files; n != 0 {
		t.Errorf("%d files", n)
	}
}

// Nobody knows what a disk that failed has forgotten of its removals, so the volume is
// swept anew; and what it says of its sweep is about the purge that it knew.
func TestSweptVolumeThatFailed(t *testing.T) {
	f := newFarm(t, 1, 1)
	if err := f.c.Purge("s", []string{"/1"}, at(2)); err != nil {
		t.Fatal(err)
	}
	untilSwept(t, f.c)
	f.volume(0).fault(syscall.EIO, true)
	name := f.volume(0).name(f.key(1).hash())
	file := fileFor(f.key(1), Meta{FetchStart: at(1)}, []byte("1 fetched at 1"))
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, file, 0o600)); err != nil {
		t.Fatal(err)
	}
	f.heal(0)
	f.forgotten()
	f.want(1, -1)
	f.only(0)

	p, v, w := f.c.purges, f.c.volumes[0], f.c.volumes[1]
	one := func(second, swept int) page {
		return page{purges: []noted{{purge.Purge{Site: "s", Prefix: "/1", At: at(second)}, f.clock.Now(), swept}}}
	}
	p.merge(v, one(2, folders))
	p.merge(w, one(5, folders))
	if list, _ := p.pending(v); len(list) != 1 || !list[0].At.Equal(at(5)) {
		t.Errorf("the volume was swept for the earlier purge, and counts as swept for the later one: %+v", list)
	}
	if list, _ := p.pending(w); len(list) != 0 {
		t.Errorf("the other volume was swept for it: %+v", list)
	}
}

// What waits for a volume that is not configured, and has become too much, does not
// take the place of a later purge.
func TestTooManyThatWait(t *testing.T) {
	now := at(100)
	p := newPurges(func() time.Time { return now })
	for i := range maxPurges + 1 {
		one := purge.Purge{Site: "s", Prefix: fmt.Sprintf("/images/%d", i), At: at(1)}
		p.list[idOf(one)] = &remembered{Purge: one, noted: at(1), swept: map[*volume]int{}}
	}
	now = now.Add(2 * PurgeHold)
	later := now.Add(-time.Second)
	p.add([]purge.Purge{{Site: "s", Prefix: "/images/", At: later}})
	for i := range maxPurges + 1 { // so much that another volume's book says
		one := purge.Purge{Site: "s", Prefix: fmt.Sprintf("/images/%d", i), At: at(1)}
		p.list[idOf(one)] = &remembered{Purge: one, noted: at(1), swept: map[*volume]int{}}
	}
	p.bound(now)
	p.refresh()
	if !p.set.Load().Hits("s", "/images/x", later) {
		t.Error("a purge is lost to an earlier one")
	}
	if n := len(p.list); n > maxPurges {
		t.Errorf("%d purges are remembered", n)
	}
}

// A folder that cannot be read has not been swept.
func TestSweepOfAnUnreadableFolder(t *testing.T) {
	f := newFarm(t, 1)
	f.mustPut(1, 1)
	folder := filepath.Dir(f.volume(0).name(f.key(1).hash()))
	var tried atomic.Bool
	f.files.break_(func(op, name string) error {
		if op == "names" && name == folder {
			tried.Store(true)
			return syscall.EACCES // not the disk's fault: the volume stays in use
		}
		return nil
	})
	if err := f.c.Purge("s", []string{"/1"}, at(2)); err != nil {
		t.Fatal(err)
	}
	for !tried.Load() {
		runtime.Gosched()
	}
	f.files.break_(nil)
	f.volume(0).askSweep()
	f.forgotten()
	f.want(1, -1)
	f.only(0)
}
