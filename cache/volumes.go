package cache

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// volumes are the folders of a cache as one: an entry is where an index says, and a
// new one goes where the weights say.
type volumes []*volume

// openVolumes takes all folders into use. A disk that fails is waited for; a folder
// that cannot be used is an error, and then none is.
func openVolumes(cfg []VolumeConfig, disk DiskConfig, opts Options, files fileSystem, m *memory, p *purges) (volumes, error) {
	keys := new(keyLocks)
	vs := make(volumes, len(cfg))
	for i, c := range cfg {
		vs[i] = newVolume(c, disk, opts, files, m, keys)
		vs[i].purges = p
	}
	for i, v := range vs {
		v.others = append(append(v.others, vs[:i]...), vs[i+1:]...)
	}
	for i, v := range vs {
		if err := v.claim(); err != nil {
			err = unusable(i, v.path, err)
			for _, opened := range vs[:i] {
				err = errors.Join(err, opened.close(context.Background())) // nothing is under way
			}
			return nil, err
		}
	}
	missing := vs.introduce()
	for _, g := range missing {
		opts.Log.Info("a cache volume that was used before is not configured; if it returns beside one of the present ones, what has changed meanwhile is not answered from it; "+
			"without any of them, it knows nothing of that: empty it first", "volume", g.path)
	}
	p.begin(vs, missing)
	for _, v := range vs {
		v.ghosts = missing
		v.start()
	}
	return vs, nil
}

// close ends them, or gives up when ctx ends.
func (vs volumes) close(ctx context.Context) error {
	errs := make(chan error, len(vs))
	for _, v := range vs { // at once: each may have to wait for its disk
		go func() { errs <- v.close(ctx) }()
	}
	var all error
	for range vs {
		all = errors.Join(all, <-errs)
	}
	return all
}

// get looks a key up where it lies, or where it may lie: of two copies, the one
// that was fetched last.
func (vs volumes) get(key *Key, h hash) *Entry {
	if len(vs) == 1 {
		return vs[0].get(key, h)
	}
	var best *Entry
	for _, v := range vs {
		if !v.mayHold(h) {
			continue
		}
		e := v.get(key, h)
		if e == nil {
			continue
		}
		if best != nil && !e.Meta.FetchStart.After(best.Meta.FetchStart) {
			e, best = best, e
		}
		if best != nil {
			_ = best.Close() // only read from
		}
		best = e
	}
	return best
}

// write stores a draft in the best volume for its key. Where that fails, the next
// one is tried, unless the body can be read only once.
func (vs volumes) write(d *draft) (version uint32, err error) {
	var failure error
	for _, v := range rank(d.hash, vs) {
		version, err = v.write(d)
		switch {
		case err == nil, errors.Is(err, ErrSuperseded), errors.Is(err, ErrClosed), errors.Is(err, errSource):
			return version, err
		case failure == nil || errors.Is(failure, ErrUnavailable):
			failure = err // what a disk says is better to know than that one is out
		}
		if d.once && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrTooLarge) {
			break // the body has been read
		}
	}
	return 0, failure
}

// outdated says whether something fetched then would lose in any volume.
func (vs volumes) outdated(h hash, fetched int64) bool {
	for _, v := range vs {
		if v.outdated(h, fetched) {
			return true
		}
	}
	return false
}

// overtaken says whether a draft would lose, or cannot be written anywhere. A file
// that the index does not know yet is looked at, so this may wait for a disk in the
// first moments after a start, and not later.
func (vs volumes) overtaken(d *draft) error {
	fetched := toNano(d.meta.FetchStart)
	var failure error
	writable := false
	for _, v := range vs {
		err := v.working()
		writable = writable || err == nil
		if failure == nil {
			failure = err
		}
		v.mu.Lock()
		r := v.index.find(d.hash)
		unknown := r == nil && !v.loaded[d.hash[0]] || r != nil && r.fetched == 0
		v.mu.Unlock()
		if !unknown {
			continue // the queue asks what is known, under its lock
		}
		if other, there := v.glimpse(&d.key, d.hash); there && other > fetched {
			v.superseded.Add(1)
			return ErrSuperseded
		}
	}
	if !writable {
		return failure
	}
	return nil
}

// fit refuses what no volume will ever take.
func (vs volumes) fit(d *draft) error {
	most := int64(0)
	for _, v := range vs {
		most = max(most, v.maxSize)
	}
	if n := d.onDisk(); n > most {
		return fmt.Errorf("%w: %d bytes on disk, the largest max_size is %d", ErrTooLarge, n, most)
	}
	return nil
}

// update gives the entry's body new metadata, wherever it lies now.
func (vs volumes) update(e *Entry, meta Meta) error {
	failure := ErrGone
	for _, v := range vs {
		if len(vs) > 1 && !v.mayHold(e.Key.hash()) {
			continue
		}
		err := v.update(e, meta)
		switch {
		case err == nil:
			return nil
		case errors.Is(failure, ErrGone) && !errors.Is(err, ErrGone), errors.Is(err, ErrSuperseded):
			failure = err
		}
	}
	return failure
}

// remove removes a key from all of them.
func (vs volumes) remove(h hash, at time.Time) error {
	var errs []error
	for _, v := range vs {
		errs = append(errs, v.remove(h, at))
	}
	for _, v := range vs {
		if v.working() == nil {
			v.tellGhosts(h, toNano(at))
			break
		}
	}
	return errors.Join(errs...)
}
