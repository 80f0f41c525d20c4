package browsertest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The widths of a phone, a tablet, a laptop and a desktop, in CSS pixels.
const (
	phone   = 360
	tablet  = 768
	laptop  = 1280
	desktop = 1800
)

// measures is an object with the functions that Look calls.
//
//go:embed look.js
var measures string

// Show sets how wide the page is, in CSS pixels, and whether it is dark. Nothing moves.
func (b *Browser) Show(width int64, dark bool) {
	b.t.Helper()
	b.Do(chromedp.EmulateViewport(width, 900))
	Call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme(dark)}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

func scheme(dark bool) string {
	if dark {
		return "dark"
	}
	return "light"
}

// Look fails the test for what can be measured of the page as it is now: things without
// names and labels, wrong ids and headings, letters under 12 px; anything wider than the
// page, at four widths; text with a contrast under 4.5 to 1 and marks under 3 to 1 (the
// numbers of WCAG 2, level AA), light and dark. It keeps pictures as Shoot does, and
// leaves the page light and 1280 px wide.
func (b *Browser) Look(name string) {
	b.t.Helper()
	b.Show(laptop, false)
	for _, problem := range b.measured("names()") {
		b.t.Errorf("%s: %s", name, problem)
	}
	for _, width := range []int64{phone, tablet, laptop, desktop} {
		b.Show(width, false)
		for _, problem := range b.measured("wide()") {
			b.t.Errorf("%s: at %d px: %s", name, width, problem)
		}
	}
	marks, err := json.Marshal(b.options.Marks)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, width := range []int64{phone, laptop} {
		for _, dark := range []bool{false, true} {
			b.Show(width, dark)
			for _, problem := range b.measured("contrast(" + string(marks) + ")") {
				b.t.Errorf("%s: %s at %d px: %s", name, scheme(dark), width, problem)
			}
		}
	}
	b.Shoot(name)
	b.Show(laptop, false)
}

func (b *Browser) measured(call string) []string {
	b.t.Helper()
	return Eval[[]string](b, measures+"."+call)
}

// Shoot keeps pictures of the whole page, wide and narrow, light and dark, where
// Options.Shots says so, and leaves it light and 1280 px wide.
func (b *Browser) Shoot(name string) {
	b.t.Helper()
	dir := os.Getenv(b.options.Shots)
	if dir == "" {
		return
	}
	for _, width := range []int64{phone, laptop} {
		for _, dark := range []bool{false, true} {
			b.Show(width, dark)
			picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				b.t.Fatal(err)
			}
			file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme(dark)))
			if err := os.WriteFile(file, picture, 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.Show(laptop, false)
}
