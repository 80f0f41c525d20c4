package api

import "time"

// Stats is what GET /stats answers. A token for some sites gets only Since and
// theirs.
type Stats struct {
	// Since is when the process began to count.
	Since   time.Time     `json:"since"`
	Version string        `json:"version,omitempty"`
	Sites   []SiteStats   `json:"sites"`
	Workers *WorkerStats  `json:"workers,omitempty"`
	Cache   *CacheStats   `json:"cache,omitempty"`
	Flights *FlightStats  `json:"flights,omitempty"`
	Backlog *BacklogStats `json:"backlog,omitempty"`
}

// SiteStats counts for one site since the start. A site that a reload took out of
// the configuration is not listed.
type SiteStats struct {
	ID string `json:"id"`
	// Requests are by what was answered: the words of X-Karui, and "503_" with the reason.
	Requests map[string]uint64 `json:"requests"`
	// Decisions are by format and code.
	Decisions map[string]map[string]uint64 `json:"decisions"`
	// Variants are answers with a variant, by format.
	Variants map[string]uint64 `json:"variants"`
	// SavedBytes is what they saved viewers.
	SavedBytes uint64 `json:"saved_bytes"`
	// Backlog is how many conversions are to be made when workers are idle.
	Backlog int `json:"backlog"`
}

// WorkerStats is what the worker processes have done and are doing.
type WorkerStats struct {
	// Fast are those for WebP, Slow those for AVIF and HEIC.
	Fast      WorkerLoad        `json:"fast"`
	Slow      WorkerLoad        `json:"slow"`
	Decisions map[string]uint64 `json:"decisions"`
	// Ended counts worker processes that ended, and Blamed those ends that were laid
	// to an original, by cause.
	Ended  map[string]uint64 `json:"ended"`
	Blamed map[string]uint64 `json:"blamed"`
	// Quarantined counts the originals that are left alone now, by cause.
	Quarantined map[string]int `json:"quarantined"`
}

// WorkerLoad is the load of one class of workers.
type WorkerLoad struct {
	Workers           int     `json:"workers"`
	Alive             int     `json:"alive"`
	Busy              int     `json:"busy"`
	Waiting           int     `json:"waiting"`
	OldestWaitSeconds float64 `json:"oldest_wait_seconds"`
	CPUSeconds        float64 `json:"cpu_seconds"`
	BusySeconds       float64 `json:"busy_seconds"`
}

// CacheStats is the state of the cache.
type CacheStats struct {
	HitsMemory  uint64        `json:"hits_memory"`
	HitsDisk    uint64        `json:"hits_disk"`
	Misses      uint64        `json:"misses"`
	MemoryBytes int64         `json:"memory_bytes"`
	MemoryMax   int64         `json:"memory_max_bytes"`
	Volumes     []VolumeStats `json:"volumes"`
}

// VolumeStats is the state of one volume.
type VolumeStats struct {
	Path      string  `json:"path"`
	State     string  `json:"state"`
	Loaded    bool    `json:"loaded"`
	Files     int64   `json:"files"`
	Bytes     int64   `json:"bytes"`
	MaxBytes  int64   `json:"max_bytes"`
	UsedRatio float64 `json:"used_ratio"`
	Evictions uint64  `json:"evictions"`
	Errors    uint64  `json:"errors"`
}

// FlightStats is what is under way to and from origins.
type FlightStats struct {
	Flights     int   `json:"flights"`
	Viewers     int64 `json:"viewers"`
	MemoryBytes int64 `json:"memory_bytes"`
	DiskBytes   int64 `json:"disk_bytes"`
}

// BacklogStats is what is to be made when workers are idle.
type BacklogStats struct {
	Entries    int   `json:"entries"`
	MaxEntries int   `json:"max_entries"`
	Bytes      int64 `json:"bytes"`
	MaxBytes   int64 `json:"max_bytes"`
	// Oldest is when the longest waiting one was first asked for.
	Oldest time.Time `json:"oldest,omitzero"`
	// Made and Dropped, by cause, are counted since the start.
	Made    uint64            `json:"made"`
	Dropped map[string]uint64 `json:"dropped"`
}

// Quarantine is what GET /quarantine answers: the originals that are not tried
// again for a while, the one released first at the front.
type Quarantine struct {
	Items []Quarantined `json:"items"`
}

// Quarantined is one original that ended a worker.
type Quarantined struct {
	// Digest is the SHA-256 of the original's bytes, in hexadecimal.
	Digest string    `json:"digest"`
	Cause  string    `json:"cause"`
	Until  time.Time `json:"until"`
	// Held is whether it is left alone; a first timeout is only remembered.
	Held bool `json:"held"`
}
