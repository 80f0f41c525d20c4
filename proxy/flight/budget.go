package flight

import "sync/atomic"

// budget counts bytes against a limit. It hands out permission, not memory.
type budget struct {
	max  int64
	used atomic.Int64
}

// reserve takes n bytes if they are free.
func (b *budget) reserve(n int64) bool {
	if n < 0 || n > b.max {
		return false
	}
	for {
		used := b.used.Load()
		if used > b.max-n {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// force takes n bytes whether they are free or not.
func (b *budget) force(n int64) { b.used.Add(n) }

func (b *budget) release(n int64) { b.used.Add(-n) }
