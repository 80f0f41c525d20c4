package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// blockSize is what file systems round the size of a file up to, nearly all of them.
const blockSize = 4096

func roundUp(bytes int64) int64 { return (bytes + blockSize - 1) / blockSize * blockSize }

// draft is a file to be written.
type draft struct {
	key  Key
	hash hash
	meta Meta
	size int64 // of the body
	// fill writes the whole file. It is called again for another file if the disk
	// was full and it can be; once says that it cannot.
	fill func(f file) error
	once bool
	// allow looks at what is stored under the key at the moment of the exchange;
	// nil is nothing. Unless whole is set it sees no more than the FetchStart.
	allow func(stored *head) error
	whole bool
	// gone says that the draft has been overtaken by a Delete or a newer Put; nil is never.
	gone *atomic.Bool
}

// wholeDraft is the draft of a body that is in memory.
func wholeDraft(key Key, h hash, meta Meta, body []byte, sum uint64) *draft {
	return &draft{key: key, hash: h, meta: meta, size: int64(len(body)), fill: func(f file) error {
		if _, err := f.Write(encodeHead(key, meta, int64(len(body)), sum)); err != nil {
			return err
		}
		_, err := f.Write(body)
		return err
	}}
}

// streamDraft is the draft of a body that can be read once.
func streamDraft(key Key, h hash, meta Meta, size int64, r io.Reader) *draft {
	return &draft{key: key, hash: h, meta: meta, size: size, once: true, fill: func(f file) error {
		// The checksum stands before the body and is known after it.
		if _, err := f.Write(encodeHead(key, meta, size, 0)); err != nil {
			return err
		}
		sum := xxhash.New()
		// Errors of the reader are none of the disk's.
		source := &taintedReader{r: io.TeeReader(io.LimitReader(r, size), sum)}
		n, err := io.Copy(f, source)
		if source.err != nil || err == nil && n < size {
			return short(n, size, source.err)
		}
		if err != nil {
			return err
		}
		_, err = f.WriteAt(encodeHead(key, meta, size, sum.Sum64()), 0)
		return err
	}}
}

// errSource marks an error of the reader that a body came from.
var errSource = errors.New("read body")

func short(n, size int64, err error) error {
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %d of %d bytes: %w", errSource, n, size, err)
}

// taintedReader remembers that an error came from its side of a copy.
type taintedReader struct {
	r   io.Reader
	err error
}

func (t *taintedReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if err != nil && err != io.EOF {
		t.err = err
	}
	return n, err
}

// onDisk is what the file takes, in bytes.
func (d *draft) onDisk() int64 {
	return roundUp(fixedSize + int64(d.key.size()) + 2*slotCapacity(len(d.meta.Attributes)) + d.size)
}

// write makes room, writes the draft under a temporary name, and exchanges it for
// what is stored. It gives the version of the new file.
func (v *volume) write(d *draft) (version uint32, err error) {
	done, err := v.begin()
	if err != nil {
		return 0, err
	}
	defer done()
	if d.allow == nil {
		d.allow = d.later
	}
	if v.outdated(d.hash, toNano(d.meta.FetchStart)) {
		v.superseded.Add(1)
		return 0, ErrSuperseded // commit would say so, after the writing
	}
	need := d.onDisk()
	if err := v.reserve(need); err != nil {
		return 0, err
	}
	version, err = v.tryWrite(d, need)
	if noSpace(err) && !d.once {
		v.evict(context.Background(), 2*need, 1, nil)
		version, err = v.tryWrite(d, need)
	}
	switch {
	case err != nil:
		v.release(need)
	case !d.whole:
		v.puts.Add(1)
	}
	return version, err
}

// later is what a Put asks of what it replaces.
func (d *draft) later(stored *head) error {
	if stored != nil && stored.meta.FetchStart.After(d.meta.FetchStart) {
		return ErrSuperseded
	}
	return nil
}

// outdated says whether a file fetched then would lose, as far as memory knows.
func (v *volume) outdated(h hash, fetched int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.index.find(h)
	return r != nil && r.fetched > fetched || v.buried(h, fetched)
}

// tryWrite leaves the reservation alone unless it succeeds.
func (v *volume) tryWrite(d *draft, reserved int64) (uint32, error) {
	temporary := v.path + "/tmp/" + v.run + strconv.FormatUint(v.serial.Add(1), 36)
	info, err := v.fillFile(temporary, d)
	var version uint32
	if err == nil {
		version, err = v.commit(d, temporary, info, reserved)
	}
	if err == nil {
		v.dirty.Store(true)
		return version, nil
	}
	switch {
	case errors.Is(err, ErrSuperseded), errors.Is(err, ErrGone):
		v.superseded.Add(1)
	case errors.Is(err, errSource):
	default:
		v.fault(err, true)
	}
	// What cannot be removed now is removed at the next start.
	if rm := v.files.Remove(temporary); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
		v.fault(rm, true)
	}
	return 0, err
}

func (v *volume) fillFile(name string, d *draft) (fs.FileInfo, error) {
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL
	f, err := v.files.Open(name, flags)
	if errors.Is(err, fs.ErrNotExist) { // somebody emptied the folder
		if err = v.files.MkdirAll(filepath.Dir(name)); err == nil {
			f, err = v.files.Open(name, flags)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := d.fill(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return info, f.Close()
}

// commit gives a finished file its name, if what is stored allows it.
func (v *volume) commit(d *draft, temporary string, info fs.FileInfo, reserved int64) (uint32, error) {
	lock := v.keyLock(d.hash)
	lock.Lock()
	defer lock.Unlock()
	if d.gone != nil && d.gone.Load() {
		return 0, ErrSuperseded
	}
	stored, err := v.stored(d)
	if err != nil {
		return 0, err
	}
	if err := d.allow(stored); err != nil {
		return 0, err
	}
	if v.purges.hit(&d.key, &d.meta) {
		return 0, errPurged
	}
	limit := toNano(d.meta.FetchStart)
	if d.whole { // another body for the same fetch would be a mistake
		limit = toNano(stored.meta.FetchStart)
	}
	older, err := v.elsewhere(&d.key, d.hash, limit)
	if err != nil {
		return 0, err
	}
	name := v.name(d.hash)
	err = v.files.Rename(temporary, name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = v.files.MkdirAll(filepath.Dir(name)); err == nil {
			err = v.files.Rename(temporary, name)
		}
	}
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EISDIR) { // a folder is in the way
		if err = v.unlink(d.hash); err == nil {
			v.broken.Add(1)
			err = v.files.Rename(temporary, name)
		}
	}
	if err != nil {
		return 0, err
	}
	// A file system that allocates late may not have counted the blocks yet.
	size := max(onDisk(info), roundUp(info.Size()))
	version := v.memory.nextVersion()
	v.mu.Lock()
	v.reserved -= reserved
	v.index.put(record{
		hash: d.hash, access: v.now().UnixNano(), fetched: toNano(d.meta.FetchStart),
		blocks: blocksOf(size), stamp: fingerprint(info), version: version,
	})
	v.fill(d.hash)
	v.mu.Unlock()
	for _, o := range older {
		o.displace(d.hash, toNano(d.meta.FetchStart))
	}
	v.tellGhosts(d.hash, toNano(d.meta.FetchStart))
	if v.purges.hit(&d.key, &d.meta) {
		// The purge came while the file got its name, and the sweep may have been here.
		v.displace(d.hash, toNano(d.meta.FetchStart))
		v.mu.Lock()
		v.reserved += reserved // as it was, for write to release
		v.mu.Unlock()
		return 0, errPurged
	}
	return version, nil
}

// stored gives what lies under the draft's key, as far as allow needs it: from the
// index if it is known there, else from the file. A file that is no entry is
// nothing. Called with the key's lock held.
func (v *volume) stored(d *draft) (*head, error) {
	v.mu.Lock()
	buried := v.buried(d.hash, toNano(d.meta.FetchStart))
	dead := v.hidden(d.hash)
	var fetched int64
	r := v.index.find(d.hash)
	if r != nil {
		fetched = r.fetched
	}
	absent := r == nil && v.loaded[d.hash[0]]
	v.mu.Unlock()
	switch {
	case buried:
		return nil, ErrSuperseded
	case absent, dead:
		return nil, nil
	case fetched != 0 && !d.whole:
		return &head{meta: Meta{FetchStart: fromNano(fetched)}}, nil
	}
	f, hd, _, err := v.openHead(&d.key, d.hash, unix.O_RDONLY)
	switch {
	case err == nil:
		return &hd, f.Close()
	case judge(err, false) == failed:
		return nil, err
	}
	return nil, nil
}
