package cache

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that has no room for the book gets it from the oldest entries, of which few go;
// one that stays full whatever goes says so, and keeps most of its entries.
func TestPurgeOnAFullDisk(t *testing.T) {
	const files = 300
	for name, enough := range map[string]int{"room": 5, "no room": files} {
		for _, op := range []string{"create", "write", "sync"} {
			t.Run(name+"/"+op, func(t *testing.T) {
				f := newFarm(t, 1)
				for i := range files {
					putAt(t, f.c, f.key(i), at(1), strings.Repeat("x", 40_000))
				}
				f.files.break_(func(o, name string) error {
					if o == op && strings.HasSuffix(name, bookName) && f.c.volumes[0].evictions.Load() < uint64(enough) {
						return syscall.ENOSPC
					}
					return nil
				})
				err := f.c.Purge("s", []string{"/1", "/2"}, at(2))
				gone := f.c.volumes[0].evictions.Load()
				f.files.break_(nil)
				if (err == nil) != (name == "room") || err != nil && !errors.Is(err, ErrUnavailable) {
					t.Errorf("the purge says %v", err)
				}
				if limit := uint64(files * 3 / 4); gone == 0 || gone > limit || name == "room" && gone > 100 {
					t.Errorf("%d entries made room", gone)
				}
				if err != nil {
					return
				}
				text, err := os.ReadFile(filepath.Join(f.dirs[0], bookName))
				if err != nil || !strings.Contains(string(text), `"/1"`) {
					t.Errorf("the book is %q, %v", text, err)
				}
			})
		}
	}
}

// A real file system that somebody else has filled: the purge holds after a kill.
func TestPurgeOnAReallyFullDisk(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small tmpfs needs root")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("mounting a small tmpfs is not allowed here:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	clk := newClock()
	c, _ := openOn(t, testConfig(dir), roomy(), osFiles{}, clk.Now)
	key := func(i int) Key { return Key{Site: "s", Path: "/" + string(rune('a'+i)), Form: "webp"} }
	for i := range 20 {
		putAt(t, c, key(i), at(1), strings.Repeat("x", 100_000))
	}
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(filler, zeros{})
	if cerr := filler.Close(); !errors.Is(err, syscall.ENOSPC) || cerr != nil {
		t.Fatal(err, cerr)
	}
	if err := c.Purge("s", []string{"/a", "/b", "/c"}, at(2)); err != nil {
		t.Fatal(err)
	}
	book, err := os.ReadFile(filepath.Join(dir, bookName)) // what a kill would leave
	if err != nil || !strings.Contains(string(book), `"/b"`) {
		t.Errorf("the book is %q, %v", book, err)
	}
	left := 0
	for i := range 20 {
		if answers(c, key(i)) {
			left++
		}
	}
	if left < 10 {
		t.Errorf("%d of 17 entries are left", left)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
