package cache

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"
)

// The volume's folder:
//
//	lock          held with flock while a process uses the folder
//	format        the version of the files in it, once they have been looked through
//	size          what they take at most: see ceiling.go
//	tmp/          files being written
//	entries/ab/   files whose name (the key's hash) begins with ab
//	purges        what was purged: see purgebook.go
//	owed/ members what other volumes have missed: see debts.go
//
// Nothing else in it is ever touched.
const folders = 256

// closeWait is how long Close waits for operations that hang in the disk, flushWait
// the part of it for what waits to be written. A process that is asked to end has
// better things to do than to wait for a dead disk.
const (
	closeWait = 10 * time.Second
	flushWait = 8 * time.Second
)

// keyLocks order whatever changes files under their final names, in all volumes:
// each is for a share of the keys. There are many, so that a disk that hangs in a
// call holds up few keys of the other disks.
type keyLocks [4096]sync.Mutex

func (k *keyLocks) of(h hash) *sync.Mutex {
	return &k[binary.LittleEndian.Uint16(h[len(h)-2:])%uint16(len(k))]
}

// volume is one folder on a disk, with the index of what it holds.
//
// Locks, in the order in which they may be taken:
//
//	bookSaving  of the book of purges, held over a write to it and the evictions that
//	          make room for it; never taken with another one held
//	measuring one look at the limits at a time, with the eviction that follows from it
//	evicting  one batch of evictions at a time
//	keys      shared with the other volumes. Held over a rename or an unlink, never
//	          over the writing of a body. Get only ever tries to take one.
//	booking   of the books of debts, held over a write to them
//	noting    of the note about the size, held over a write to it
//	mu        index and state; never held over a call to the file system, and never
//	          those of two volumes at once
type volume struct {
	path      string
	seed      uint64        // its path, to rank it by
	others    []*volume     // the other volumes of the cache
	weights   [2]float64    // weight and class_weight
	weighed   atomic.Uint64 // its weight as bits of a float64
	maxSize   int64
	high, low float64 // percent
	files     fileSystem
	now       func() time.Time
	log       *slog.Logger
	memory    *memory
	run       string // prefix of this process's temporary files

	upkeepEvery time.Duration
	serial      atomic.Uint64

	measuring sync.Mutex
	evicting  sync.Mutex
	keys      *keyLocks
	booking   sync.Mutex
	noting    turn
	ghosts    []ghost // volumes that are not configured now

	mu        sync.Mutex
	index     index
	loaded    [folders]bool
	loading   bool           // a load is under way or asked for
	progress  chan struct{}  // closed when a load has come further, or ended
	epoch     int            // of the index; grows when it is thrown away
	reserved  int64          // bytes being written or removed, on top of index.bytes
	unseen    int64          // at most what files take that the load has not come to, in bytes
	ceiling   int64          // what the note about the size says, in bytes
	listings  int64          // what the folders have grown by, in bytes
	weighedAt uint64         // the number of Puts when listings was looked at, plus one
	graves    map[hash]grave // see graves.go
	hiding    int            // how many of the graves hide a file
	owing     bool           // another volume keeps book of what this one missed
	distrust  bool           // more was missed than graves can hold: see graves.go
	health    health
	usage     usage
	lock      *os.File // nil while the folder is not ours
	closed    bool

	busy   sync.WaitGroup // operations that change files
	tasks  sync.WaitGroup // background work
	cancel context.CancelFunc
	chores chan chore
	load   chan struct{} // asks for a load of the whole folder
	verify singleflight.Group

	purges      *purges
	sweepWanted chan struct{} // asks for a sweep
	bookSaving  sync.Mutex    // of the book of purges, held over its writing
	bookStale   atomic.Bool   // the book is not what it should be
	bookUnread  bool          // nobody knows what it says; of who opens the volume, and then of the upkeep's goroutine

	hitsMemory, hitsDisk            atomic.Uint64
	evictions, puts, superseded     atomic.Uint64
	writeErrors, readErrors, broken atomic.Uint64
	dirty                           atomic.Bool // written to since the last sync
	brokenLogged                    uint64      // of the upkeep's goroutine
}

// newVolume makes a volume that is not in use yet; open and start follow.
func newVolume(cfg VolumeConfig, disk DiskConfig, opts Options, files fileSystem, m *memory, keys *keyLocks) *volume {
	v := &volume{
		path: cfg.Path, seed: seedOf(cfg.Path), weights: [2]float64{cfg.Weight, cfg.ClassWeight}, keys: keys, maxSize: int64(cfg.MaxSize), high: float64(disk.High), low: float64(disk.Low),
		files: files, now: opts.Now, log: opts.Log.With("volume", cfg.Path), memory: m,
		run: rand.Text() + "-", upkeepEvery: opts.upkeepEvery, index: newIndex(), graves: make(map[hash]grave),
		health: health{state: StateOK}, progress: make(chan struct{}), noting: newTurn(),
		chores: make(chan chore, 1024), load: make(chan struct{}, 1), sweepWanted: make(chan struct{}, 1),
	}
	v.weighed.Store(math.Float64bits(weigh(0, cfg.Weight, cfg.ClassWeight)))
	return v
}

// open takes the folder into use.
func (v *volume) open() error {
	if err := v.attach(); err != nil {
		// A disk that is broken at the start is one that may come back; a folder
		// that cannot be is a mistake that somebody must hear of now.
		if judge(err, false) != failed {
			return err
		}
		v.fault(err, true)
		return nil
	}
	if u, err := v.files.Usage(v.path); err == nil { // else the upkeep finds out
		v.mu.Lock()
		v.usage = u
		v.mu.Unlock()
	}
	v.reweigh()
	return nil
}

// weight is the volume's share of new entries, to compare with those of others.
func (v *volume) weight() float64 { return math.Float64frombits(v.weighed.Load()) }

// reweigh takes what was measured last into the weight.
func (v *volume) reweigh() {
	v.mu.Lock()
	used := v.usage.percent()
	v.mu.Unlock()
	v.weighed.Store(math.Float64bits(weigh(used, v.weights[0], v.weights[1])))
}

// start begins the background work, once the volume knows the others.
func (v *volume) start() {
	ctx, cancel := context.WithCancel(context.Background())
	v.cancel = cancel
	v.tasks.Go(func() { v.loads(ctx) })
	v.tasks.Go(func() { v.upkeep(ctx) })
	v.tasks.Go(func() { v.doChores(ctx) })
	v.tasks.Go(func() { v.sweeps(ctx) })
	v.askSweep()
}

// attach makes the folder, takes its lock and asks for its entries to be loaded.
func (v *volume) attach() error {
	_, err := v.files.Lstat(filepath.Join(v.path, "entries"))
	fresh := errors.Is(err, fs.ErrNotExist)
	for _, dir := range []string{"tmp", "entries"} {
		if err := v.files.MkdirAll(filepath.Join(v.path, dir)); err != nil {
			return fmt.Errorf("create folder: %w", err)
		}
	}
	lock, err := lockFolder(v.path)
	if err != nil {
		return err
	}
	v.mu.Lock()
	old := v.lock
	v.lock = lock
	v.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	v.readCeiling(fresh)
	v.readDebts()
	_ = v.readPurges() // counted there, and tried again by probe
	v.reload()
	return nil
}

func lockFolder(path string) (*os.File, error) {
	name := filepath.Join(path, "lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, unix.EROFS) { // a disk that made itself read-only can still be read
		f, err = os.Open(name)
	}
	if err != nil {
		return nil, fmt.Errorf("lock folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: end it, or give this one another path in cache.volumes", ErrLocked)
		}
		return nil, fmt.Errorf("lock folder: %w", err)
	}
	return f, nil
}

// attached says whether the folder is still the one that was locked, and not
// removed or replaced behind our back.
func (v *volume) attached() bool {
	v.mu.Lock()
	lock := v.lock
	v.mu.Unlock()
	if lock == nil {
		return false
	}
	ours, err := lock.Stat()
	if err != nil {
		return false
	}
	there, err := v.files.Lstat(filepath.Join(v.path, "lock"))
	return err == nil && os.SameFile(ours, there)
}

// reload throws the index away and has the folder read again.
func (v *volume) reload() {
	v.mu.Lock()
	v.epoch++
	v.unseen += v.index.bytes
	v.index = newIndex()
	v.loaded = [folders]bool{}
	v.loading = true
	v.mu.Unlock()
	v.askLoad()
}

func (v *volume) askLoad() {
	select {
	case v.load <- struct{}{}:
	default: // one is asked for already
	}
}

// begin lets an operation in that changes files; done must be called after it.
func (v *volume) begin() (done func(), err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.closed:
		return nil, ErrClosed
	case v.health.state != StateOK:
		return nil, fmt.Errorf("%w (%s): %w", ErrUnavailable, v.health.state, v.health.cause)
	}
	v.busy.Add(1)
	return v.busy.Done, nil
}

func (v *volume) close(ctx context.Context) error {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return nil
	}
	v.closed = true
	v.mu.Unlock()
	if v.cancel != nil { // else it was never started
		v.cancel()
	}
	ended := make(chan struct{})
	go func() {
		v.busy.Wait()
		v.tasks.Wait()
		v.closeCeiling()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		// The lock goes with the process: what hangs may still write.
		return fmt.Errorf("close cache volume %s: the disk does not answer", v.path)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lock == nil {
		return nil
	}
	return v.lock.Close()
}

// fault counts a failed operation and takes the volume out of use if the error says so.
func (v *volume) fault(err error, write bool) {
	if write {
		v.writeErrors.Add(1)
	} else {
		v.readErrors.Add(1)
	}
	v.mu.Lock()
	worse := v.health.fault(err, write, v.now())
	state := v.health.state
	v.mu.Unlock()
	if worse {
		v.log.Error("cache volume fails, tried again each minute", "state", string(state), "err", err)
	}
}

func (v *volume) name(h hash) string {
	s := h.String()
	return v.path + "/entries/" + s[:2] + "/" + s
}

// unlink removes what lies under a key's name. That may be a folder with something
// in it, by somebody's mistake: the name is ours alone, and as long as it is taken
// nothing can be stored under the key. Called with the key's lock held.
func (v *volume) unlink(h hash) error {
	name := v.name(h)
	err := v.files.Remove(name)
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) { // the latter by POSIX, too
		return err
	}
	return v.files.RemoveAll(name)
}

func (v *volume) keyLock(h hash) *sync.Mutex { return v.keys.of(h) }

// fingerprint tells whether a file is the one that was seen before: inode, length
// and modification time, in 32 bits. Never 0.
func fingerprint(info fs.FileInfo) uint32 {
	var inode uint64
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = s.Ino
	}
	x := inode*0x9e3779b97f4a7c15 ^ uint64(info.ModTime().UnixNano())
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>32 ^ uint64(info.Size())) * 0x94d049bb133111eb
	return uint32(x>>32) | 1
}

func (v *volume) stats() VolumeStats {
	v.mu.Lock()
	s := VolumeStats{
		Path: v.path, State: v.health.state, Weight: v.weight(), Loaded: true, UsedPercent: v.usage.percent(),
		Files: int64(v.index.n), Bytes: v.index.bytes + v.listings, MaxBytes: v.maxSize,
	}
	for _, l := range v.loaded {
		s.Loaded = s.Loaded && l
	}
	v.mu.Unlock()
	s.Evictions, s.Puts, s.Superseded = v.evictions.Load(), v.puts.Load(), v.superseded.Load()
	s.WriteErrors, s.ReadErrors, s.Broken = v.writeErrors.Load(), v.readErrors.Load(), v.broken.Load()
	return s
}
