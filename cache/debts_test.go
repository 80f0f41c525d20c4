package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// owed are the bytes of all books of debts.
func (f *farm) owed() (bytes int64) {
	f.t.Helper()
	for _, dir := range f.dirs {
		books, err := os.ReadDir(filepath.Join(dir, "owed"))
		if err != nil {
			continue
		}
		for _, b := range books {
			info, err := b.Info()
			if err != nil {
				f.t.Fatal(err)
			}
			bytes += info.Size()
		}
	}
	return bytes
}

// missing makes volume 0 miss what is done in between: because its disk fails over
// one restart or two, or because it is not configured for a while.
var missing = map[string]func(f *farm, inBetween func()){
	"fails over a restart": func(f *farm, inBetween func()) {
		f.fail(0, syscall.EIO)
		f.out(0, StateOut)
		inBetween()
		f.restart(nil)
		f.restart(nil)
		f.heal(0)
	},
	"fails, and is well after the restart": func(f *farm, inBetween func()) {
		f.fail(0, syscall.EIO)
		f.out(0, StateOut)
		inBetween()
		f.fail(0, nil)
		f.restart(nil)
		f.volume(0).minutely(f.clock.Now())
	},
	"fails from the start": func(f *farm, inBetween func()) {
		f.fail(0, syscall.EIO)
		f.restart(nil)
		inBetween()
		f.restart(nil)
		f.heal(0)
	},
	"is read-only": func(f *farm, inBetween func()) {
		f.fail(0, syscall.EROFS)
		f.out(0, StateReadOnly)
		inBetween()
		f.fail(0, nil)
		f.restart(nil)
		f.volume(0).minutely(f.clock.Now())
	},
	"is not configured": func(f *farm, inBetween func()) {
		all := f.cfg.Volumes
		f.restart(func(c *Config) { c.Volumes = all[1:] })
		inBetween()
		f.restart(nil)
		f.restart(func(c *Config) { c.Volumes = all })
		f.volume(0).minutely(f.clock.Now())
	},
}

// Whatever a volume misses while it is away, also over restarts, comes back neither
// as a deleted entry nor as an older one, even if what replaced it is gone; and what
// has not changed meanwhile is found again.
func TestMissedChanges(t *testing.T) {
	for name, miss := range missing {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t, 1, 1, 1)
			const files = 240
			onSick := map[int]bool{}
			for i := 1; i < files; i++ {
				f.mustPut(i, 1)
				onSick[i] = f.volume(0).knows(f.key(i).hash())
			}
			miss(f, func() {
				for i := 1; i < 80; i++ {
					f.mustPut(i, 2)
				}
				for i := 80; i < 160; i++ {
					_ = f.c.Delete(f.key(i), at(2)) // says that a file may stay
				}
				for i := 1; i < 40; i++ { // and what is new goes again
					for _, v := range f.c.volumes {
						if v.path != f.dirs[0] {
							v.discard(f.key(i).hash(), func() bool { return true }, func() {})
						}
					}
				}
				if f.owed() == 0 {
					t.Error("nothing is booked")
				}
			})
			kept, were := 0, 0
			for i := 1; i < files; i++ {
				got := f.second(i)
				switch {
				case i < 40 && got == 1, i >= 80 && i < 160 && got != -1:
					t.Errorf("an old copy of %d came back: of second %d", i, got)
				case i >= 40 && i < 80:
					f.want(i, 2)
				case i >= 160 && !onSick[i]:
					f.want(i, 1)
				case i >= 160:
					were++
					if got == 1 {
						kept++
					}
				}
			}
			if kept < were-3 { // those whose reads failed are buried
				t.Errorf("%d of %d entries that nobody changed are left", kept, were)
			}
			for _, v := range f.c.volumes {
				v.minutely(f.clock.Now())
			}
			if n := f.owed(); n != 0 {
				t.Errorf("%d bytes of debts are left", n)
			}
			// The volume is as good as any: what is put there stays, over a restart too.
			for i := 1; i < files; i++ {
				f.mustPut(i, 9)
			}
			f.restart(nil)
			for i := 1; i < files; i++ {
				f.want(i, 9)
			}
			if f.where()[0] == 0 {
				t.Error("nothing is put there any more")
			}
		})
	}
}

// A debt spares what was put into the volume after it: the process may be killed
// between the Put and the end of the book.
func TestDebtSparesWhatIsNewer(t *testing.T) {
	f := newFarm(t, 1, 1)
	for i := range 40 {
		f.mustPut(i, 5)
	}
	for i := range 40 {
		if err := f.c.volumes[1].book(f.c.volumes[0].seed, f.key(i).hash(), toNano(at(4))); err != nil {
			t.Fatal(err)
		}
	}
	f.restart(nil)
	f.volume(0).minutely(f.clock.Now())
	for i := range 40 {
		f.want(i, 5)
	}
	f.only(40)
	if n := f.volume(0).stats().Files + f.volume(1).stats().Files; n != 40 {
		t.Errorf("%d files are in the index", n)
	}
	if n := f.owed(); n != 0 {
		t.Errorf("%d bytes of debts are left", n)
	}
}

// More is missed than a book holds: then the volume starts anew, rather than that
// something old comes back. Torn and foreign books do no harm.
func TestBookThatIsFull(t *testing.T) {
	f := newFarm(t, 1, 1)
	for i := range 40 {
		f.mustPut(i, 1)
	}
	held := f.where()
	book := owedFile(f.volume(1), f.volume(0).seed)
	if err := os.MkdirAll(filepath.Dir(book), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, junk := range []string{"zz", "0123456789abcdef"} {
		overwrite(t, filepath.Join(filepath.Dir(book), junk), []byte("no book"))
	}
	overwrite(t, book, []byte("torn"))
	f.restart(nil)
	for i := range 40 {
		f.want(i, 1)
	}
	// A hole of that many records, which are of a hash that no key has.
	overwrite(t, book, nil)
	if err := os.Truncate(book, maxHidden*debtBytes); err != nil {
		t.Fatal(err)
	}
	f.restart(nil)
	left := 0
	for i := range 40 {
		if f.second(i) == 1 {
			left++
		}
	}
	if left != held[1] || f.where()[0] != 0 {
		t.Errorf("%d entries are left, the files are %v, were %v", left, f.where(), held)
	}
	f.volume(0).minutely(f.clock.Now())
	for i := range 40 {
		f.mustPut(i, 2)
		f.want(i, 2)
	}
	f.restart(nil)
	for i := range 40 {
		f.want(i, 2)
	}
}

// A cache of one volume keeps no books.
func TestAloneKeepsNoBooks(t *testing.T) {
	f := newFarm(t, 1)
	for i := range 20 {
		f.mustPut(i, 1)
		if err := f.c.Delete(f.key(i), at(1)); err != nil {
			t.Fatal(err)
		}
	}
	if f.owed() != 0 || len(f.volume(0).members()) != 0 || len(f.volume(0).ghosts) != 0 {
		t.Error("there are books")
	}
}

func TestMembersAreRead(t *testing.T) {
	f := newFarm(t, 1, 1, 1)
	if got := f.volume(1).members(); len(got) != 3 {
		t.Errorf("%v", got)
	}
	for _, text := range []string{"", "x", "0000000000000000 \"/a\"\n", fmt.Sprintf("%016x %q", seedOf("/a"), "/a") + "\n\x00\n"} {
		overwrite(t, filepath.Join(f.dirs[1], "members"), []byte(text))
		if got := f.volume(1).members(); len(got) > 1 || len(got) == 1 && got[0].path != "/a" {
			t.Errorf("%q: %v", text, got)
		}
	}
}
