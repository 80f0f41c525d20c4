package cache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// headGuess is how much of a file is read at once; nearly every head is shorter.
const headGuess = 2048

var (
	headBuffers   = sync.Pool{New: func() any { return new([headGuess]byte) }}
	verifyBuffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}
)

// get looks a key up: in the index, in memory, on disk.
func (v *volume) get(key *Key, h hash) *Entry {
	now := v.now()
	v.mu.Lock()
	var seen record // version 0: the index does not know it
	if r := v.index.find(h); r != nil {
		seen = *r
		r.access = now.UnixNano()
	}
	out := v.health.state == StateOut || v.closed
	absent := seen.version == 0 && (v.loaded[h[0]] || v.hidden(h))
	v.mu.Unlock()

	if absent {
		return nil
	}
	if seen.version != 0 {
		if e := v.memory.get(h, seen.version, key); e != nil {
			if e.Meta.expired(now) {
				v.ask(chore{what: choreExpire, hash: h})
				return nil
			}
			v.touched(seen, now)
			v.hitsMemory.Add(1)
			return e
		}
	}
	if out {
		return nil
	}
	e, err := v.read(key, h, seen, now)
	switch {
	case err == nil:
		v.touched(seen, now)
		v.hitsDisk.Add(1)
		return e
	case errors.Is(err, fs.ErrNotExist):
		v.forget(h, seen.version)
	case errors.Is(err, errExpired), errors.Is(err, errBad):
	case judge(err, false) == failed:
		v.fault(err, false)
		v.ask(chore{what: choreBury, hash: h})
	default:
		v.readErrors.Add(1)
	}
	return nil
}

var errExpired = errors.New("expired")

// read opens a file, makes sure of it and gives its entry. What is wrong with it
// for good is handed to the chores, to be removed.
func (v *volume) read(key *Key, h hash, seen record, now time.Time) (*Entry, error) {
	f, err := v.files.Open(v.name(h), unix.O_RDONLY)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		err = fmt.Errorf("%w: %w", errBad, err) // a symbolic link, a socket
	}
	if err != nil {
		if errors.Is(err, errBad) {
			v.ask(chore{what: choreBroken, hash: h, err: err})
		}
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	stamp := fingerprint(info)
	e, err := v.readFile(f, info, key, h, seen, stamp, now)
	if err != nil {
		_ = f.Close()
		switch {
		case errors.Is(err, errBad):
			v.ask(chore{what: choreBroken, hash: h, stamp: stamp, err: err})
		case errors.Is(err, errExpired):
			v.ask(chore{what: choreExpire, hash: h})
		}
	}
	return e, err
}

func (v *volume) readFile(f file, info fs.FileInfo, key *Key, h hash, seen record, stamp uint32, now time.Time) (*Entry, error) {
	hd, err := readHead(f, info, key)
	if err != nil {
		return nil, err
	}
	if hd.meta.expired(now) {
		return nil, errExpired
	}
	verified := seen.version != 0 && seen.verified && seen.stamp == stamp
	if small := v.memory.admits(hd.size); small && (!verified || dueForMemory(seen.reads)) {
		body := make([]byte, hd.size)
		if err := readFull(f, body, hd.body); err != nil {
			return nil, err
		}
		if xxhash.Sum64(body) != hd.bodySum {
			return nil, fmt.Errorf("%w: checksum of the body", errBad)
		}
		version := v.learn(h, seen.version, stamp, &hd)
		e := v.memory.set(h, version, *key, hd.meta, hd.bodySum, body)
		return e, f.Close()
	}
	if !verified {
		id := fmt.Sprintf("%s %x", h, stamp)
		if _, err, _ := v.verify.Do(id, func() (any, error) { return nil, verifyBody(f, &hd) }); err != nil {
			return nil, err
		}
	}
	v.learn(h, seen.version, stamp, &hd)
	return &Entry{
		Key: *key, Meta: hd.meta, size: hd.size, sum: hd.bodySum,
		file: f, offset: hd.body, volume: v, hash: h,
	}, nil
}

// dueForMemory spaces the tries to bring a body into memory that its policy keeps
// turning away: after 1, 2, 4, ... 128 reads of every 256. The others go by sendfile.
func dueForMemory(reads uint8) bool { return bits.OnesCount8(reads) == 1 }

// openHead opens the file of a key (nil: of any) and reads its head.
func (v *volume) openHead(key *Key, h hash, flag int) (file, head, fs.FileInfo, error) {
	f, err := v.files.Open(v.name(h), flag)
	if err != nil {
		return nil, head{}, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		var hd head
		if hd, err = readHead(f, info, key); err == nil {
			return f, hd, info, nil
		}
	}
	_ = f.Close()
	return nil, head{}, nil, err
}

// readHead reads what stands before the body and checks it. The buffer of the
// common case is shared.
func readHead(f file, info fs.FileInfo, key *Key) (head, error) {
	if !info.Mode().IsRegular() {
		return head{}, fmt.Errorf("%w: not a regular file", errBad)
	}
	shared := headBuffers.Get().(*[headGuess]byte)
	defer headBuffers.Put(shared)
	b := shared[:min(headGuess, info.Size())]
	if err := readFull(f, b, 0); err != nil {
		return head{}, err
	}
	n, err := headLength(b, info.Size())
	if err != nil {
		return head{}, err
	}
	if n > int64(len(b)) {
		b = make([]byte, n) // at most maxHead, and at most the file
		if err := readFull(f, b, 0); err != nil {
			return head{}, err
		}
	}
	return parseHead(b, info.Size(), key)
}

// readFull takes the end of the file for a truncation: whoever asks knows the length.
func readFull(f file, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return fmt.Errorf("%w: truncated", errBad)
	}
	return err
}

// verifyBody reads a body that is too large for memory from end to end.
func verifyBody(f file, hd *head) error {
	buffer := verifyBuffers.Get().(*[128 << 10]byte)
	defer verifyBuffers.Put(buffer)
	d := xxhash.New()
	for at := int64(0); at < hd.size; {
		b := buffer[:min(int64(len(buffer)), hd.size-at)]
		if err := readFull(f, b, hd.body+at); err != nil {
			return err
		}
		_, _ = d.Write(b)
		at += int64(len(b))
	}
	if d.Sum64() != hd.bodySum {
		return fmt.Errorf("%w: checksum of the body", errBad)
	}
	return nil
}

// learn notes in the index what a read found out, and gives the version that a
// copy in memory must carry; 0 if there is none.
//
// The file may be newer than its record: it gets its name before the record is
// changed. Then copies of the older one must not be answered any more, now that
// somebody has seen the newer one.
func (v *volume) learn(h hash, version, stamp uint32, hd *head) uint32 {
	v.mu.Lock()
	r := v.index.find(h)
	if r == nil {
		v.mu.Unlock()
		if version != 0 {
			return 0
		}
		return v.adopt(h, stamp, hd)
	}
	defer v.mu.Unlock()
	same := r.version == version // the record that led to the file
	fetched := toNano(hd.meta.FetchStart)
	if r.stamp != stamp || r.fetched != 0 && r.fetched != fetched {
		r.version = v.memory.nextVersion()
	}
	if !same {
		return 0
	}
	r.stamp, r.fetched, r.verified = stamp, fetched, true
	r.reads++
	return r.version
}

// adopt takes a file into the index that the load has not come to yet. It looks
// once more whether the file is still there, with the key's lock held: otherwise a
// Delete could come between the read and this. A lock that is taken is not waited
// for; the next read adopts.
func (v *volume) adopt(h hash, stamp uint32, hd *head) uint32 {
	lock := v.keyLock(h)
	if !lock.TryLock() {
		return 0
	}
	defer lock.Unlock()
	info, err := v.files.Lstat(v.name(h))
	if err != nil || fingerprint(info) != stamp {
		return 0
	}
	for _, o := range v.others {
		if o.knows(h) { // the load finds out which is the newer one
			return 0
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.index.find(h) != nil || v.loaded[h[0]] || v.hidden(h) {
		return 0
	}
	version := v.memory.nextVersion()
	v.found(record{
		hash: h, access: v.now().UnixNano(), fetched: toNano(hd.meta.FetchStart),
		blocks: blocksOf(onDisk(info)), stamp: stamp, verified: true, version: version, reads: 1,
	})
	return version
}

// forget drops a record whose file was not there. The version makes sure that it
// is not the record of a file that was put there since.
func (v *volume) forget(h hash, version uint32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r := v.index.find(h); r != nil && r.version == version {
		v.index.remove(h)
	}
}
