package cache

import "karui/internal/units"

// Config is the section `cache` of karui.yaml: where pictures are kept.
type Config struct {
	// Memory bounds the bodies kept in memory.
	Memory units.Size `yaml:"memory"`
	// WriteQueue bounds what waits in memory to be written to the volumes, an equal part
	// of it for each.
	WriteQueue units.Size `yaml:"write_queue"`
	// Volumes are the folders that hold entries.
	Volumes []VolumeConfig `yaml:"volumes"`
	// Shared is a bucket that the nodes of a cluster share.
	Shared SharedConfig `yaml:"shared"`
}

// VolumeConfig is one folder on a disk.
type VolumeConfig struct {
	// Path is a folder of karui's own; it is made where it is missing.
	Path string `yaml:"path"`
	// MaxSize is what the folder may grow to.
	MaxSize units.Size `yaml:"max_size"`
	// Weight multiplies the volume's share of new entries.
	Weight float64 `yaml:"weight"`
	// ClassWeight multiplies it, too: one for the disk, the other for its kind.
	ClassWeight float64 `yaml:"class_weight"`
}

// SharedConfig names the bucket, `s3://bucket/prefix`; an empty URL means none.
type SharedConfig struct {
	// URL is s3://bucket/prefix; empty for none.
	URL string `yaml:"url"`
	// Endpoint is an address other than the region's own, for another S3-compatible store.
	Endpoint string `yaml:"endpoint"`
	// Region is the bucket's.
	Region string `yaml:"region"`
}

// DiskConfig is the section `disk` of karui.yaml: the used share of a volume's
// file system, used / (used + available to us), at which something happens.
type DiskConfig struct {
	// High is where old entries begin to go.
	High units.Percent `yaml:"high"`
	// Low is down to where they go.
	Low units.Percent `yaml:"low"`
	// Stress is the share of every volume from which on all requests are turned away; it
	// ends one point below.
	Stress units.Percent `yaml:"stress"`
}

// DefaultConfig returns the values of a file that says nothing.
func DefaultConfig() Config {
	return Config{
		Memory:     256 << 20,
		WriteQueue: 64 << 20,
		Volumes:    []VolumeConfig{DefaultVolume()},
	}
}

// DefaultVolume returns the values that a volume has where the file names none.
func DefaultVolume() VolumeConfig {
	return VolumeConfig{Path: "/var/cache/karui", MaxSize: 20 << 30, Weight: 1, ClassWeight: 1}
}

// DefaultDiskConfig returns the values of a file that says nothing.
func DefaultDiskConfig() DiskConfig {
	return DiskConfig{High: 90, Low: 85, Stress: 95}
}
