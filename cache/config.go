package cache

import "karui/internal/units"

// Config is the section `cache` of karui.yaml.
type Config struct {
	// Memory bounds the bytes of bodies kept in memory.
	Memory units.Size `yaml:"memory"`
	// WriteQueue bounds the bytes that wait in memory to be written, an equal part
	// of it for each volume.
	WriteQueue units.Size `yaml:"write_queue"`
	// Volumes are the folders that hold entries.
	Volumes []VolumeConfig `yaml:"volumes"`
	// Shared is a bucket that the nodes of a cluster share.
	Shared SharedConfig `yaml:"shared"`
}

// VolumeConfig is one folder on a disk.
type VolumeConfig struct {
	Path    string     `yaml:"path"`
	MaxSize units.Size `yaml:"max_size"`
	// Weight and ClassWeight multiply the volume's share of new entries.
	Weight      float64 `yaml:"weight"`
	ClassWeight float64 `yaml:"class_weight"`
}

// SharedConfig names the bucket, `s3://bucket/prefix`; an empty URL means none.
type SharedConfig struct {
	URL      string `yaml:"url"`
	Endpoint string `yaml:"endpoint"`
	Region   string `yaml:"region"`
}

// DiskConfig is the section `disk` of karui.yaml: the used share of a volume's
// file system, used / (used + available to us), at which something happens.
type DiskConfig struct {
	// High starts eviction, which ends at Low.
	High units.Percent `yaml:"high"`
	Low  units.Percent `yaml:"low"`
	// Stress is the share from which the proxy sheds.
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
