package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// loads reads the folders that are not in the index yet, each time it is asked to.
// Until it has come to a folder, unknown keys of it are looked up on disk.
func (v *volume) loads(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.load:
		}
		v.clearTemporary(ctx)
		v.loadAll(ctx)
	}
}

// clearTemporary removes what a killed process left behind, and nothing of this one's.
func (v *volume) clearTemporary(ctx context.Context) {
	dir := v.path + "/tmp"
	err := v.files.Names(dir, func(name string) bool {
		if !strings.HasPrefix(name, v.run) {
			_ = v.files.Remove(dir + "/" + name)
		}
		return ctx.Err() == nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.fault(err, false)
	}
}

func (v *volume) loadAll(ctx context.Context) {
	start := v.now()
	sweep := newSweep(v)
	v.mu.Lock()
	epoch := v.epoch
	loaded := v.loaded
	v.loading = true
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		v.loading = false
		v.mu.Unlock()
	}()
	for i := range folders {
		if loaded[i] {
			continue
		}
		if err := v.loadFolder(ctx, i, epoch, sweep); err != nil {
			if ctx.Err() == nil {
				v.fault(err, false)
				v.log.Warn("cache volume not loaded, its entries are looked up on disk", "err", err)
			}
			return
		}
	}
	v.measure()
	if s := v.stats(); s.Loaded {
		sweep.end()
		v.mu.Lock()
		v.distrust = v.distrust && v.epoch != epoch
		v.mu.Unlock()
		v.log.Info("cache volume loaded", "files", s.Files, "bytes", s.Bytes, "took", v.now().Sub(start).Round(time.Millisecond))
	}
}

func (v *volume) loadFolder(ctx context.Context, i, epoch int, sweep *sweep) error {
	sub := fmt.Sprintf("%02x", i)
	dir := v.path + "/entries/" + sub
	err := v.files.Names(dir, func(name string) bool {
		// A name that is none of ours is left alone: somebody else put it there.
		if h, ok := parseHash(name); ok && name[:2] == sub {
			v.loadFile(h, dir+"/"+name, epoch, sweep)
		}
		return ctx.Err() == nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("load %s: %w", dir, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.epoch == epoch {
		v.loaded[i] = true
	}
	return nil
}

// loadFile holds the key's lock so that no Delete comes between the look at the
// file and the record.
func (v *volume) loadFile(h hash, name string, epoch int, sweep *sweep) {
	lock := v.keyLock(h)
	lock.Lock()
	defer lock.Unlock()
	v.mu.Lock()
	skip := v.index.find(h) != nil || v.graves[h].file || v.epoch != epoch
	distrust := v.distrust
	v.mu.Unlock()
	if skip || distrust && v.unlink(h) == nil {
		return
	}
	info, err := v.files.Lstat(name)
	if err != nil {
		return // gone again, or its next read will tell
	}
	if !info.Mode().IsRegular() || info.Size() < fixedSize { // what a power loss leaves
		if err := v.unlink(h); err == nil {
			v.broken.Add(1)
		}
		return
	}
	if sweep.foreign(name) && v.unlink(h) == nil {
		sweep.removed++
		return
	}
	if !v.newestOf(h) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.epoch != epoch {
		return
	}
	v.index.put(record{
		hash: h, access: accessed(info).UnixNano(), blocks: blocksOf(onDisk(info)),
		stamp: fingerprint(info), version: v.memory.nextVersion(),
	})
}
