package cache

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// update writes the metadata in place, into the slot that does not hold. Only
// metadata that has outgrown the slot costs a new file.
func (v *volume) update(e *Entry, meta Meta) error {
	done, err := v.begin()
	if err != nil {
		return err
	}
	h := e.Key.hash()
	version, fits, err := v.updateInPlace(e, h, &meta)
	done()
	if err == nil && !fits {
		version, err = v.rewrite(e, h, &meta)
	}
	if err != nil {
		return err
	}
	if e.inRAM {
		v.memory.set(h, version, e.Key, meta, e.sum, e.bytes)
	} else {
		v.memory.drop(h) // of an older version, no use any more
	}
	return nil
}

// mayUpdate asks that the stored body is still the entry's, and nothing fetched
// later has been said about it.
func (v *volume) mayUpdate(e *Entry, meta Meta, stored *head) error {
	switch {
	case stored == nil:
		return ErrGone
	case stored.bodySum != e.sum || stored.size != e.size || stored.meta.FetchStart.After(meta.FetchStart):
		return ErrSuperseded
	}
	return nil
}

// updateInPlace gives meta the stored BodyStart.
func (v *volume) updateInPlace(e *Entry, h hash, meta *Meta) (version uint32, fits bool, err error) {
	lock := v.keyLock(h)
	lock.Lock()
	defer lock.Unlock()
	v.mu.Lock()
	buried := v.buried(h, toNano(meta.FetchStart))
	dead := v.hidden(h)
	v.mu.Unlock()
	if buried || dead {
		return 0, false, ErrGone
	}
	f, hd, before, err := v.openHead(&e.Key, h, unix.O_RDWR)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errBad):
		return 0, false, ErrGone
	case err != nil:
		v.fault(err, true)
		return 0, false, err
	}
	defer f.Close()
	meta.BodyStart = hd.meta.Born()
	if v.purges.hit(&e.Key, meta) {
		return 0, false, ErrGone
	}
	err = v.mayUpdate(e, *meta, &hd)
	if err == nil {
		_, err = v.elsewhere(&e.Key, h, toNano(hd.meta.FetchStart))
	}
	if err != nil {
		v.superseded.Add(1)
		return 0, false, err
	}
	slot := encodeSlot(*meta, hd.sequence+1, hd.headSum)
	if int64(len(slot)) > hd.slotSize {
		return 0, false, nil
	}
	if _, err := f.WriteAt(slot, hd.slots+int64(1-hd.slot)*hd.slotSize); err != nil {
		v.fault(err, true)
		return 0, false, err
	}
	v.dirty.Store(true)
	after, statErr := f.Stat()
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.index.find(h)
	if r == nil {
		return 0, true, nil // not loaded yet: the next read adopts it
	}
	// The body has not been touched: what was verified stays so.
	r.verified = r.verified && r.stamp == fingerprint(before) && statErr == nil
	if statErr == nil {
		r.stamp = fingerprint(after)
	}
	r.version = v.memory.nextVersion()
	r.fetched = toNano(meta.FetchStart)
	return r.version, true, nil
}

// rewrite copies the body into a file with wider slots.
func (v *volume) rewrite(e *Entry, h hash, meta *Meta) (uint32, error) {
	f, hd, _, err := v.openHead(&e.Key, h, unix.O_RDONLY)
	if err != nil {
		return 0, ErrGone
	}
	defer f.Close()
	meta.BodyStart = hd.meta.Born()
	d := draft{key: e.Key, hash: h, meta: *meta, size: hd.size, whole: true}
	d.allow = func(stored *head) error { return v.mayUpdate(e, *meta, stored) }
	d.fill = func(to file) error {
		if _, err := to.Write(encodeHead(e.Key, *meta, hd.size, hd.bodySum)); err != nil {
			return err
		}
		n, err := io.Copy(to, io.NewSectionReader(f, hd.body, hd.size))
		if err == nil && n < hd.size {
			err = short(n, hd.size, nil)
		}
		return err
	}
	return v.write(&d)
}
