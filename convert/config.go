package convert

import (
	"time"

	"karui/internal/units"
)

// Config is the section `convert` of karui.yaml: how originals are converted.
type Config struct {
	// Workers is the number of conversions to WebP at a time, one process each; 0 means one per CPU. Beside these there
	// are half as many, at least one, for AVIF and HEIC.
	Workers int `yaml:"workers"`
	// Timeout is the CPU time one conversion may take; its wall time is bounded by three times as much.
	Timeout time.Duration `yaml:"timeout"`
	// QueueWait is how long a conversion may wait for a free worker of its class before it is given up, or the next
	// format is tried.
	QueueWait time.Duration `yaml:"queue_wait"`
	// MaxPixels bounds the pixels of one original, counted over all frames.
	MaxPixels units.Pixels `yaml:"max_pixels"`
	// MaxBytes bounds the size of an original that is converted; larger ones are answered as they are.
	MaxBytes units.Size `yaml:"max_bytes"`
	// WorkerMemory is what one worker process may grow to before it is killed and replaced.
	WorkerMemory units.Size `yaml:"worker_memory"`
	// Recycle is the number of conversions after which a worker is replaced by a fresh one.
	Recycle int `yaml:"recycle"`
}

// DefaultConfig returns the values of a file that says nothing.
func DefaultConfig() Config {
	return Config{
		Workers:      0,
		Timeout:      20 * time.Second,
		QueueWait:    2 * time.Second,
		MaxPixels:    64_000_000,
		MaxBytes:     32 << 20,
		WorkerMemory: 1 << 30,
		Recycle:      2000,
	}
}
