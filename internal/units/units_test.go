package units_test

import (
	"encoding"
	"testing"

	"pgregory.net/rapid"

	"karui/internal/units"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]units.Size{
		"0": 0, "0B": 0, "1B": 1, "512B": 512, "1kB": 1000, "1KB": 1000, "1KiB": 1024, "256MiB": 256 << 20, "1.5GiB": 3 << 29,
		"20GiB": 20 << 30, "2GB": 2e9, "1TiB": 1 << 40, "1TB": 1e12, " 5 MiB ": 5 << 20, "0.5KiB": 512,
	} {
		if got, err := units.ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "1", "1024", "1.5", "MiB", "-1MiB", "-0.1B", "1M", "1Mib", "1mib", "1 000B", "1e400B", "nanB", "infB", "NaNMiB", "9EiB",
		"8388608TiB", "0x10B1", "1,5GiB", "1MiB/s", "MiB5",
	} {
		if got, err := units.ParseSize(text); err == nil {
			t.Errorf("%q was taken as %d", text, got)
		}
	}
}

func TestParsePixels(t *testing.T) {
	for text, want := range map[string]units.Pixels{"0": 0, "64MP": 64_000_000, "1.5kP": 1500, "12P": 12, "1GP": 1e9} {
		if got, err := units.ParsePixels(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "64", "64M", "64MiB", "-1P", "64mp", "P"} {
		if got, err := units.ParsePixels(text); err == nil {
			t.Errorf("%q was taken as %d", text, got)
		}
	}
}

func TestParsePercent(t *testing.T) {
	for text, want := range map[string]units.Percent{"0": 0, "0%": 0, "90%": 90, "12.5 %": 12.5, "100%": 100} {
		if got, err := units.ParsePercent(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "90", "0.9", "101%", "-1%", "%", "NaN%", "1e9%", "ninety%"} {
		if got, err := units.ParsePercent(text); err == nil {
			t.Errorf("%q was taken as %v", text, got)
		}
	}
}

// What is written reads back to the same value.
func TestTextIsReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<50).Draw(t, "n")
		if rapid.Bool().Draw(t, "round") {
			n -= n % (1 << 20)
		}
		size, pixels := units.Size(n), units.Pixels(n)
		percent := units.Percent(rapid.Float64Range(0, 100).Draw(t, "percent"))
		var size2 units.Size
		var pixels2 units.Pixels
		var percent2 units.Percent
		back(t, size, &size2)
		back(t, pixels, &pixels2)
		back(t, percent, &percent2)
		if size != size2 || pixels != pixels2 || percent != percent2 {
			t.Errorf("%d, %d, %v came back as %d, %d, %v", size, pixels, percent, size2, pixels2, percent2)
		}
	})
}

func back(t *rapid.T, from encoding.TextMarshaler, to encoding.TextUnmarshaler) {
	text, err := from.MarshalText()
	if err == nil {
		err = to.UnmarshalText(text)
	}
	if err != nil {
		t.Fatalf("%q: %s", text, err)
	}
}

func TestStringTakesTheLargestUnit(t *testing.T) {
	for want, got := range map[string]string{
		"0B": units.Size(0).String(), "1KiB": units.Size(1024).String(), "1025B": units.Size(1025).String(),
		"20GiB": units.Size(20 << 30).String(), "1536MiB": units.Size(3 << 29).String(),
		"64MP": units.Pixels(64e6).String(), "0P": units.Pixels(0).String(), "12.5%": units.Percent(12.5).String(),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0", "1.5GiB", "64MP", "90%", "-1B", "1e300TiB", "nan%"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := units.ParseSize(text); err == nil && n < 0 {
			t.Errorf("%q is %d bytes", text, n)
		}
		if n, err := units.ParsePixels(text); err == nil && n < 0 {
			t.Errorf("%q is %d pixels", text, n)
		}
		if p, err := units.ParsePercent(text); err == nil && (p < 0 || p > 100) {
			t.Errorf("%q is %v", text, p)
		}
	})
}
