package proxy

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"karui/convert/header"
	"karui/internal/config"
	"karui/proxy/dial"
)

// Bounds of the dial.
const (
	maxDialLevels = 10
	maxSchedule   = 1000
)

// noFormats is the word for a level at which nothing new is made.
const noFormats = "none"

// Validate checks the section under its key.
func (c DialConfig) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	top := len(dial.Defaults()) - 1
	if len(c.Levels) > 0 {
		top = len(c.Levels) - 1
	}
	modes := []string{"auto", "off"}
	for level := range min(top+1, maxDialLevels) {
		modes = append(modes, strconv.Itoa(level))
	}
	errs := []error{
		config.OneOf(k("mode"), c.Mode, modes...),
		config.InRange(k("wait"), c.Wait, 0, time.Minute),
		config.AtMost(k("levels"), len(c.Levels), maxDialLevels),
		config.AtMost(k("schedule"), len(c.Schedule), maxSchedule),
	}
	names := make([]string, len(c.Levels))
	for i, level := range c.Levels {
		names[i] = level.Name
		errs = append(errs, level.validate(config.Key(key, "levels", i)))
	}
	errs = append(errs, config.Unique(names, func(i int) string { return config.Key(key, "levels", i, "name") }))
	for i, window := range c.Schedule {
		errs = append(errs, window.validate(config.Key(key, "schedule", i), top))
	}
	return errors.Join(errs...)
}

func (l DialLevel) validate(key string) error {
	errs := []error{
		config.Name(config.Key(key, "name"), l.Name),
		config.InRange(config.Key(key, "quality"), l.Quality, 0, 100), // 0: the site's
		config.InRange(config.Key(key, "effort"), l.Effort, 0, 6),
	}
	if slices.Contains(l.Formats, noFormats) {
		if len(l.Formats) > 1 {
			errs = append(errs, config.Invalid(config.Key(key, "formats"), l.Formats, "either [none], or formats"))
		}
		return errors.Join(errs...)
	}
	for i, f := range l.Formats {
		errs = append(errs, checkFormat(config.Key(key, "formats", i), f))
	}
	return errors.Join(errs...)
}

func (s DialSchedule) validate(key string, top int) error {
	errs := []error{
		config.Text(config.Key(key, "name"), s.Name, 100),
		config.InRange(config.Key(key, "level"), s.Level, 0, top),
	}
	var list dial.WindowErrors
	if _, err := s.window(); errors.As(err, &list) {
		for _, wrong := range list {
			errs = append(errs, config.Invalid(config.Key(key, wrong.Field), wrong.Value, wrong.Want))
		}
	}
	return errors.Join(errs...)
}

func (s DialSchedule) window() (dial.Window, error) {
	return dial.ParseWindow(s.Name, s.From, s.To, s.Zone, s.Level)
}

// settings gives the section, which is valid, as the dial takes it.
func (c DialConfig) settings() dial.Settings {
	s := dial.Settings{Auto: c.Mode == "auto", Wait: c.Wait, Levels: dial.Defaults()}
	if n, err := strconv.Atoi(c.Mode); err == nil {
		s.Base = n
	}
	if len(c.Levels) > 0 {
		s.Levels = nil
	}
	for _, l := range c.Levels {
		level := dial.Level{Name: l.Name, Quality: l.Quality, Effort: l.Effort, Deferred: slices.Contains(l.Formats, noFormats)}
		for _, name := range l.Formats {
			if f, ok := header.ParseFormat(name); ok {
				level.Formats = append(level.Formats, f)
			}
		}
		s.Levels = append(s.Levels, level)
	}
	for _, window := range c.Schedule {
		if w, err := window.window(); err == nil {
			s.Windows = append(s.Windows, w)
		}
	}
	return s
}
