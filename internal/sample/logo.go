package sample

import (
	"bytes"
	"image"
	"image/png"
	"math"
)

const logoSize = 512

// Logo draws a feather on a disc, with smooth edges and a soft shadow over
// transparency. The result is a PNG.
func Logo() []byte {
	img := image.NewNRGBA(image.Rect(0, 0, logoSize, logoSize))
	for y := range logoSize {
		for x := range logoSize {
			u := (float64(x)+0.5)/logoSize*2 - 1
			v := (float64(y)+0.5)/logoSize*2 - 1
			const edge = 2.5 / logoSize
			shadow := 0.35 * step(0.95, 0.72, math.Hypot(u, v-0.06))
			disc := step(edge, -edge, math.Hypot(u, v)-0.78)
			colour := rgb{0.05, 0.48, 0.52}.mix(rgb{0.16, 0.68, 0.58}, (1-v)/2)
			colour = colour.mix(rgb{0.99, 0.99, 0.97}, feather(u, v, edge))
			alpha := disc + (1-disc)*shadow
			img.SetNRGBA(x, y, colour.scale(disc/max(alpha, 1e-6)).with(alpha))
		}
	}
	return encodePNG(img)
}

// feather is 1 inside of a leaf-like shape with a quill and barbs, 0 outside.
func feather(u, v, edge float64) float64 {
	// Along runs from the quill's foot to the tip, across is the distance from it.
	along := (u-v)/math.Sqrt2*0.95 + 0.5
	across := (u+v)/math.Sqrt2 - 0.12*math.Sin(along*3)
	if along < -0.02 || along > 1.08 {
		return 0
	}
	width := 0.24 * math.Sin(math.Pi*math.Pow(min(max((along-0.22)/0.84, 0), 1), 0.8))
	vane := step(edge, -edge, math.Abs(across)-width)
	barbs := math.Abs(math.Mod((along+math.Abs(across)*0.9)*14, 1)-0.5) - 0.06
	vane *= 0.25 + 0.75*step(-0.01, 0.03, barbs)
	quill := step(edge, -edge, math.Abs(across)-0.014) * step(0.03, 0.06, along+0.02)
	return max(vane, quill*step(1.02, 0.98, along))
}

func encodePNG(img image.Image) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic("sample: encode PNG: " + err.Error()) // only for impossible sizes
	}
	return b.Bytes()
}
