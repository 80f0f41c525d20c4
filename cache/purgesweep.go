package cache

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// Sweeps remove what purges hit from the disks, so that the purges can be forgotten.
// Each volume is swept by itself, folder after folder and around again: a purge has
// been through it when all folders have been looked at since it came. So purges that
// come one after the other share the work, and a restart goes on where the volume's
// book says.

// saveSweepEvery is how much of a sweep a kill may undo.
const saveSweepEvery = 15 * time.Second

// begin takes the volumes, once they are known, into account.
func (p *purges) begin(vs volumes, missing []ghost) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.volumes, p.ghosts = vs, missing
	p.bound(p.now())
	p.refresh()
}

// restart has a volume swept anew that was out of use: nobody knows what its disk has
// forgotten. It is called before anything is answered from the volume again.
func (p *purges) restart(v *volume) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.list {
		delete(r.swept, v)
	}
	v.bookStale.Store(len(p.list) > 0)
	p.refresh()
}

// pending gives the purges for which the volume is not swept to the end.
func (p *purges) pending(v *volume) (list []*remembered, folder int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.list {
		if r.swept[v] < folders {
			list = append(list, r)
		}
	}
	return list, p.cursors[v]
}

// advance notes that a folder has been looked through for the purges of a list.
func (p *purges) advance(v *volume, list []*remembered) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cursors[v] = (p.cursors[v] + 1) % folders
	for _, r := range list {
		if r.swept[v] < folders {
			r.swept[v]++
		}
	}
}

// last tells whether one more folder completes the sweep for any of them.
func (p *purges) last(v *volume, list []*remembered) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range list {
		if r.swept[v] == folders-1 {
			return true
		}
	}
	return false
}

// forget lets go of purges that have nothing left to hit anywhere.
func (p *purges) forget(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == 0 {
		return
	}
	changed := false
	for id, r := range p.list {
		if len(p.ghosts) == 0 && p.settled(r, now) {
			delete(p.list, id)
			changed = true
		}
	}
	p.refresh()
	for _, v := range p.volumes {
		if changed {
			v.bookStale.Store(true)
		}
	}
}

// count notes a removed file on account of the purge that hit it.
func (p *purges) count(key *Key, meta *Meta) {
	by, _ := p.set.Load().Find(key.Site, key.Path, meta.Born())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed++
	if r := p.list[idOf(by)]; r != nil {
		r.removed++
	}
}

// askSweep wakes the volume's sweep.
func (v *volume) askSweep() {
	select {
	case v.sweepWanted <- struct{}{}:
	default: // it will wake already
	}
}

// sweeps sweeps the volume whenever it is asked to, until nothing is pending or the
// volume fails; then it is asked again by the upkeep.
func (v *volume) sweeps(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.sweepWanted:
		}
		saved := v.now()
		rest := newPace(v.now)
		for {
			swept, err := v.sweepFolder(ctx, rest)
			if err != nil || !swept {
				break
			}
			if v.now().Sub(saved) >= saveSweepEvery {
				saved = v.now()
				v.sync()
				v.bookStale.Store(true)
				_ = v.purges.saveTo(v) // counted there, and only a restart would need it
			}
		}
	}
}

// sweepFolder looks through the next folder; false if nothing is pending.
func (v *volume) sweepFolder(ctx context.Context, rest *pace) (swept bool, err error) {
	list, folder := v.purges.pending(v)
	if len(list) == 0 {
		return false, nil
	}
	if err := v.working(); err != nil {
		return false, err
	}
	err = v.walkFolder(ctx, folder, rest, func(h hash, _ int64) error { return v.sweepFile(h) })
	if err != nil {
		return false, err
	}
	if v.purges.last(v, list) {
		// What has been removed must not be found again after a power loss, when the
		// purge is forgotten.
		v.sync()
		if err := v.working(); err != nil {
			return false, err
		}
	}
	v.purges.advance(v, list)
	if v.purges.sweptBy(v, list) {
		v.bookStale.Store(true)
	}
	return true, nil
}

// sweptBy tells whether the volume has been swept to the end for any of them.
func (p *purges) sweptBy(v *volume, list []*remembered) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range list {
		if r.swept[v] == folders {
			return true
		}
	}
	return false
}

// sweepFile removes a file if a purge hits it. The error is one of the disk.
func (v *volume) sweepFile(h hash) error {
	hd, err := v.purgedHead(h)
	if err != nil || hd == nil {
		return err
	}
	gone := false
	v.discard(h, func() bool {
		hd, err = v.purgedHead(h) // it may be another file by now
		return err == nil && hd != nil
	}, func() {
		gone = true
		v.purges.count(&hd.key, &hd.meta)
	})
	if err == nil && hd != nil && !gone {
		err = errors.New("a purged file cannot be removed") // discard has counted why
	}
	return err
}

// purgedHead gives the head of a file that a purge hits; nil if none does, or if it is
// no entry that could ever be answered.
func (v *volume) purgedHead(h hash) (*head, error) {
	f, hd, _, err := v.openHead(nil, h, unix.O_RDONLY)
	switch {
	case err == nil:
		_ = f.Close()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errBad), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return nil, nil //nolint:nilnil // there is nothing to say about it
	default:
		v.fault(err, false)
		return nil, err
	}
	if !v.purges.hit(&hd.key, &hd.meta) {
		return nil, nil //nolint:nilnil // it stays
	}
	return &hd, nil
}

// tendPurges writes the book if it is not what it should be. Called by the upkeep.
func (v *volume) tendPurges() {
	if v.bookStale.Load() && v.working() == nil {
		_ = v.purges.saveTo(v) // counted there, and tried again
	}
}
