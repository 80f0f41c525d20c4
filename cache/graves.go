package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// graveAge is how long a Delete is remembered against Puts of an earlier fetch.
	// A fetch takes 60 s at most, its conversion as much, and its wait for a
	// worker and the disk is bounded too.
	graveAge = 10 * time.Minute
	// maxGraves bounds the memory for them, about 4 MiB.
	maxGraves = 1 << 16
	// maxHidden bounds the memory for those that hide a file, about 64 MiB. Only a
	// volume that cannot be written has more than a handful.
	maxHidden = 1 << 20
)

// grave remembers that a key was deleted: by a fetch that started at at. It turns
// Puts away that were fetched no later, and hides a file that could not be removed:
// because it is of a deleted entry, or because a newer one lies in another volume.
//
// A volume that is out of use for long may miss more of that than maxHidden. Then
// it is not trusted any more: what its index does not know is not looked for on
// disk, and all its files go when it returns.
type grave struct {
	at   int64 // nanoseconds since 1970
	dug  int64 // when it was noted, the same
	file bool  // there is still a file that must not be read
	// until spares a file that was fetched after it; 0 spares none.
	until int64
}

// buried says whether what was fetched then was deleted since. Called with mu held.
func (v *volume) buried(h hash, fetched int64) bool {
	g, ok := v.graves[h]
	return ok && fetched <= g.at
}

// dig notes a grave. Called with mu held.
func (v *volume) dig(h hash, g grave) {
	if old, ok := v.graves[h]; ok {
		switch {
		case !old.file:
		case !g.file || old.until == 0:
			g.until = old.until
		case g.until != 0:
			g.until = max(g.until, old.until)
		}
		g.at, g.file = max(g.at, old.at), g.file || old.file
	} else if len(v.graves) >= maxGraves && !v.dropGrave() {
		if len(v.graves) >= maxHidden {
			v.distrust = v.distrust || g.file
			return
		}
	}
	v.setGrave(h, g)
}

// setGrave and fill keep count of the graves that hide a file. Called with mu held.
func (v *volume) setGrave(h hash, g grave) {
	v.fill(h)
	v.graves[h] = g
	if g.file {
		v.hiding++
	}
}

// fill forgets a grave.
func (v *volume) fill(h hash) {
	if v.graves[h].file {
		v.hiding--
	}
	delete(v.graves, h)
}

// graveStep is how many graves are looked at before others get the lock.
const graveStep = 256

// eachGrave calls visit with every grave that is there from the beginning to the end.
// Called with mu held, which it lets others have in between: there may be a million.
func (v *volume) eachGrave(visit func(h hash, g grave)) {
	n := 0
	for h, g := range v.graves {
		visit(h, g)
		if n++; n%graveStep == 0 {
			v.mu.Unlock()
			runtime.Gosched()
			v.mu.Lock()
		}
	}
}

// dropGrave forgets any grave that hides no file, if one is found soon.
func (v *volume) dropGrave() bool {
	tries := 16
	for other, g := range v.graves {
		if !g.file {
			v.fill(other)
			return true
		}
		if tries--; tries == 0 {
			break
		}
	}
	return false
}

// hidden says whether a file under the key, if there is one, must not be read.
// Called with mu held.
func (v *volume) hidden(h hash) bool {
	return v.graves[h].file || v.distrust && v.index.find(h) == nil
}

// remove is Delete. It works on a volume that cannot be written, as far as that goes.
func (v *volume) remove(h hash, at time.Time) error {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return ErrClosed
	}
	v.busy.Add(1)
	v.mu.Unlock()
	defer v.busy.Done()

	lock := v.keyLock(h)
	lock.Lock()
	defer lock.Unlock()
	v.mu.Lock()
	r := v.index.find(h)
	out := v.health.state == StateOut
	absent := r == nil && (v.loaded[h[0]] || v.distrust) && !v.graves[h].file
	var fetched int64
	if r != nil {
		fetched = r.fetched
	}
	v.mu.Unlock()

	if fetched == 0 && !absent && !out {
		if f, hd, _, err := v.openHead(nil, h, unix.O_RDONLY); err == nil {
			_ = f.Close()
			fetched = toNano(hd.meta.FetchStart)
		}
	}
	if fetched > toNano(at) {
		return nil
	}
	v.mu.Lock()
	v.index.remove(h)
	v.dig(h, grave{at: toNano(at), dug: v.now().UnixNano(), file: !absent, until: toNano(at)})
	v.mu.Unlock()
	v.memory.drop(h)
	switch {
	case absent:
		return nil
	case out:
		v.owe(h, toNano(at))
		return fmt.Errorf("%w: the file stays until it returns", ErrUnavailable)
	}
	err := v.empty(h)
	if err != nil {
		v.owe(h, toNano(at))
	}
	return err
}

// empty removes the file of a grave. Called with the key's lock held.
func (v *volume) empty(h hash) error {
	err := v.unlink(h)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.fault(err, true)
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if g, ok := v.graves[h]; ok {
		if g.at == 0 { // it only hid the file
			v.fill(h)
			return nil
		}
		g.file = false
		v.setGrave(h, g)
	}
	return nil
}

// tendGraves tries the removals again that failed, and forgets what is old.
func (v *volume) tendGraves(now time.Time) {
	var again []hash
	v.mu.Lock()
	v.eachGrave(func(h hash, g grave) {
		switch {
		case g.file:
			again = append(again, h)
		case now.UnixNano()-g.dug > int64(graveAge):
			v.fill(h)
		}
	})
	v.mu.Unlock()
	for _, h := range again {
		if v.working() != nil {
			return
		}
		if v.settle(h) { // the load has left it out
			v.mu.Lock()
			epoch := v.epoch
			v.mu.Unlock()
			v.loadFile(h, v.name(h), epoch, &sweep{v: v})
		}
	}
	v.paid()
}

// settle removes the file of a grave, unless it was fetched later than the grave
// says: then it is spared, and the grave forgotten.
func (v *volume) settle(h hash) (spared bool) {
	lock := v.keyLock(h)
	lock.Lock()
	defer lock.Unlock()
	v.mu.Lock()
	g := v.graves[h]
	v.mu.Unlock()
	if !g.file { // it was put again
		return false
	}
	if g.until != 0 {
		f, hd, _, err := v.openHead(nil, h, unix.O_RDONLY)
		if err == nil {
			_ = f.Close()
		}
		if err == nil && toNano(hd.meta.FetchStart) > g.until {
			v.mu.Lock()
			defer v.mu.Unlock()
			if g.file, g.until = false, 0; g.at == 0 {
				v.fill(h)
			} else {
				v.setGrave(h, g)
			}
			return true
		}
	}
	_ = v.empty(h) // counted there
	return false
}
