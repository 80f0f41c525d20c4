package convert

import (
	"errors"
	"time"

	"karui/internal/config"
	"karui/internal/units"
)

// Validate checks the section under its key.
func (c Config) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	return errors.Join(
		config.InRange(k("workers"), c.Workers, 0, 1024),
		config.InRange(k("timeout"), c.Timeout, 100*time.Millisecond, 10*time.Minute),
		config.InRange(k("queue_wait"), c.QueueWait, time.Millisecond, 10*time.Minute),
		config.InRange(k("max_pixels"), c.MaxPixels, 1, 1_000_000_000),
		config.InRange(k("max_bytes"), c.MaxBytes, 1, 1<<30),
		// A worker that has just started takes some 40 MiB.
		config.InRange(k("worker_memory"), c.WorkerMemory, 128<<20, units.Size(1<<40)),
		config.InRange(k("recycle"), c.Recycle, 1, 1_000_000),
	)
}
