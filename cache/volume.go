package cache

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// volume is one folder on a disk.
type volume struct {
	path    string
	files   fileSystem
	now     func() time.Time
	lock    *os.File
	run     string // prefix of this process's temporary files
	counter atomic.Uint64
	keys    sync.Mutex // orders what changes a file under its final name
}

func openVolume(cfg VolumeConfig, _ DiskConfig, opts Options, files fileSystem) (*volume, error) {
	v := &volume{path: cfg.Path, files: files, now: opts.Now, run: rand.Text() + "-"}
	if err := files.MkdirAll(filepath.Join(v.path, "tmp")); err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	lock, err := lockFolder(v.path)
	if err != nil {
		return nil, err
	}
	v.lock = lock
	err = files.Names(filepath.Join(v.path, "tmp"), func(name string) bool {
		_ = files.Remove(filepath.Join(v.path, "tmp", name))
		return true
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("remove leftovers: %w", err), lock.Close())
	}
	return v, nil
}

func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the volume's own
	if err != nil {
		return nil, fmt.Errorf("lock folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil { //nolint:gosec // a descriptor fits
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: end it, or give this one another path in cache.volumes", ErrLocked)
		}
		return nil, fmt.Errorf("lock folder: %w", err)
	}
	return f, nil
}

func (v *volume) close() error { return v.lock.Close() }

func (v *volume) name(h hash) string {
	s := h.String()
	return filepath.Join(v.path, "entries", s[:2], s)
}

// openEntry opens and parses a file; the body is not verified.
func (v *volume) openEntry(key *Key, h hash, flag int) (file, head, error) {
	f, err := v.files.Open(v.name(h), flag)
	if err != nil {
		return nil, head{}, err
	}
	hd, err := readHead(f, key)
	if err != nil {
		_ = f.Close()
		return nil, head{}, err
	}
	return f, hd, nil
}

func readHead(f file, key *Key) (head, error) {
	info, err := f.Stat()
	if err != nil {
		return head{}, err
	}
	if !info.Mode().IsRegular() {
		return head{}, fmt.Errorf("%w: not a regular file", errBad)
	}
	b := make([]byte, min(4096, info.Size()))
	if _, err := f.ReadAt(b, 0); err != nil {
		return head{}, err
	}
	n, err := headLength(b, info.Size())
	if err != nil {
		return head{}, err
	}
	if n > int64(len(b)) {
		b = make([]byte, n)
		if _, err := f.ReadAt(b, 0); err != nil {
			return head{}, err
		}
	}
	return parseHead(b, info.Size(), key)
}

func (v *volume) get(key Key, h hash) (*Entry, bool) {
	f, hd, err := v.openEntry(&key, h, unix.O_RDONLY)
	if err != nil {
		if errors.Is(err, errBad) {
			_ = v.files.Remove(v.name(h))
		}
		return nil, false
	}
	d := xxhash.New()
	_, err = io.Copy(d, io.NewSectionReader(f, hd.body, hd.size))
	if err != nil || d.Sum64() != hd.bodySum || hd.meta.expired(v.now()) {
		_ = f.Close()
		_ = v.files.Remove(v.name(h))
		return nil, false
	}
	return &Entry{
		Key: key, Meta: hd.meta, size: hd.size, sum: hd.bodySum,
		file: f, offset: hd.body, report: func(error) {},
	}, true
}

func (v *volume) put(key Key, meta Meta, body []byte) error {
	return v.write(key, meta, int64(len(body)), func(f file) error {
		b := append(encodeHead(key, meta, int64(len(body)), xxhash.Sum64(body)), body...)
		_, err := f.Write(b)
		return err
	})
}

func (v *volume) putFrom(key Key, meta Meta, size int64, r io.Reader) error {
	return v.write(key, meta, size, func(f file) error {
		placeholder := encodeHead(key, meta, size, 0)
		if _, err := f.Write(placeholder); err != nil {
			return err
		}
		d := xxhash.New()
		if n, err := io.Copy(f, io.TeeReader(io.LimitReader(r, size), d)); err != nil {
			return err
		} else if n < size {
			return fmt.Errorf("body of %d bytes instead of %d: %w", n, size, io.ErrUnexpectedEOF)
		}
		_, err := f.WriteAt(encodeHead(key, meta, size, d.Sum64()), 0)
		return err
	})
}

func (v *volume) write(key Key, meta Meta, _ int64, fill func(file) error) error {
	tmp := filepath.Join(v.path, "tmp", fmt.Sprintf("%s%d", v.run, v.counter.Add(1)))
	f, err := v.files.Open(tmp, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	err = fill(f)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = v.commit(key, meta, tmp)
	}
	if err != nil {
		_ = v.files.Remove(tmp)
	}
	return err
}

func (v *volume) commit(key Key, meta Meta, tmp string) error {
	h := key.hash()
	v.keys.Lock()
	defer v.keys.Unlock()
	if f, old, err := v.openEntry(&key, h, unix.O_RDONLY); err == nil {
		_ = f.Close()
		if old.meta.FetchStart.After(meta.FetchStart) {
			return ErrSuperseded
		}
	}
	if err := v.files.MkdirAll(filepath.Dir(v.name(h))); err != nil {
		return err
	}
	return v.files.Rename(tmp, v.name(h))
}

func (v *volume) update(e *Entry, meta Meta) error {
	h := e.Key.hash()
	v.keys.Lock()
	defer v.keys.Unlock()
	f, hd, err := v.openEntry(&e.Key, h, unix.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // what is written is checksummed
	if hd.bodySum != e.sum || hd.size != e.size || hd.meta.FetchStart.After(meta.FetchStart) {
		return ErrSuperseded
	}
	slot := encodeSlot(meta, hd.sequence+1, hd.headSum)
	if int64(len(slot)) > hd.slotSize {
		return fmt.Errorf("%w: attributes outgrew the file", ErrTooLarge)
	}
	_, err = f.WriteAt(slot, hd.slots+int64(1-hd.slot)*hd.slotSize)
	return err
}

func (v *volume) remove(h hash, at time.Time) error {
	v.keys.Lock()
	defer v.keys.Unlock()
	f, hd, err := v.openEntry(nil, h, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_ = f.Close()
		if hd.meta.FetchStart.After(at) {
			return nil
		}
	}
	return v.files.Remove(v.name(h))
}

func (v *volume) stats() VolumeStats {
	s := VolumeStats{Path: v.path, State: StateOK}
	if u, err := v.files.Usage(v.path); err == nil {
		s.UsedPercent = u.percent()
	}
	return s
}
