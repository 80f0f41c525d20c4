package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// The cap has to hold from the first write on, when nobody knows yet what the files
// in the folder take. So the file `size` says at most how much that is: it is written
// before they may take more, and then says a hundredth of max_size too much, so that
// a volume writes it a hundred times until it is full, and never again. It holds
// after a kill too. Until the load has found the files, the rest of that number
// counts as taken.

// turn is a lock that is held over calls which may hang for long.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take() { t <- struct{}{} }
func (t turn) give() { <-t }

func (t turn) tryTake() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// ceilingStep is how much room the note leaves.
func (v *volume) ceilingStep() int64 { return max(v.maxSize/100, 1<<20) }

// readCeiling tells from the note what has to be found. Without one (its last user was
// a version that wrote none, or the power failed) it is no more than the file
// system has in use.
func (v *volume) readCeiling(fresh bool) {
	n, err := strconv.ParseInt(strings.TrimSuffix(v.readNote("size", 64), "\n"), 10, 64)
	noted := err == nil && n >= 0
	if !noted && !fresh {
		if u, err := v.files.Usage(v.path); err == nil { // else the upkeep finds out
			n = min(u.bytesUsed, v.maxSize)
		}
	}
	n = min(max(n, 0), 1<<60)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.index = newIndex()
	v.unseen, v.ceiling = n, 0
	if noted {
		v.ceiling = n
	}
}

// raiseCeiling is called when more has been counted, before it is written.
func (v *volume) raiseCeiling() {
	v.mu.Lock()
	above := v.used() > v.ceiling
	v.mu.Unlock()
	if !above {
		return
	}
	v.noting.take()
	defer v.noting.give()
	v.mu.Lock()
	above = v.used() > v.ceiling
	to := max(min(v.used()+v.ceilingStep(), v.maxSize), v.used())
	v.mu.Unlock()
	if above {
		v.noteCeiling(to)
	}
}

// lowerCeiling has the note follow a volume that has shrunk, so that after a restart no
// room counts as taken that is free.
func (v *volume) lowerCeiling() {
	if !v.noting.tryTake() { // it is being raised, perhaps by who hangs in the disk
		return
	}
	defer v.noting.give()
	v.mu.Lock()
	to := v.used() + v.ceilingStep()
	below := to+2*v.ceilingStep() < v.ceiling
	if below {
		v.ceiling = to // before it is written, so that whoever counts more from here on raises it again
	}
	v.mu.Unlock()
	if below {
		v.noteCeiling(to)
	}
}

// closeCeiling writes what it is, when nothing is written any more.
func (v *volume) closeCeiling() {
	v.noting.take()
	defer v.noting.give()
	v.mu.Lock()
	to := v.used()
	changed := to != v.ceiling && v.lock != nil && v.health.state == StateOK
	v.mu.Unlock()
	if changed {
		v.noteCeiling(to)
	}
}

// noteCeiling is called with noting held. Whoever counted more meanwhile is about to
// raise it, and waits for that.
func (v *volume) noteCeiling(to int64) {
	if !v.note("size", strconv.FormatInt(to, 10)+"\n") {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ceiling = to
}

// listingBlock is what a folder takes at least. It does not count, or small volumes
// would be full of folders: 1 MiB in all.
const listingBlock = 4096

// weighListings looks how long the lists of names in the folders have become: about
// 57 bytes for each file on ext4, which is more than a hundredth for small ones.
func (v *volume) weighListings() {
	puts := v.puts.Load()
	v.mu.Lock()
	same := v.weighedAt == puts+1
	v.weighedAt = puts + 1
	v.mu.Unlock()
	if same {
		return
	}
	var sum int64
	for i := range folders {
		info, err := v.files.Lstat(fmt.Sprintf("%s/entries/%02x", v.path, i))
		switch {
		case err == nil:
			sum += max(onDisk(info)-listingBlock, 0)
		case !errors.Is(err, fs.ErrNotExist):
			return // whoever uses it meets the error
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listings = sum
}
