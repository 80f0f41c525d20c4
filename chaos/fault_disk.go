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
		{name: "full-disk", area: onDisk, needsDisk: true, draw: func(p *proof, rng *rand.Rand) deed {
			hold := between(rng, time.Second, 3*time.Second)
			return deed{fmt.Sprintf("full for %v", hold), func(ctx context.Context) error {
				ballast := filepath.Join(p.system.seen, "ballast")
				if err := fill(ballast); err != nil {
					return err
				}
				pause(ctx, hold)
				return os.Remove(ballast)
			}}
		}},
		{name: "read-only-disk", area: onDisk, needsDisk: true, draw: func(p *proof, rng *rand.Rand) deed {
			hold := between(rng, time.Second, 3*time.Second)
			return deed{fmt.Sprintf("read-only for %v", hold), func(ctx context.Context) error {
				thaw, err := p.freeze(filepath.Join(p.system.cache, "tmp"), filepath.Join(p.system.cache, "entries"))
				defer thaw()
				if err != nil {
					return err
				}
				pause(ctx, hold)
				return nil
			}}
		}},
		{name: "read-only-start", area: onProxy | onDisk, needsDisk: true, draw: func(p *proof, rng *rand.Rand) deed {
			hold := between(rng, time.Second, 2*time.Second)
			return deed{fmt.Sprintf("SIGKILL, started on a read-only disk, the same again after %v on a good one", hold), func(ctx context.Context) error {
				p.killProxy()
				if err := p.remount(unix.MS_RDONLY); err != nil {
					return errors.Join(err, p.startProxy(ctx))
				}
				err := p.startProxy(ctx)
				pause(ctx, hold)
				p.killProxy()
				return errors.Join(err, p.remount(0), p.startProxy(ctx))
			}}
		}},
		{name: "corrupt-cache", area: onDisk, draw: func(p *proof, rng *rand.Rand) deed {
			seed := rng.Uint64()
			return deed{"files of the cache exchanged for damaged ones while karui runs, three times", func(ctx context.Context) error {
				rng := rand.New(rand.NewPCG(seed, 0))
				for range 3 {
					if err := p.damage(rng, exchange); err != nil {
						return err
					}
					pause(ctx, 400*time.Millisecond)
				}
				return nil
			}}
		}},
		{name: "corrupt-at-rest", area: onProxy | onDisk, draw: func(p *proof, rng *rand.Rand) deed {
			seed := rng.Uint64()
			book, words := rng.IntN(2) == 0, "SIGKILL, files of the cache damaged in place, started again"
			if book {
				words = "SIGKILL, files of the cache and the list of purges damaged in place, started again"
			}
			return deed{words, func(ctx context.Context) error {
				p.killProxy()
				rng := rand.New(rand.NewPCG(seed, 0))
				err := p.damage(rng, overwrite)
				if book {
					err = errors.Join(err, p.damageBook(rng))
				}
				return errors.Join(err, p.startProxy(ctx))
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
func (p *proof) freeze(folders ...string) (thaw func(), err error) {
	var frozen []string
	thaw = func() {
		_ = p.system.launch.run(func() error {
			for _, folder := range frozen {
				_ = unix.Unmount(folder, unix.MNT_DETACH) // it goes with the disk at the latest
			}
			return nil
		})
	}
	const flags = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	err = p.system.launch.run(func() error {
		for _, folder := range folders {
			if err := unix.Mount(folder, folder, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("make the cache read-only: %w", err)
			}
			frozen = append(frozen, folder)
			if err := unix.Mount("", folder, "", flags, ""); err != nil {
				return fmt.Errorf("make the cache read-only: %w", err)
			}
		}
		return nil
	})
	return thaw, err
}

// remount changes the flags of the cache's disk, which nobody may be writing to.
func (p *proof) remount(flags uintptr) error {
	err := p.system.launch.run(func() error {
		return unix.Mount("", p.system.cache, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|flags, "")
	})
	if err != nil {
		return fmt.Errorf("remount the cache's disk: %w", err)
	}
	return nil
}

// damage does something to half of the files in the cache, and writes them back by
// put.
func (p *proof) damage(rng *rand.Rand, put func(name string, b []byte) error) error {
	var previous string
	err := filepath.WalkDir(filepath.Join(p.system.seen, "entries"), func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // karui removed it meanwhile
		}
		if err != nil || d.IsDir() || rng.IntN(2) == 0 {
			return err
		}
		err = damageFile(name, previous, rng, put)
		previous = name
		if err == nil {
			p.rec.noteStruck(filesDamaged, 1)
		}
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

// damageBook damages the list of purges that lies beside the files. Without it karui
// cannot know what was purged, and must not answer with anything that is there.
func (p *proof) damageBook(rng *rand.Rand) error {
	name := filepath.Join(p.system.seen, "purges")
	err := damageFile(name, "", rng, overwrite)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	if err == nil {
		p.rec.noteStruck(booksDamaged, 1)
	}
	return err
}

func damageFile(name, other string, rng *rand.Rand, put func(string, []byte) error) error {
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
			b = b[:len(b)/2]
			break
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
	return put(name, b)
}

// overwrite changes a file in place. Whoever is sending it just then sends the
// change, whatever program that is, so karui must not run.
func overwrite(name string, b []byte) error { return os.WriteFile(name, b, 0o600) }

// exchange puts another file in a file's place.
func exchange(name string, b []byte) error {
	if err := os.WriteFile(name+"~", b, 0o600); err != nil {
		_ = os.Remove(name + "~")
		return err
	}
	return os.Rename(name+"~", name)
}
