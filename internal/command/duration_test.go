package command

import (
	"testing"
	"time"
)

func TestDurationsInDays(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "6h": 6 * time.Hour, "3d": 3 * day, "0.5d": 12 * time.Hour, "1d12h": 36 * time.Hour, "-1d": -day, "0s": 0,
	} {
		var d Duration
		if err := d.Set(text); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %s, %v; want %s", text, d.String(), err, want)
		}
	}
	for _, text := range []string{"", "3", "d", "3 d", "1e99d", "NaNd", "infd", "1dx", "1d-2h", "1d25h", "1d2d", "3days", "36501d"} {
		if d := Duration(0); d.Set(text) == nil {
			t.Errorf("%q was taken as %s", text, d.String())
		}
	}
}
