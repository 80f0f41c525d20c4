package cache

// usage is how full a file system is.
type usage struct {
	bytesUsed, bytesFree int64 // free: available to us, without what is reserved for root
	filesUsed, filesFree int64 // inodes; both 0 where the file system does not count them
}

// percent is used / (used + available), 0 to 100.
func percent(used, free int64) float64 {
	if used <= 0 {
		return 0
	}
	return 100 * float64(used) / float64(used+max(free, 0))
}

func (u usage) bytesPercent() float64 { return percent(u.bytesUsed, u.bytesFree) }
func (u usage) filesPercent() float64 { return percent(u.filesUsed, u.filesFree) }
func (u usage) percent() float64      { return max(u.bytesPercent(), u.filesPercent()) }

// excess is how many bytes and files must go for both shares to fall under low
// percent; nothing unless one of them has reached high percent.
func (u usage) excess(high, low float64) (bytes, files int64) {
	over := func(used, free int64) int64 {
		if percent(used, free) < high {
			return 0
		}
		return max(used-int64(low/100*float64(used+max(free, 0))), 0)
	}
	return over(u.bytesUsed, u.bytesFree), over(u.filesUsed, u.filesFree)
}
