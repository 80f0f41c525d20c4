package convert

import (
	"math"
	"strings"
	"testing"
	"time"

	"karui/convert/header"
)

// photo is a JPEG of 1.04 MP as cameras write them.
func photo() header.Info {
	return header.Info{
		Format: header.JPEG, Width: 1200, Height: 867, ExtentWidth: 1200, ExtentHeight: 867, Frames: 1, BitDepth: 8, Components: 3,
		Color: header.YCC, Orientation: 1, SOF: 0xC0, JPEGQuality: 95, Scans: 1, OnePass: true, Whole: true,
	}
}

func drawing() header.Info {
	return header.Info{
		Format: header.PNG, Width: 1000, Height: 1000, ExtentWidth: 1000, ExtentHeight: 1000, Frames: 1, BitDepth: 8, Components: 4,
		Color: header.RGB, Alpha: true, Orientation: 1, Whole: true,
	}
}

func animation() header.Info {
	return header.Info{
		Format: header.GIF, Width: 500, Height: 400, ExtentWidth: 500, ExtentHeight: 400, Frames: 10, FramesWhole: 10, Animated: true,
		BitDepth: 8, Components: 1, Color: header.Palette, Orientation: 1, Whole: true,
	}
}

func with(info header.Info, change func(*header.Info)) header.Info {
	change(&info)
	return info
}

func sized(info header.Info, w, h int) header.Info {
	info.Width, info.Height, info.ExtentWidth, info.ExtentHeight = w, h, w, h
	return info
}

var webpOnly = Options{Formats: []header.Format{header.WebP}, Quality: 80}

func TestPlanKeeps(t *testing.T) {
	for _, c := range []struct {
		name   string
		info   header.Info
		size   int64
		opt    Options
		code   Code
		reason string // a part of it
	}{
		{"nothing known", header.Info{}, 10, webpOnly, NotConvertible, "not a JPEG"},
		{"webp", header.Info{Format: header.WebP}, 10, webpOnly, NotConvertible, "webp is passed through"},
		{"svg", header.Info{Format: header.SVG}, 10, webpOnly, NotConvertible, "svg is passed through"},
		{"viewer takes nothing", photo(), 10, Options{Quality: 80}, NotAccepted, "no lighter format"},
		{"viewer takes what is not made", photo(), 10, Options{Formats: []header.Format{header.SVG, header.JXL}, Quality: 80}, NotAccepted, "made here"},
		{"viewer takes the source's format", photo(), 10, Options{Formats: []header.Format{header.JPEG}, Quality: 80}, NotAccepted, "made here"},
		{"too many bytes", photo(), 32<<20 + 1, webpOnly, TooLarge, "33554433 bytes, and at most 32MiB"},
		{"animated png", with(drawing(), func(i *header.Info) { i.Animated, i.Frames = true, 15 }), 10, webpOnly, AnimatedPNG, "frames: 15"},
		{"linear png", with(drawing(), func(i *header.Info) { i.OddColor = "gAMA" }), 10, webpOnly, OddColor, "gAMA"},
		{"gain map", with(photo(), func(i *header.Info) { i.GainMap = true }), 10, webpOnly, GainMap, "HDR"},
		{"12 bits", with(photo(), func(i *header.Info) { i.SOF, i.BitDepth = 0xC1, 12 }), 10, webpOnly, UnsupportedJPEG, "12 bits"},
		{"lossless", with(photo(), func(i *header.Info) { i.SOF = 0xC3 }), 10, webpOnly, UnsupportedJPEG, "lossless"},
		{"hierarchical", with(photo(), func(i *header.Info) { i.SOF = 0xC5 }), 10, webpOnly, UnsupportedJPEG, "hierarchical"},
		{"arithmetic lossless", with(photo(), func(i *header.Info) { i.SOF = 0xCB }), 10, webpOnly, UnsupportedJPEG, "lossless"},
		{"two components", with(photo(), func(i *header.Info) { i.Components = 2 }), 10, webpOnly, UnsupportedJPEG, "2 components"},
		{"late height", with(photo(), func(i *header.Info) { i.LateHeight = true }), 10, webpOnly, UnsupportedJPEG, "1200 px by"},
		{"height of zero", sized(photo(), 800, 0), 10, webpOnly, UnsupportedJPEG, "800 px by"},
		{"width of zero", sized(photo(), 0, 800), 10, webpOnly, Empty, "0 x 800 px"},
		{"png of no height", sized(drawing(), 3, 0), 10, webpOnly, Empty, "3 x 0 px"},
		{"gif without frames", with(animation(), func(i *header.Info) { i.Frames, i.FramesWhole = 0, 0 }), 10, webpOnly, Empty, "no frames"},
		{"gif with an empty frame", with(animation(), func(i *header.Info) { i.EmptyFrames = 1 }), 10, webpOnly, Empty, "1 of 10 frames"},
		{"too many pixels", sized(photo(), 8001, 8000), 10, webpOnly, TooManyPixels, "8001 x 8000 px are 64.01 MP, and at most 64 MP"},
		{"too many pixels over all frames", with(animation(), func(i *header.Info) { i.Frames = 400 }), 10, webpOnly, TooManyPixels, "400 frames of 500 x 400 px are 80 MP"},
		{"too many pixels by far", sized(drawing(), math.MaxInt32, math.MaxInt32), 10, webpOnly, TooManyPixels, "4.612e+12 MP"},
		{"too many frames", with(sized(animation(), 10, 10), func(i *header.Info) { i.Frames = 4097 }), 10, webpOnly, TooManyFrames, "4096"},
		{"too wide", sized(photo(), 17000, 200), 10, webpOnly, TooWide, "17000 x 200 px: WebP holds at most 16383 px a side"},
		{"too high", sized(photo(), 200, 16384), 10, webpOnly, TooWide, "200 x 16384 px"},
		{"cut-off gif", with(animation(), func(i *header.Info) { i.FramesWhole, i.Whole = 9, false }), 10, webpOnly, Truncated, "frame 10"},
		{"gif with junk", with(animation(), func(i *header.Info) { i.Junk, i.Whole = true, false }), 10, webpOnly, Broken, "frame 10"},
		{"gif beyond its canvas", with(animation(), func(i *header.Info) { i.ExtentWidth = 501 }), 10, webpOnly, OddCanvas, "501 x 400 px, beyond"},
		{"gif on a canvas of a screen's size", with(animation(), func(i *header.Info) { i.Width, i.Height = 800, 600 }), 10, webpOnly, OddCanvas, "800 x 600 px, which the decoder ignores"},
		{"gif that is not covered", with(animation(), func(i *header.Info) { i.Uncovered = true }), 10, webpOnly, OddCanvas, "transparent"},
		{"thousands of scans", with(sized(photo(), 2000, 2000), func(i *header.Info) { i.SOF, i.OnePass, i.Scans = 0xC2, false, 3000 }), 10, webpOnly, TooSlow, "at most 10s"},
		{
			"large png, lossless wanted", sized(drawing(), 6000, 4000), 10,
			Options{Formats: []header.Format{header.WebP}, Quality: 80, PNG: PNGLossless},
			TooSlow, "24 MP of pixels as WebP would take about 15.5s",
		},
	} {
		plan := MakePlan(c.info, c.size, c.opt, DefaultConfig())
		if !plan.Keep || plan.Decision.Code != c.code || !strings.Contains(plan.Decision.Reason, c.reason) || !plan.Decision.Settled {
			t.Errorf("%s: %+v, want %s with %q", c.name, plan, c.code, c.reason)
		}
		if plan.Target != header.Unknown || plan.Source != c.info.Format {
			t.Errorf("%s: target %v, source %v", c.name, plan.Target, plan.Source)
		}
	}
}

func TestPlanConverts(t *testing.T) {
	for _, c := range []struct {
		name string
		info header.Info
		size int64
	}{
		{"photo", photo(), 300_000},
		{"photo of the largest size", photo(), 32 << 20},
		{"photo without an end marker", with(photo(), func(i *header.Info) { i.Whole = false }), 10},
		{"stereo photo", with(photo(), func(i *header.Info) { i.MPF = true }), 10},
		{"photo on the limit of sides", sized(photo(), 16383, 16), 10},
		{"photo on the limit of pixels", sized(photo(), 8000, 8000), 10},
		{"progressive photo", with(photo(), func(i *header.Info) { i.SOF, i.OnePass, i.Scans = 0xC2, false, 10 }), 10},
		{"arithmetic photo", with(photo(), func(i *header.Info) { i.SOF = 0xC9 }), 10},
		{"grey photo", with(photo(), func(i *header.Info) { i.Components, i.Color = 1, header.Gray }), 10},
		{"printers' photo", with(photo(), func(i *header.Info) { i.Components, i.Color = 4, header.YCCK }), 10},
		{"drawing", drawing(), 10},
		{"drawing of 16 bits", with(drawing(), func(i *header.Info) { i.BitDepth = 16 }), 10},
		{"animation", animation(), 10},
		{"animation without a trailer", with(animation(), func(i *header.Info) { i.Whole = false }), 10},
		{"animation of a screen's size", sized(animation(), 800, 600), 10},
		{"large animation", with(sized(animation(), 1000, 1000), func(i *header.Info) { i.Frames, i.FramesWhole = 60, 60 }), 10},
	} {
		plan := MakePlan(c.info, c.size, webpOnly, DefaultConfig())
		if plan.Keep || plan.Target != header.WebP || plan.Quality != 80 || plan.Dial != 80 || plan.Effort != 2 ||
			plan.Decision != (Decision{}) || plan.CPU <= 0 || plan.CPU > 10*time.Second {
			t.Errorf("%s: %+v", c.name, plan)
		}
		if isPNG := c.info.Format == header.PNG; isPNG != (plan.PNG == PNGAuto) || isPNG != (plan.LosslessCPU > plan.CPU) {
			t.Errorf("%s: png %q, lossless %v", c.name, plan.PNG, plan.LosslessCPU)
		}
	}
}

func TestPlanOptions(t *testing.T) {
	opt := webpOnly
	opt.Formats = []header.Format{header.JXL, header.JPEG, header.WebP}
	opt.Keep = []string{KeepCopyright}
	if plan := MakePlan(photo(), 10, opt, DefaultConfig()); plan.Target != header.WebP || !plan.KeepCopyright {
		t.Errorf("%+v", plan)
	}
	opt.PNG = PNGLossless
	if plan := MakePlan(drawing(), 10, opt, DefaultConfig()); plan.PNG != PNGLossless || plan.CPU != plan.LosslessCPU {
		t.Errorf("%+v", plan)
	}
	// A picture of 24 MP can be made lossy in time, and not lossless: that is said, and the worker looks at the content.
	opt.PNG = PNGAuto
	if plan := MakePlan(sized(drawing(), 6000, 4000), 10, opt, DefaultConfig()); plan.Keep || !plan.LosslessTooSlow {
		t.Errorf("%+v", plan)
	}
	// Less time, fewer conversions.
	cfg := DefaultConfig()
	cfg.Timeout = 100 * time.Millisecond
	if plan := MakePlan(photo(), 10, webpOnly, cfg); plan.Decision.Code != TooSlow {
		t.Errorf("%+v", plan)
	}
}

// The formats that are not made yet are planned by the same rules: their limits hold already.
func TestPlanNextFormat(t *testing.T) {
	webp, _ := encoderOf(header.WebP)
	avif, _ := encoderOf(header.AVIF)
	heic, _ := encoderOf(header.HEIC)
	opt, cfg := Options{Quality: 80}, DefaultConfig()
	for _, c := range []struct {
		name                               string
		info                               header.Info
		avifFits, heicFits, webpFits, slow bool
	}{
		{"photo", photo(), true, true, true, false},
		{"12 MP", sized(photo(), 4000, 3000), true, false, true, true}, // HEIC at 1.36 s a megapixel
		{"60 MP", sized(photo(), 10_000, 6000), false, false, true, true},
		{"panorama", sized(photo(), 16_800, 100), true, true, false, false},
		{"longer panorama", sized(photo(), 20_000, 100), true, false, false, false},
		{"longest panorama", sized(photo(), 40_000, 100), false, false, false, false},
	} {
		_, avifNo, avifFits := avif.plan(c.info, opt, cfg)
		_, heicNo, heicFits := heic.plan(c.info, opt, cfg)
		_, webpNo, webpFits := webp.plan(c.info, opt, cfg)
		if avifFits != c.avifFits || heicFits != c.heicFits || webpFits != c.webpFits {
			t.Errorf("%s: avif %v (%v), heic %v (%v), webp %v (%v)", c.name, avifFits, avifNo, heicFits, heicNo, webpFits, webpNo)
		}
		for _, no := range []Decision{avifNo, heicNo, webpNo} {
			if no.Code == TooSlow && !c.slow {
				t.Errorf("%s: %v", c.name, no)
			}
		}
	}
}

func TestPlanWhole(t *testing.T) {
	for _, c := range []struct {
		name, body string
		code       Code
	}{
		{"empty", "", NotConvertible},
		{"html", "<!DOCTYPE html><html></html>", NotConvertible},
		{"webp", "RIFF\x10\x00\x00\x00WEBPVP8 ", NotConvertible},
		{"jpeg of three bytes", "\xff\xd8\xff", Truncated},
		{"jpeg that ends at once", "\xff\xd8\xff\xd9", Broken},
		{"png of its signature", "\x89PNG\r\n\x1a\n", Truncated},
		{"png without a header", "\x89PNG\r\n\x1a\n\x00\x00\x00\x00IEND\xae\x42\x60\x82", Broken},
		{"gif of its screen", "GIF89a\x01\x00\x01\x00\x00\x00\x00", Truncated},
		{"gif without frames", "GIF89a\x01\x00\x01\x00\x00\x00\x00;", Empty},
	} {
		_, plan := PlanWhole([]byte(c.body), webpOnly, DefaultConfig())
		if !plan.Keep || plan.Decision.Code != c.code || plan.Decision.Reason == "" {
			t.Errorf("%s: %+v, want %s", c.name, plan, c.code)
		}
	}
}

func TestSettled(t *testing.T) {
	for _, passing := range []Code{Timeout, QueueFull, Unavailable} {
		if Decide(passing, "").Settled {
			t.Errorf("%s is settled", passing)
		}
	}
	for _, settled := range []Code{Converted, NotSmaller, Broken, Crashed, Quarantined, TooSlow} {
		if !Decide(settled, "").Settled {
			t.Errorf("%s is not settled", settled)
		}
	}
}

func TestEffortIsChosenForWebPAlone(t *testing.T) {
	plan := func(f header.Format, effort *int) Plan {
		return MakePlan(photo(), 1<<20, Options{Formats: []header.Format{f}, Quality: 80, Effort: effort}, DefaultConfig())
	}
	for effort, want := range map[int]int{0: 0, 1: 1, 6: 6, 9: 6, -1: 0} {
		if got := plan(header.WebP, &effort).Effort; got != want {
			t.Errorf("WebP with effort %d is made with %d, want %d", effort, got, want)
		}
		if got := plan(header.AVIF, &effort).Effort; got != DefaultEffort(header.AVIF) {
			t.Errorf("AVIF with WebP's effort %d is made with %d", effort, got)
		}
	}
	if got := plan(header.WebP, nil).Effort; got != DefaultEffort(header.WebP) {
		t.Errorf("WebP without an effort is made with %d", got)
	}
	least, most := 0, 6
	if plan(header.WebP, &most).CPU <= plan(header.WebP, &least).CPU {
		t.Error("an effort costs nothing")
	}
}
