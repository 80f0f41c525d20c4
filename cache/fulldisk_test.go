package cache

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A real file system that is really full.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small tmpfs needs root")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,nr_inodes=2000"); err != nil {
		t.Skip("mounting a small tmpfs is not allowed here:", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	clk := newClock()
	c, _ := openOn(t, testConfig(dir), DiskConfig{High: 90, Low: 50, Stress: 95}, osFiles{}, clk.Now)
	defer c.Close()
	key := func(i int) Key { return Key{Path: string(rune('a' + i%26)), Rest: string(rune('a' + i/26))} }
	for i := range 200 { // 20 MB in all
		clk.advance(time.Second)
		if err := c.Put(key(i), Meta{FetchStart: at(1)}, make([]byte, 100_000)); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	check(t, c, key(199), Meta{FetchStart: at(1)}, make([]byte, 100_000))
	c.volumes[0].measure(t.Context())
	if s := c.Stats().Volumes[0]; s.UsedPercent > 50 || s.UsedPercent < 20 || s.Evictions == 0 {
		t.Errorf("%+v, want it at disk.low", s)
	}

	// Somebody else fills the disk to the last byte: Puts fail or make room, reads go on.
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(filler, zeros{})
	if cerr := filler.Close(); !errors.Is(err, syscall.ENOSPC) || cerr != nil {
		t.Fatal(err, cerr)
	}
	check(t, c, key(199), Meta{FetchStart: at(1)}, make([]byte, 100_000))
	if err := c.PutFrom(key(1), Meta{FetchStart: at(1)}, 1<<20, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("PutFrom on a full disk: %v", err)
	}
	if left := filesIn(t, filepath.Join(dir, "tmp")); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	if err := c.Put(key(2), Meta{FetchStart: at(1)}, make([]byte, 50_000)); err != nil {
		t.Errorf("Put made no room: %v", err)
	}
	check(t, c, key(2), Meta{FetchStart: at(1)}, make([]byte, 50_000))
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}

	// Read-only: nothing is written, what is there is answered, and it comes back.
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip("cannot remount read-only here:", err)
	}
	c, _ = openOn(t, testConfig(dir), roomy(), osFiles{}, clk.Now)
	defer c.Close()
	if err := c.Put(key(3), Meta{FetchStart: at(1)}, nil); !errors.Is(err, syscall.EROFS) {
		t.Errorf("Put on a read-only disk: %v", err)
	}
	if s := c.Stats().Volumes[0].State; s != StateReadOnly {
		t.Errorf("state %s", s)
	}
	check(t, c, key(2), Meta{FetchStart: at(1)}, make([]byte, 50_000))
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	c.volumes[0].retry(clk.advance(time.Minute))
	if err := c.Put(key(3), Meta{FetchStart: at(1)}, []byte("well")); err != nil {
		t.Errorf("Put on a disk that is well again: %v", err)
	}
	check(t, c, key(3), Meta{FetchStart: at(1)}, []byte("well"))
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
