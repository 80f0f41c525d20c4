package cache

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// A key may lie in two volumes: its place changes with the weights, and a removal
// fails, or the process is killed between the new file and the removal of the old.
// What was fetched last is the entry; the other is never answered, and goes.

// knows says whether the index has a file of the key.
func (v *volume) knows(h hash) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.index.find(h) != nil
}

// mayHold says whether the volume has a file of the key that may be read, as far as
// is known without looking at the disk.
func (v *volume) mayHold(h hash) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.index.find(h) != nil || !v.loaded[h[0]] && !v.hidden(h)
}

// glimpse says when the file of a key in this volume was fetched, and whether there
// may be one at all. 0 is a file that cannot be read now: nobody has answered it
// since the volume failed, so it counts as old. Called with the key's lock held.
func (v *volume) glimpse(key *Key, h hash) (fetched int64, there bool) {
	v.mu.Lock()
	r := v.index.find(h)
	out := v.health.state == StateOut
	switch {
	case r != nil && r.fetched != 0:
		fetched, there = r.fetched, true
	case v.graves[h].file, out && (r != nil || !v.loaded[h[0]] && !v.distrust):
		there = true // a hidden file, too: after a restart nobody would know of it
	case r == nil && (v.loaded[h[0]] || v.distrust):
	default:
		fetched = -1 // to be looked up
	}
	v.mu.Unlock()
	if fetched >= 0 {
		return fetched, there
	}
	f, hd, _, err := v.openHead(key, h, unix.O_RDONLY)
	switch {
	case err == nil:
		_ = f.Close()
		return toNano(hd.meta.FetchStart), true
	case errors.Is(err, fs.ErrNotExist):
		return 0, false
	case judge(err, false) == failed:
		v.fault(err, false)
	}
	return 0, true
}

// elsewhere gives the other volumes that have an older copy of the key, to be
// displaced once a newer one is in place here; ErrSuperseded if one of them has a
// copy that was fetched after the given time. Called with the key's lock held.
func (v *volume) elsewhere(key *Key, h hash, fetched int64) (older []*volume, err error) {
	for _, o := range v.others {
		other, there := o.glimpse(key, h)
		if !there {
			continue
		}
		if other > fetched {
			return nil, ErrSuperseded
		}
		older = append(older, o)
	}
	return older, nil
}

// displace makes the volume's copy of a key a miss, since one that was fetched at
// that time is in another volume, and removes the file as soon as the disk lets it.
// Called with the key's lock held.
func (v *volume) displace(h hash, fetched int64) {
	v.mu.Lock()
	v.index.remove(h)
	v.dig(h, grave{dug: v.now().UnixNano(), file: true, until: fetched})
	writable := v.health.state == StateOK && !v.closed
	v.mu.Unlock()
	if !writable || v.empty(h) != nil { // tendGraves tries again
		v.owe(h, fetched)
	}
}

// newestOf says whether a file that the load has come to is the newest copy of its
// key, and removes the older one. Called with the key's lock held.
func (v *volume) newestOf(h hash) bool {
	for _, o := range v.others {
		if !o.knows(h) {
			continue // its own load will meet this one's record
		}
		f, hd, _, err := v.openHead(nil, h, unix.O_RDONLY)
		if err != nil { // the next read will tell
			return !errors.Is(err, errBad) || v.unlink(h) != nil
		}
		_ = f.Close()
		mine := toNano(hd.meta.FetchStart)
		if other, there := o.glimpse(nil, h); there && other >= mine {
			v.displace(h, other)
			return false
		}
		o.displace(h, mine)
	}
	return true
}
