// Package score tells in one number how much alike two pictures look: 100 for the
// same pixels, less the more of the difference a person would see.
//
// The pictures are taken apart into lightness and two axes of colour as the eye does
// it, at three sizes, each half the one before. Around every pixel the energy of the
// difference is set against what there is to see in both pictures (as structural
// similarity does): a difference hides in grass and shows in a sky. Then it is averaged
// by the third and by the eighth power, in which the worst spots count most, for these
// are what people notice.
//
// Guaranteed: the same pixels give 100; the order of the two does not matter; where
// pixels are transparent, the worse of white and black behind the picture counts.
// Work and memory are bounded by the number of pixels.
//
// Not guaranteed: that every person agrees, or that a difference of a point means
// anything. [Score.Words] says which ranges do, and where they come from.
package score

import (
	"fmt"
	"math"
)

// Picture is four bytes a pixel: red, green, blue, and alpha by which the others are
// not multiplied, in sRGB, row by row.
type Picture struct {
	Width, Height int
	Pix           []byte
}

// PixelsMost bounds the pictures that are compared. Each pixel takes about 40 bytes of
// memory.
const PixelsMost = 4 << 20

// Score is over 0 to 100.
type Score float64

// Compare scores two pictures of one size.
func Compare(a, b Picture) (Score, error) {
	switch {
	case a.Width != b.Width || a.Height != b.Height:
		return 0, fmt.Errorf("compare pictures: one has %d x %d px, the other %d x %d", a.Width, a.Height, b.Width, b.Height)
	case a.Width < 1 || a.Height < 1 || int64(a.Width)*int64(a.Height) > PixelsMost:
		return 0, fmt.Errorf("compare pictures: %d x %d px, and it must be 1 to %d pixels", a.Width, a.Height, PixelsMost)
	case len(a.Pix) != 4*a.Width*a.Height || len(b.Pix) != len(a.Pix):
		return 0, fmt.Errorf("compare pictures: %d and %d bytes for %d x %d px", len(a.Pix), len(b.Pix), a.Width, a.Height)
	}
	d := difference(a, b, white)
	if a.transparent() || b.transparent() {
		d = max(d, difference(a, b, black))
	}
	return Score(100 / (1 + spread*d)), nil
}

// spread brings most photographs at the quality 80 of WebP to 93, those at 30 to 78.
const spread = 6

func (p Picture) transparent() bool {
	for i := 3; i < len(p.Pix); i += 4 {
		if p.Pix[i] != 255 {
			return true
		}
	}
	return false
}

// The weights of sizes, the whole one first, and of lightness and the two axes of
// colour. They are those that agreed best with Butteraugli; the sizes as they are
// agree nearly as well alone, and without colour a changed hue would go unseen.
var (
	sizeWeights    = [...]float64{0.6, 0.3, 0.1}
	channelWeights = [3]float64{0.9, 0.05, 0.05}
)

// difference is 0 for the same pixels, before one background.
func difference(a, b Picture, behind float32) float64 {
	pa, pb := a.planes(behind), b.planes(behind)
	var sum, weights float64
	for size, weight := range sizeWeights {
		for c := range channelWeights {
			sum += weight * channelWeights[c] * contrast(pa[c], pb[c])
		}
		weights += weight
		if size == len(sizeWeights)-1 || min(a.Width, a.Height)>>(size+1) == 0 {
			break
		}
		for c := range channelWeights {
			pa[c], pb[c] = pa[c].half(), pb[c].half()
		}
	}
	return sum / weights
}

// root is that of a power of a mean; sums of squares that cancel out may leave a
// little less than nothing.
func root(v, power float64) float64 { return math.Pow(max(v, 0), 1/power) }
