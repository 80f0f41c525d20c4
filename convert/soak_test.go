package convert

import (
	"bytes"
	"path/filepath"
	"testing"

	"karui/internal/sample"
)

// Workers hold no more after hundreds of good and bad images than after a few of each: what fails to decode is where
// decoders leak.
func TestMemoryOfAWorkerIsFlat(t *testing.T) {
	p := newPool(t, func(c *Config) { c.Workers = 1; c.Recycle = 1 << 20 })
	photo := read(t, filepath.Join(corpusDir, "photos/kodim20_q80_2x2_prog.jpg"))
	baseline := read(t, filepath.Join(corpusDir, "photos/kodim01_q75_2x2.jpg"))
	turned := withOrientation(photo, 6)
	png := sample.Screenshot()
	sources := [][]byte{
		photo, baseline[:len(baseline)/2], append(bytes.Clone(baseline[:len(baseline)/2]), 0xff, 0xd9),
		turned, append(bytes.Clone(turned[:len(turned)*2/3]), 0xff, 0xd9), png, png[:len(png)/2], sample.Animation(),
	}
	var most int64
	for i := range 20 {
		for _, source := range sources {
			if _, err := p.Convert(t.Context(), source, webpOptions(50+i%40)); err != nil {
				t.Fatal(err)
			}
		}
		for _, pid := range children(t) {
			if u, err := readUsage(pid); err == nil {
				most = max(most, u.rss)
			}
		}
	}
	t.Logf("at most %d MiB between jobs, %d workers replaced", most>>20, p.Stats().Ended[CauseRecycled])
	// At its start, what is left of the largest image, and what may have leaked.
	if most > 160<<20 {
		t.Errorf("a worker held %d MiB between jobs", most>>20)
	}
	if s := p.Stats(); s.Decisions[Converted] != 80 || s.Decisions[Broken]+s.Decisions[Truncated] != 80 {
		t.Errorf("decisions: %v", s.Decisions)
	}
}
