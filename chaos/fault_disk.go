package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// diskFaults are what happens to karui's cache.
func diskFaults() []fault {
	return []fault{
		{name: "full-disk", area: "disk", needsDisk: true, draw: func(p *proof, rng *rand.Rand) deed {
			hold := between(rng, time.Second, 3*time.Second)
			return deed{fmt.Sprintf("full for %v", hold), func(ctx context.Context) error {
				ballast := filepath.Join(p.system.cache, "ballast")
				if err := fill(ballast); err != nil {
					return err
				}
				pause(ctx, hold)
				return os.Remove(ballast)
			}}
		}},
		{name: "read-only-disk", area: "disk", needsDisk: true, draw: func(p *proof, rng *rand.Rand) deed {
			hold := between(rng, time.Second, 3*time.Second)
			return deed{fmt.Sprintf("read-only for %v", hold), func(ctx context.Context) error {
				thaw, err := freeze(filepath.Join(p.system.cache, "tmp"), filepath.Join(p.system.cache, "entries"))
				defer thaw()
				if err != nil {
					return err
				}
				pause(ctx, hold)
				return nil
			}}
		}},
		{name: "corrupt-cache", area: "disk", draw: func(p *proof, rng *rand.Rand) deed {
			seed := rng.Uint64()
			return deed{"files of the cache damaged while karui runs, three times", func(ctx context.Context) error {
				rng := rand.New(rand.NewPCG(seed, 0))
				for range 3 {
					if err := damage(filepath.Join(p.system.cache, "entries"), rng); err != nil {
						return err
					}
					pause(ctx, 400*time.Millisecond)
				}
				return nil
			}}
		}},
	}
}

// fill writes a file until nothing more fits.
func fill(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	defer func() { _ = f.Close() }() // it is removed
	block := make([]byte, 16<<10)
	for range 2 * diskSize / len(block) {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return fmt.Errorf("fill the disk: %w", err)
		}
	}
	return errors.New("fill the disk: it has no end")
}

// freeze makes folders read-only for whoever opens something in them from now on,
// until thaw. The disk as a whole cannot be, as long as karui has a file on it open
// for writing, which its lock is.
func freeze(folders ...string) (thaw func(), err error) {
	var frozen []string
	thaw = func() {
		for _, folder := range frozen {
			_ = unix.Unmount(folder, unix.MNT_DETACH) // it goes with the disk at the latest
		}
	}
	for _, folder := range folders {
		if err := unix.Mount(folder, folder, "", unix.MS_BIND, ""); err != nil {
			return thaw, fmt.Errorf("make the cache read-only: %w", err)
		}
		frozen = append(frozen, folder)
		if err := unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return thaw, fmt.Errorf("make the cache read-only: %w", err)
		}
	}
	return thaw, nil
}

// damage does something to half of the files in a folder of entries.
func damage(folder string, rng *rand.Rand) error {
	var previous string
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // karui removed it meanwhile
		}
		if err != nil || d.IsDir() || rng.IntN(2) == 0 {
			return err
		}
		err = damageFile(name, previous, rng)
		previous = name
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("damage the cache: %w", err)
	}
	return nil
}

func damageFile(name, other string, rng *rand.Rand) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return nil
	}
	switch rng.IntN(7) {
	case 0, 1: // one bit
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
	case 2: // its end is missing
		b = b[:rng.IntN(len(b))]
	case 3: // another entry's file
		if other == "" {
			return nil
		}
		if b, err = os.ReadFile(other); err != nil {
			return err
		}
	case 4: // somebody else's file
		b = []byte("GIF89a, but not really")
	case 5: // a hole
		clear(b[len(b)/2:])
	case 6: // more than there was
		b = append(b, b...)
	}
	if rng.IntN(2) == 0 {
		return os.WriteFile(name, b, 0o600) // in place: those who have it open see it change
	}
	if err := os.WriteFile(name+"~", b, 0o600); err != nil {
		_ = os.Remove(name + "~")
		return err
	}
	return os.Rename(name+"~", name)
}
