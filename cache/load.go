package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		v.loading = v.loading && v.epoch != epoch // else another load is asked for
		v.mu.Unlock()
		v.advance()
	}()
	p := newPace(v.now)
	for i := range folders {
		if loaded[i] {
			continue
		}
		if err := v.loadFolder(ctx, i, epoch, p, sweep); err != nil {
			if ctx.Err() == nil {
				v.fault(err, false)
				v.log.Warn("cache volume not loaded, its entries are looked up on disk", "err", err)
			}
			return
		}
		v.advance()
	}
	v.allSeen(epoch)
	v.measure(ctx)
	if s := v.stats(); s.Loaded {
		sweep.end()
		v.mu.Lock()
		v.distrust = v.distrust && v.epoch != epoch
		v.mu.Unlock()
		v.log.Info("cache volume loaded", "files", s.Files, "bytes", s.Bytes, "took", v.now().Sub(start).Round(time.Millisecond))
	}
}

func (v *volume) loadFolder(ctx context.Context, i, epoch int, p *pace, sweep *sweep) error {
	sub := fmt.Sprintf("%02x", i)
	dir := v.path + "/entries/" + sub
	err := v.files.Names(dir, func(name string) bool {
		// A name that is none of ours is left alone: somebody else put it there.
		if h, ok := parseHash(name); ok && name[:2] == sub {
			v.loadFile(h, dir+"/"+name, epoch, sweep)
		}
		return p.step(ctx) == nil
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

// found takes a file into the index that was there before. Called with mu held.
func (v *volume) found(r record) {
	v.index.put(r)
	v.unseen = max(v.unseen-r.bytes(), 0)
}

// allSeen ends the guess at what has not been found, once all has.
func (v *volume) allSeen(epoch int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.epoch == epoch && !slices.Contains(v.loaded[:], false) {
		v.unseen = 0
	}
}

// advance wakes those who wait for the load.
func (v *volume) advance() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.progress)
	v.progress = make(chan struct{})
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
	v.found(record{
		hash: h, access: accessed(info).UnixNano(), blocks: blocksOf(onDisk(info)),
		stamp: fingerprint(info), version: v.memory.nextVersion(),
	})
}
