package command

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Duration is a flag's value that is written as Go's durations are, or in days, as
// people think of what holds for long: 90m, 6h, 3d, 1d12h.
type Duration time.Duration

var _ pflag.Value = (*Duration)(nil)

// Set reads a duration. A day has 24 hours.
func (d *Duration) Set(text string) error {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		v, err := time.ParseDuration(text)
		*d = Duration(v)
		return err
	}
	n, err := strconv.ParseFloat(days, 64)
	const most = 36500 // a hundred years, far below what overflows
	if err != nil || math.IsNaN(n) || math.Abs(n) > most {
		return errors.New("not a number of days")
	}
	total := time.Duration(n * 24 * float64(time.Hour))
	if rest != "" {
		more, err := time.ParseDuration(rest)
		if err != nil || more < 0 || more > 24*time.Hour {
			return errors.New("not a time below a day after the days")
		}
		total += more
	}
	*d = Duration(total)
	return nil
}

// String gives it as Go does.
func (d *Duration) String() string { return time.Duration(*d).String() }

// Type names it for the help.
func (d *Duration) Type() string { return "time" }
