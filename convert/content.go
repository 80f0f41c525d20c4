package convert

import (
	"fmt"

	"github.com/davidbyttow/govips/v2/vips"

	"karui/convert/header"
)

// The choice between lossy and lossless for originals that are lossless themselves. The bounds were read off a table
// of all PNGs and GIFs of the corpus, each made in both ways.
const (
	// flatBytes: a PNG of fewer bytes per pixel is so regular that lossless is small too, whatever it shows.
	flatBytes = 0.15
	// photoBytes: a PNG of more bytes per sample of its pixels is a photo, or noise.
	photoBytes = 0.4
	// lookPixels: smaller pictures are always looked at, since their metadata can weigh more than their pixels;
	// of larger ones only those between the two bounds.
	lookPixels = 250_000
	// tinyPNG: in pictures of fewer pixels every one counts, and half the resolution for colours shows.
	tinyPNG = 2500
	// lookMost bounds the pixels that are looked at.
	lookMost = 8_000_000
	// fewColors is what a palette can hold.
	fewColors = 256
	// softStep is the largest step between neighbours, in levels of 256, that still counts as smooth.
	softStep = 24
)

// flatByHeader reports whether the header alone tells that a PNG is better made lossless, and why.
func flatByHeader(info header.Info) (why string, flat bool) {
	switch {
	case info.Color == header.Palette:
		return fmt.Sprintf("a palette of %d colours", info.PaletteSize), true
	case info.Pixels() < tinyPNG:
		return fmt.Sprintf("a picture of %d px", info.Pixels()), true
	}
	return "", false
}

// choosePNG says whether a PNG is better made lossless, and why.
func choosePNG(info header.Info, source []byte) (lossless bool, why string, err error) {
	if why, flat := flatByHeader(info); flat {
		return true, why, nil
	}
	pixels := info.Pixels()
	perPixel := float64(len(source)) / float64(pixels)
	if pixels >= lookPixels {
		if perPixel < flatBytes {
			return true, fmt.Sprintf("flat: %.2f bytes per pixel", perPixel), nil
		}
		if perPixel > photoBytes*float64(info.Components*max(info.BitDepth/8, 1)) {
			return false, fmt.Sprintf("a photo: %.2f bytes per pixel", perPixel), nil
		}
	}
	img, err := loadPNG(source, false)
	if err != nil {
		return false, "", err
	}
	defer img.Close()
	if pixels > lookMost { // a band of whole rows from the middle
		rows := max(int(lookMost/int64(info.Width)), 1)
		if err := img.ExtractArea(0, (info.Height-rows)/2, info.Width, rows); err != nil {
			return false, "", damaged(info, err)
		}
	}
	width, height, bands := img.Width(), img.Height(), img.Bands()
	wide := img.BandFormat() == vips.BandFormatUshort
	px, err := img.ToBytes()
	if err != nil {
		return false, "", damaged(info, err)
	}
	sample := 1
	if wide {
		sample = 2
	}
	if len(px) != width*height*bands*sample {
		return false, "", refuseWith(DecodeFailed, "%d bytes for %d x %d x %d samples", len(px), width, height, bands)
	}
	c := look(px, width, height, bands, sample)
	lossless, why = c.choose()
	return lossless, why, nil
}

// content is what was seen of the pixels of a picture.
type content struct {
	pixels int // looked at
	same   int // equal to their left or upper neighbour
	soft   int // not equal, but close to the left one
	colors int // at most fewColors+1
}

// choose takes pictures that are mostly flat with hard edges for graphics, and everything else for photos.
func (c content) choose() (lossless bool, why string) {
	if c.pixels == 0 {
		return true, "a single row or column"
	}
	same := float64(c.same) / float64(c.pixels)
	soft := float64(c.soft) / float64(c.pixels)
	hard := 1 - same - soft
	switch {
	case c.colors <= fewColors && same >= 0.55:
		return true, fmt.Sprintf("%d colours, %.0f %% flat", c.colors, same*100)
	case same >= 0.8:
		return true, fmt.Sprintf("a graphic: %.0f %% flat", same*100)
	case same >= 0.5 && hard >= soft:
		return true, fmt.Sprintf("a graphic: %.0f %% flat, %.0f %% edges", same*100, hard*100)
	}
	return false, fmt.Sprintf("a photo: %.0f %% flat, %.0f %% smooth", same*100, soft*100)
}

// look compares every pixel with its neighbours. Samples are of one byte, or two in the byte order of this machine.
func look(px []byte, width, height, bands, sample int) content {
	n := bands * sample
	stride := width * n
	top := sample - 1 // the high byte of a sample: little endian
	var c content
	seen := make(map[[8]byte]struct{}, fewColors+1)
	for y := 1; y < height; y++ {
		row, above := px[y*stride:(y+1)*stride], px[(y-1)*stride:y*stride]
		for x := n; x < stride; x += n {
			p, left, up := row[x:x+n], row[x-n:x], above[x:x+n]
			c.pixels++
			switch {
			case string(p) == string(left), string(p) == string(up):
				c.same++
				continue
			case step(p, left, sample, top) <= softStep:
				c.soft++
			}
			if len(seen) <= fewColors {
				var key [8]byte
				copy(key[:], p)
				seen[key] = struct{}{}
			}
		}
	}
	c.colors = len(seen)
	return c
}

// step is the largest difference of two pixels in one of their samples.
func step(a, b []byte, sample, top int) int {
	most := 0
	for i := top; i < len(a); i += sample {
		d := int(a[i]) - int(b[i])
		most = max(most, d, -d)
	}
	return most
}

// The bounds for GIFs, in bytes of image data per pixel that it draws.
const (
	// ditheredGIF: beyond it a GIF is a photo whose dithering is not worth keeping.
	ditheredGIF = 0.6
	// noisyGIF: beyond it a GIF may be made lossy when lossless is not smaller.
	noisyGIF = 0.25
	// tinyGIF: with fewer pixels, the bytes per pixel say nothing about what is drawn.
	tinyGIF = 1024
)

func (f gifFacts) perPixel() float64 { return float64(f.bytes) / float64(max(f.pixels, 1)) }

func (f gifFacts) noisy() bool { return f.pixels >= tinyGIF && f.perPixel() > noisyGIF }

// chooseGIF says whether a GIF is better made lossless, and why.
func chooseGIF(f gifFacts) (lossless bool, why string) {
	if d := f.perPixel(); d > ditheredGIF && f.pixels >= tinyGIF {
		return false, fmt.Sprintf("a photo: %.2f bytes per pixel", d)
	}
	return true, "a palette"
}
