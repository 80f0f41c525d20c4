package proxy

import (
	"sync/atomic"
	"time"
)

// diskSince is since when the disks have been too full; the zero time while they
// are not.
type diskSince struct{ at atomic.Pointer[time.Time] }

func (d *diskSince) set(full bool, now time.Time) {
	if !full {
		d.at.Store(nil)
		return
	}
	d.at.Store(&now)
}

func (d *diskSince) get() time.Time {
	if at := d.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
