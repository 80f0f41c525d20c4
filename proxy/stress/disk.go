package stress

import "sync"

// Volume is what Disk looks at.
type Volume struct {
	// Used is the used share of its file system in percent.
	Used float64
	// Out: it gives errors and is left alone.
	Out bool
}

// Disk tells whether the disks leave karui anything to work with: it sheds when
// every volume is full or out of use, and stops when one that works is a whole
// point below the limit, so that a share on the limit does not flap.
type Disk struct {
	mu       sync.Mutex
	shedding bool
}

// Observe looks at the volumes against the limit, in percent, and tells whether to
// shed and whether that has changed.
func (d *Disk) Observe(limit float64, volumes []Volume) (shedding, changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shedding {
		limit--
	}
	shedding = len(volumes) > 0
	for _, v := range volumes {
		if !v.Out && v.Used < limit {
			shedding = false
		}
	}
	changed = shedding != d.shedding
	d.shedding = shedding
	return shedding, changed
}
