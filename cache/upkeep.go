package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// upkeepEvery is how often the file system's usage is looked at: often enough
	// that a filling disk is met in time, seldom enough to cost nothing.
	upkeepEvery = 2 * time.Second
	// accessEvery is how exactly the time of the last use is kept on disk.
	accessEvery = int64(time.Hour)
	// probeBytes is what a try writes and reads back.
	probeBytes = 4096
)

// upkeep watches the limits and brings a failed volume back.
func (v *volume) upkeep(ctx context.Context) {
	tick := time.NewTicker(v.upkeepEvery)
	defer tick.Stop()
	minute := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := v.now()
		v.measure(ctx)
		if now.Sub(minute) >= time.Minute {
			minute = now
			v.minutely(now)
		}
		v.retry(now)
		v.tendPurges()
	}
}

// measure looks at the file system and evicts what is over the limits.
func (v *volume) measure(ctx context.Context) {
	if v.working() != nil {
		return
	}
	v.measuring.Lock()
	defer v.measuring.Unlock()
	v.weighListings()
	v.shrink(ctx)
	for range 2 { // a second time, to know what the eviction has brought
		u, ok := v.look()
		bytes, files := u.excess(v.high, v.low)
		if !ok || bytes == 0 && files == 0 {
			return
		}
		v.evict(ctx, bytes, files, func() bool {
			u, ok := v.look()
			bytes, files := u.excess(v.low, v.low)
			return !ok || bytes == 0 && files == 0
		})
	}
}

// look asks the file system how full it is.
func (v *volume) look() (usage, bool) {
	u, err := v.files.Usage(v.path)
	if err != nil {
		v.fault(err, false)
		return usage{}, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.usage = u
	return u, true
}

func (v *volume) minutely(now time.Time) {
	v.tendGraves(now)
	v.purges.forget(now)
	v.askSweep() // one that the disk ended goes on
	v.reweigh()
	if v.dirty.Swap(false) {
		v.ask(chore{what: choreSync})
	}
	if n := v.broken.Load(); n != v.brokenLogged {
		v.log.Warn("cache files were broken and have been removed", "files", n-v.brokenLogged)
		v.brokenLogged = n
	}
	if v.working() != nil {
		return
	}
	if !v.attached() {
		v.fault(fmt.Errorf("the folder was removed or replaced: %w", unix.ESTALE), true)
		return
	}
	v.lowerCeiling()
	v.mu.Lock()
	missing := !v.loading && slices.Contains(v.loaded[:], false)
	v.loading = v.loading || missing
	v.mu.Unlock()
	if missing { // a folder could not be read
		v.askLoad()
	}
}

// retry tries a volume that failed, when it is time.
func (v *volume) retry(now time.Time) {
	v.mu.Lock()
	due := v.health.due(now)
	v.mu.Unlock()
	if !due {
		return
	}
	if err := v.probe(); err != nil {
		v.log.Warn("cache volume still fails", "err", err)
		return
	}
	v.purges.restart(v)
	v.mu.Lock()
	v.health.well()
	v.mu.Unlock()
	v.log.Info("cache volume works again")
	v.reload()
	v.askSweep()
}

// probe is what has to work for a volume to be used again.
func (v *volume) probe() error {
	if !v.attached() {
		if err := v.attach(); err != nil {
			return err
		}
	}
	if v.bookUnread {
		if err := v.readPurges(); err != nil {
			return fmt.Errorf("read the book of purges: %w", err)
		}
	}
	name := v.path + "/tmp/" + v.run + "probe"
	err := func() error {
		f, err := v.files.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC)
		if err != nil {
			return err
		}
		defer f.Close()
		b := make([]byte, probeBytes)
		if _, err := f.Write(b); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		return readFull(f, b, 0)
	}()
	if rm := v.files.Remove(name); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	if noSpace(err) {
		return nil // it works, it is only full
	}
	return err
}

// working is nil while the volume is read and written.
func (v *volume) working() error {
	done, err := v.begin()
	if err == nil {
		done()
	}
	return err
}
