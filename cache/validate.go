package cache

import (
	"errors"
	"path/filepath"

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
	switch n := len(c.Volumes); {
	case n == 0:
		errs = append(errs, config.Invalid(k("volumes"), nil, "a list with one volume, such as [{ path: /var/cache/karui }]"))
	case n > 1:
		errs = append(errs, config.NotInThisVersion(config.Key(key, "volumes", 1), c.Volumes[1].Path, "more than one volume"))
	}
	for i, v := range c.Volumes {
		errs = append(errs, v.Validate(config.Key(key, "volumes", i)))
	}
	return errors.Join(errs...)
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
