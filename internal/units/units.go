// Package units holds the quantities that stand in configuration files: sizes
// in bytes, pictures in pixels and shares in percent.
//
// Every value carries its unit in text ("256MiB", "64MP", "90%"). A bare number
// is refused, because a reader of the file cannot tell what it counts; the only
// bare number that is taken is 0, which is the same in every unit.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

// Pixels is a number of pixels, counted over all frames of an animation.
type Pixels int64

// Percent is a share from 0 to 100.
type Percent float64

// unit is a suffix and what one of it counts.
type unit struct {
	suffix string
	factor float64
}

// Longer suffixes stand first, since "MiB" also ends in "B".
var (
	sizeUnits = []unit{
		{"TiB", 1 << 40},
		{"GiB", 1 << 30},
		{"MiB", 1 << 20},
		{"KiB", 1 << 10},
		{"TB", 1e12},
		{"GB", 1e9},
		{"MB", 1e6},
		{"kB", 1e3},
		{"KB", 1e3},
		{"B", 1},
	}
	pixelUnits = []unit{{"GP", 1e9}, {"MP", 1e6}, {"kP", 1e3}, {"P", 1}}
)

func parse(text string, units []unit, form string) (int64, error) {
	s := strings.TrimSpace(text)
	if s == "0" {
		return 0, nil
	}
	for _, u := range units {
		digits, found := strings.CutSuffix(s, u.suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || n < 0 || math.IsNaN(n) || n*u.factor >= math.MaxInt64 {
			return 0, fmt.Errorf("%q is not %s", text, form)
		}
		return int64(math.Round(n * u.factor)), nil
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, fmt.Errorf("%q has no unit: write %s", text, form)
	}
	return 0, fmt.Errorf("%q is not %s", text, form)
}

func format(n int64, units []unit, zero string) string {
	if n == 0 {
		return zero
	}
	for _, u := range units {
		if f := int64(u.factor); n >= f && n%f == 0 {
			return strconv.FormatInt(n/f, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10) + units[len(units)-1].suffix
}

// ParseSize reads a size such as "256MiB", "20GiB" or "1.5GB".
func ParseSize(text string) (Size, error) {
	n, err := parse(text, sizeUnits, `a size such as "256MiB" or "20GiB"`)
	return Size(n), err
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSize(string(text))
	return err
}

// TextForm says what UnmarshalText takes.
func (Size) TextForm() string { return "a size with its unit, such as 256MiB or 20GiB" }

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String gives the largest unit that leaves a whole number, so that it reads back to the same value.
func (s Size) String() string { return format(int64(s), sizeUnits, "0B") }

// ParsePixels reads a number of pixels such as "64MP"; 1 MP is a million pixels.
func ParsePixels(text string) (Pixels, error) {
	n, err := parse(text, pixelUnits, `a number of pixels such as "64MP"`)
	return Pixels(n), err
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Pixels) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePixels(string(text))
	return err
}

// TextForm says what UnmarshalText takes.
func (Pixels) TextForm() string { return "a number of pixels with its unit, such as 64MP" }

// MarshalText implements encoding.TextMarshaler.
func (p Pixels) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String gives the largest unit that leaves a whole number.
func (p Pixels) String() string { return format(int64(p), pixelUnits, "0P") }

// ParsePercent reads a share such as "90%"; it must lie in 0 to 100.
func ParsePercent(text string) (Percent, error) {
	s := strings.TrimSpace(text)
	if s == "0" {
		return 0, nil
	}
	digits, found := strings.CutSuffix(s, "%")
	if !found {
		return 0, fmt.Errorf(`%q is not a percentage such as "90%%"`, text)
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > 100 {
		return 0, fmt.Errorf(`%q is not a percentage from "0%%" to "100%%"`, text)
	}
	return Percent(n), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Percent) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePercent(string(text))
	return err
}

// TextForm says what UnmarshalText takes.
func (Percent) TextForm() string { return "a percentage from 0% to 100%, with its sign" }

// MarshalText implements encoding.TextMarshaler.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String writes the share with its sign.
func (p Percent) String() string { return strconv.FormatFloat(float64(p), 'f', -1, 64) + "%" }
