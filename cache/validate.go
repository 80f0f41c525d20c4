package cache

import (
	"errors"
	"path/filepath"
	"strings"

	"karui/internal/config"
	"karui/internal/units"
)

// Validate checks the section under its key.
func (c Config) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	errs := []error{
		config.InRange(k("memory"), c.Memory, 0, units.Size(1<<40)),
		config.InRange(k("write_queue"), c.WriteQueue, 1<<20, units.Size(1<<40)),
		c.Shared.Validate(k("shared")),
	}
	if len(c.Volumes) == 0 {
		errs = append(errs, config.Invalid(k("volumes"), nil, "a list of volumes, such as [{ path: /var/cache/karui }]"))
	}
	errs = append(errs, config.AtMost(k("volumes"), len(c.Volumes), maxVolumes))
	for i, v := range c.Volumes {
		errs = append(errs, v.Validate(config.Key(key, "volumes", i)))
		for j, other := range c.Volumes[:i] {
			if within(v.Path, other.Path) || within(other.Path, v.Path) {
				errs = append(errs, config.Invalid(config.Key(key, "volumes", i, "path"), v.Path,
					"outside of "+config.Key(key, "volumes", j, "path")+", which is "+other.Path))
			}
		}
	}
	return errors.Join(errs...)
}

// maxVolumes is more than a machine has disks; each costs a few goroutines.
const maxVolumes = 64

// within says whether a path is another one or lies below it.
func within(path, of string) bool {
	path, of = filepath.Clean(path), filepath.Clean(of)
	return path == of || strings.HasPrefix(path, of+"/")
}

// Validate checks one volume under its key.
func (v VolumeConfig) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	errs := []error{
		config.InRange(k("max_size"), v.MaxSize, 1<<20, units.Size(1<<50)),
		config.InRange(k("weight"), v.Weight, 0.001, 1000),
		config.InRange(k("class_weight"), v.ClassWeight, 0.001, 1000),
	}
	if !filepath.IsAbs(v.Path) || filepath.Clean(v.Path) == "/" {
		errs = append(errs, config.Invalid(k("path"), v.Path, "the absolute path of a folder of its own, such as /var/cache/karui"))
	}
	return errors.Join(errs...)
}

// Validate checks the section under its key.
func (c SharedConfig) Validate(key string) error {
	if c.URL != "" {
		return config.NotInThisVersion(config.Key(key, "url"), c.URL, "a shared store")
	}
	var errs []error
	for _, other := range []struct{ name, value string }{{"endpoint", c.Endpoint}, {"region", c.Region}} {
		if other.value != "" {
			errs = append(errs, config.Invalid(config.Key(key, other.name), other.value, "left out, since "+config.Key(key, "url")+" names no bucket"))
		}
	}
	return errors.Join(errs...)
}

// Validate checks the section under its key.
func (c DiskConfig) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	return errors.Join(
		config.InRange(k("high"), c.High, 1, 100),
		config.InRange(k("low"), c.Low, 1, 100),
		config.InRange(k("stress"), c.Stress, 1, 100),
		config.Below(k("low"), c.Low, k("high"), c.High),
		config.Below(k("high"), c.High, k("stress"), c.Stress),
	)
}
