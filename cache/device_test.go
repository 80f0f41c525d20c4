package cache

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mountTmpfs mounts a small tmpfs, or skips the test.
func mountTmpfs(t *testing.T, dir, options string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small tmpfs needs root")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skip("mounting a small tmpfs is not allowed here:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

// mountImage makes an ext4 file system in a file and mounts it, or skips the test.
func mountImage(t *testing.T, image, dir string, bytes int64) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a file needs root")
	}
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(bytes), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=0", image},
		{"mount", "-o", "loop,noatime,errors=continue", image, dir},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no file system in a file here: %v: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-d", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
}

// dropPages has the kernel write out a file system, and forget what it has in memory
// of a folder's files.
func dropPages(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Syncfs(int(f.Fd())), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range filesIn(t, dir) {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// A block device whose sectors cannot be read: the file behind a mounted file
// system is cut short, so that the kernel itself answers reads with EIO.
func TestRealReadErrors(t *testing.T) {
	base := t.TempDir()
	image, dir := filepath.Join(base, "image"), filepath.Join(base, "mounted")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mountImage(t, image, dir, 16<<20)
	cfg := testConfig(dir)
	cfg.Memory = 0
	clk := newClock()
	c, log := openOn(t, cfg, roomy(), osFiles{}, clk.Now)
	defer c.Close() // before the file system goes
	key := func(i int) Key { return Key{Path: fmt.Sprint(i)} }
	content := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8), 'x'}, 40_000) }
	const files = 40
	for i := range files {
		if err := c.Put(key(i), Meta{FetchStart: at(1)}, content(i)); err != nil {
			t.Fatal(err)
		}
	}
	dropPages(t, dir)
	whole, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 64<<10); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		e, ok := c.Get(key(i))
		if !ok {
			continue
		}
		// Its pages may have stayed. Then it is right, or the reader hears of it.
		var w bytes.Buffer
		if _, err := e.WriteTo(&w); err == nil && !bytes.Equal(w.Bytes(), content(i)) {
			t.Errorf("%d: wrong bytes from a device that fails", i)
		}
		_ = e.Close()
	}
	log.wait(t, "volume fails")
	if s := c.Stats().Volumes[0]; s.State != StateOut || s.ReadErrors == 0 {
		t.Fatalf("%+v, want it out", s)
	}
	if err := c.Put(key(0), Meta{FetchStart: at(2)}, nil); !errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.EIO) {
		t.Errorf("Put: %v", err)
	}
	settle(c)

	// The device is well again, with all that it held.
	if err := os.WriteFile(image, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	c.volumes[0].retry(clk.advance(time.Minute))
	log.wait(t, "works again")
	log.wait(t, "cache volume loaded")
	hits := 0
	for i := range files {
		if e, ok := c.Get(key(i)); ok {
			hits++
			if !bytes.Equal(body(t, e), content(i)) {
				t.Errorf("%d: wrong bytes from a device that returned", i)
			}
			_ = e.Close()
		}
	}
	// The files whose reads failed stay away, a handful at most: the first one takes the volume out.
	if hits < files-5 {
		t.Errorf("%d of %d entries after the return", hits, files)
	}
	for i := range files {
		if err := c.Put(key(i), Meta{FetchStart: at(2)}, content(i+1)); err != nil {
			t.Fatal(err)
		}
		check(t, c, key(i), Meta{FetchStart: at(2)}, content(i+1))
	}
}

// A device that takes writes and loses them: the file behind the file system lies
// on a disk that is full. What cannot be written out comes to light by the sync,
// and nothing wrong is answered before or after.
func TestRealWriteErrors(t *testing.T) {
	base := t.TempDir()
	under, dir := filepath.Join(base, "under"), filepath.Join(base, "mounted")
	if err := errors.Join(os.Mkdir(under, 0o700), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	mountTmpfs(t, under, "size=4m")
	mountImage(t, filepath.Join(under, "image"), dir, 64<<20)
	cfg := testConfig(dir)
	cfg.Memory = 0
	clk := newClock()
	c, log := openOn(t, cfg, roomy(), osFiles{}, clk.Now)
	defer c.Close() // before the file system goes
	key := func(i int) Key { return Key{Path: fmt.Sprint(i)} }
	content := func(i int) []byte { return bytes.Repeat([]byte{byte(i), 'y', 'z'}, 100_000) }
	for i := range 60 { // 18 MB where there is room for less than 4
		if err := c.Put(key(i), Meta{FetchStart: at(1)}, content(i)); err != nil {
			break // the kernel may have begun to write out already
		}
	}
	c.volumes[0].dirty.Store(true)
	c.volumes[0].minutely(clk.Now())
	settle(c)
	log.wait(t, "volume fails")
	if s := c.Stats().Volumes[0]; s.State == StateOK {
		t.Fatalf("%+v: 18 MB are taken to be on 4 MB", s)
	}
	for range 2 {
		hits := 0
		for i := range 60 {
			e, ok := c.Get(key(i))
			if !ok {
				continue
			}
			hits++
			var w bytes.Buffer
			if _, err := e.WriteTo(&w); err == nil && !bytes.Equal(w.Bytes(), content(i)) {
				t.Errorf("%d: wrong bytes", i)
			}
			_ = e.Close()
		}
		t.Logf("%d hits, volume is %s", hits, c.Stats().Volumes[0].State)
		c.volumes[0].retry(clk.advance(time.Minute))
	}
}

// A file system without a free inode: Puts fail or make room, reads go on, and it heals.
func TestInodesExhausted(t *testing.T) {
	dir := t.TempDir()
	mountTmpfs(t, dir, "size=32m,nr_inodes=500")
	clk := newClock()
	c, _ := openOn(t, testConfig(dir), DiskConfig{High: 98, Low: 90, Stress: 99}, osFiles{}, clk.Now)
	defer c.Close()
	key := func(i int) Key { return Key{Path: fmt.Sprint(i)} }
	for i := range 1000 { // more than there are inodes, by far
		clk.advance(time.Second)
		if err := c.Put(key(i), Meta{FetchStart: at(1)}, []byte(fmt.Sprint(i))); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	last := func() { check(t, c, key(999), Meta{FetchStart: at(1)}, []byte("999")) }
	last()
	// The upkeep keeps inodes under the limits, too.
	c.volumes[0].measure(t.Context())
	if s := c.Stats().Volumes[0]; s.UsedPercent > 90.5 || s.Evictions == 0 || s.State != StateOK {
		t.Errorf("%+v, want inodes at disk.low", s)
	}
	last()

	// Somebody else takes every inode.
	others := filepath.Join(dir, "others")
	if err := os.Mkdir(others, 0o700); err != nil {
		t.Fatal(err)
	}
	var full error
	for i := 0; full == nil; i++ {
		full = os.WriteFile(filepath.Join(others, fmt.Sprint(i)), nil, 0o600)
	}
	if !errors.Is(full, syscall.ENOSPC) {
		t.Fatal(full)
	}
	last()
	large := Key{Path: "/large"} // cannot be read twice, so no room is made for it
	if err := c.PutFrom(large, Meta{FetchStart: at(1)}, 1<<20, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("PutFrom without an inode: %v", err)
	}
	if err := c.Put(key(2000), Meta{FetchStart: at(1)}, []byte("x")); err != nil {
		t.Errorf("Put made no room: %v", err)
	}
	last()
	if s := c.Stats().Volumes[0]; s.State != StateOK {
		t.Errorf("%+v: a full disk is no broken one", s)
	}
	if err := os.RemoveAll(others); err != nil {
		t.Fatal(err)
	}
	if err := c.PutFrom(large, Meta{FetchStart: at(1)}, 1<<20, zeros{}); err != nil {
		t.Error(err)
	}
	check(t, c, large, Meta{FetchStart: at(1)}, make([]byte, 1<<20))
}
