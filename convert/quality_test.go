package convert

import (
	"testing"
	"time"

	"karui/convert/header"
)

func TestEncoderQuality(t *testing.T) {
	for _, c := range []struct {
		format     header.Format
		dial, want int
	}{
		{header.WebP, 1, 1},
		{header.WebP, 80, 80},
		{header.WebP, 100, 100},
		{header.AVIF, 80, 63},
		{header.AVIF, 75, 60},
		{header.AVIF, 1, 25},
		{header.HEIC, 80, 46},
		{header.HEIC, 1, 20},
		{header.WebP, 0, 1},
		{header.WebP, -5, 1},
		{header.WebP, 1000, 100},
		{header.JXL, 77, 77},
	} {
		if got := EncoderQuality(c.format, c.dial); got != c.want {
			t.Errorf("%v at %d: %d, want %d", c.format, c.dial, got, c.want)
		}
	}
	for _, e := range encoders {
		last := 0
		for dial := 1; dial <= 100; dial++ {
			q := EncoderQuality(e.format, dial)
			if q < last || q < 1 || q > 100 {
				t.Errorf("%s: %d at %d, %d before", e.name, q, dial, last)
			}
			last = q
		}
	}
	// From 90 on libvips would write HEIC with the full resolution for colours, which few devices show.
	if q := EncoderQuality(header.HEIC, 100); q >= fullColorQuality {
		t.Errorf("HEIC at %d", q)
	}
}

func TestDialIsLimitedByTheSource(t *testing.T) {
	for _, c := range []struct{ site, source, want int }{
		{80, 95, 80},
		{80, 60, 60},
		{80, 0, 80}, // not known
		{0, 95, 1},
		{250, 0, 100},
	} {
		plan := MakePlan(with(photo(), func(i *header.Info) { i.JPEGQuality = c.source }), 10,
			Options{Formats: []header.Format{header.WebP}, Quality: c.site}, DefaultConfig())
		if plan.Dial != c.want || plan.Quality != c.want {
			t.Errorf("site %d, source %d: dial %d, quality %d", c.site, c.source, plan.Dial, plan.Quality)
		}
	}
}

// The costs are estimates; what must hold is their order and their size against the measurements they come from.
func TestCost(t *testing.T) {
	webp, _ := encoderOf(header.WebP)
	avif, _ := encoderOf(header.AVIF)
	heic, _ := encoderOf(header.HEIC)
	near := func(name string, got, want time.Duration) {
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("%s: %v, measured %v", name, got, want)
		}
	}
	near("webp effort 2", webp.cost(photo(), 2, 80, false), 59*ms)
	near("webp effort 4", webp.cost(photo(), 4, 80, false), 106*ms)
	near("webp lossless effort 4", webp.cost(photo(), 4, 80, true), 900*ms)
	near("avif effort 1", avif.cost(photo(), 1, 60, false), 200*ms)
	near("heic", heic.cost(photo(), 0, 60, false), 1400*ms)

	if low, high := heic.cost(photo(), 0, 46, false), heic.cost(photo(), 0, 80, false); high < low*3/2 {
		t.Errorf("heic: %v at 46 and %v at 80", low, high)
	}
	if half, whole := avif.cost(photo(), 1, 63, false), avif.cost(photo(), 1, 92, false); whole < half*3/2 {
		t.Errorf("avif: %v with half the resolution for colours and %v with all", half, whole)
	}

	base := webp.cost(photo(), 2, 80, false)
	for name, dearer := range map[string]header.Info{
		"more pixels":      sized(photo(), 2000, 2000),
		"printers' colour": with(photo(), func(i *header.Info) { i.Color = header.CMYK }),
		"more scans":       with(photo(), func(i *header.Info) { i.OnePass, i.Scans = false, 10 }),
	} {
		if got := webp.cost(dearer, 2, 80, false); got <= base {
			t.Errorf("%s: %v is not more than %v", name, got, base)
		}
	}
	if got := webp.cost(with(photo(), func(i *header.Info) { i.Scans = 900 }), 2, 80, false); got != base {
		t.Errorf("scans that are not read cost %v", got-base)
	}
	one := webp.cost(with(animation(), func(i *header.Info) { i.Frames = 1 }), 2, 80, false)
	if ten := webp.cost(animation(), 2, 80, false); ten < 9*one {
		t.Errorf("ten frames cost %v, one %v", ten, one)
	}
	if got := webp.cost(sized(drawing(), 1<<31-1, 1<<31-1), 2, 80, false); got <= 0 {
		t.Errorf("the largest picture costs %v", got)
	}
	if got := avif.cost(photo(), 2, 60, true); got < time.Hour {
		t.Errorf("an encoder without a lossless mode would take %v", got)
	}
	for _, effort := range []int{-1, 99} {
		if got := webp.cost(photo(), effort, 80, false); got <= 0 || got > time.Second {
			t.Errorf("effort %d costs %v", effort, got)
		}
	}
}

func TestEncoders(t *testing.T) {
	if !CanMake(header.WebP) || CanMake(header.JPEG) || CanMake(header.Unknown) {
		t.Error("what can be made is not what the worker makes")
	}
	if DefaultEffort(header.WebP) != 2 || DefaultEffort(header.AVIF) != 1 || DefaultEffort(header.HEIC) != 0 {
		t.Error("efforts are not those of the design")
	}
}
