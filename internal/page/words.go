package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size in powers of 1024, as the configuration writes them: "1.4 GiB".
func Bytes[N ~int64 | ~uint64 | ~float64](n N) string {
	v := float64(n)
	if math.Abs(v) < 1024 {
		return fmt.Sprintf("%.0f B", v)
	}
	unit := ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		v /= 1024
		if math.Abs(v) < 1023.95 {
			break
		}
	}
	return digits(v) + " " + unit
}

// Count is a number with its thousands set apart: "12,345"; from a million on, about:
// "1.23 M".
func Count[N ~int | ~int64 | ~uint64 | ~float64](n N) string {
	v := float64(n)
	switch {
	case v >= 999.5e6:
		return digits(v/1e9) + " G"
	case v >= 999_999.5:
		return digits(v/1e6) + " M"
	case v >= 999.5:
		whole := int64(math.Round(v))
		return fmt.Sprintf("%d,%03d", whole/1000, whole%1000)
	}
	return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
}

// Rate is a number of things a second: "12.4".
func Rate(v float64) string {
	switch {
	case v > 0 && v < 0.01:
		return "< 0.01"
	case v < 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 1000:
		return digits(v)
	}
	return Count(v)
}

// digits gives three of them.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// Share is good of all, in percent. It is rounded down, so that 100 % is all of them,
// with two digits of the difference, and four decimals at most: "99.98 %".
func Share(good, all uint64) string {
	switch {
	case all == 0:
		return "none asked"
	case good >= all:
		return "100 %"
	}
	missed := 100 * float64(all-good) / float64(all)
	decimals := 1
	for decimals < 4 && missed*math.Pow(10, float64(decimals-1)) < 1-1e-9 {
		decimals++
	}
	scale := math.Pow(10, float64(decimals))
	text := strconv.FormatFloat(100-max(math.Ceil(missed*scale-1e-9), 1)/scale, 'f', decimals, 64)
	whole, part, _ := strings.Cut(text, ".")
	return whole + "." + part[:1] + strings.TrimRight(part[1:], "0") + " %"
}

// Percent is a share of 0 to 1: "34 %".
func Percent(share float64) string {
	switch v := 100 * share; {
	case v > 0 && v < 0.1:
		return "< 0.1 %"
	case v < 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(v, 'f', 0, 64) + " %"
	}
}

// Took is a short time: "340 ms", "2.1 s".
func Took(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 ms"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
	case d < time.Second-500*time.Microsecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 0, 64) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return Long(d)
}

// Long is a time in its two largest units: "2 h 14 min".
func Long(d time.Duration) string {
	d = max(d, 0)
	day, hour := 24*time.Hour, time.Hour
	two := func(a time.Duration, first string, b time.Duration, second string) string {
		if rest := d % a / b; rest > 0 {
			return fmt.Sprintf("%d %s %d %s", d/a, first, rest, second)
		}
		return fmt.Sprintf("%d %s", d/a, first)
	}
	switch {
	case d >= day:
		return two(day, "d", hour, "h")
	case d >= hour:
		return two(hour, "h", time.Minute, "min")
	case d >= 10*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d >= time.Minute:
		return two(time.Minute, "min", time.Second, "s")
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// Zone names the zone of a time by its offset: "UTC", "UTC+09:00".
func Zone(t time.Time) string {
	if _, seconds := t.Zone(); seconds == 0 {
		return "UTC"
	}
	return "UTC" + t.Format("-07:00")
}

// Clock is a time of the day in the zone of now: "03:12:45". Of another day it begins
// with the date.
func Clock(at, now time.Time) string {
	at = at.In(now.Location())
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return at.Format("Jan 2 15:04:05")
	}
	return at.Format(time.TimeOnly)
}

// Plural gives the number with the noun: "1 worker", "3 workers".
func Plural[N ~int | ~int64 | ~uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}
