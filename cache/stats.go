package cache

// Stats is a snapshot for metrics. The counters count since Open.
type Stats struct {
	// HitsMemory and HitsDisk are Gets that were answered from that tier.
	HitsMemory, HitsDisk uint64
	// Misses are Gets that were not answered.
	Misses uint64
	// MemoryBytes is what the bodies in memory cost, about; MemoryMax is cache.memory.
	MemoryBytes, MemoryMax int64
	// QueueBytes is what waits to be written, QueueMax is cache.write_queue. Dropped
	// are writes that were given up: the queue was full, or no volume took them.
	QueueBytes, QueueMax int64
	Dropped              uint64
	// Purges are those that are remembered, Swept the files that were removed because
	// of one.
	Purges int
	Swept  uint64
	// Volumes are in the order of the configuration.
	Volumes []VolumeStats
}

// State is whether a volume works.
type State string

const (
	// StateOK: it is read and written.
	StateOK State = "ok"
	// StateReadOnly: writing is refused (permission, mounted read-only); it is read.
	StateReadOnly State = "readonly"
	// StateOut: it gave I/O errors and is left alone.
	StateOut State = "out"
)

// VolumeStats is about one volume.
type VolumeStats struct {
	Path  string
	State State
	// Weight is what the volume's share of new entries follows from:
	// (100 - used %) in steps of 10, times weight, times class_weight.
	Weight float64
	// Loaded: every file is in the index; Files and Bytes are whole.
	Loaded bool
	// UsedPercent is the share of the file system that is used, whoever uses it:
	// used / (used + available to us), the larger of bytes and inodes. It is what
	// disk.high, disk.low and disk.stress are compared with.
	UsedPercent float64
	// Files and Bytes (blocks on disk) are the volume's own.
	Files, Bytes, MaxBytes int64
	// Evictions are entries removed for room.
	Evictions uint64
	// Puts are entries written; Superseded are Puts and Updates that lost to a later fetch.
	Puts, Superseded uint64
	// WriteErrors and ReadErrors are failed operations of the disk.
	WriteErrors, ReadErrors uint64
	// Broken are files that were no whole entry of their key: torn, changed, foreign.
	Broken uint64
}
