package sample

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"math"
)

const (
	animationWidth  = 320
	animationHeight = 200
	// animationFrames, each shown for animationDelay hundredths of a second.
	animationFrames = 20
	animationDelay  = 6
)

// Animation draws a ball that hops along, for ever. The result is a GIF.
func Animation() []byte {
	palette := animationPalette()
	anim := gif.GIF{LoopCount: 0}
	for frame := range animationFrames {
		anim.Image = append(anim.Image, animationFrame(palette, frame))
		anim.Delay = append(anim.Delay, animationDelay)
		anim.Disposal = append(anim.Disposal, gif.DisposalNone)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &anim); err != nil {
		panic("sample: encode GIF: " + err.Error()) // only for impossible sizes
	}
	return b.Bytes()
}

// The palette has the backdrop's colours first and then the ball's.
const (
	backdropColours = 64
	ballColours     = 64
)

func animationPalette() color.Palette {
	var p color.Palette
	for i := range backdropColours {
		t := float64(i) / (backdropColours - 1)
		p = append(p, rgb{0.86, 0.93, 0.95}.mix(rgb{0.45, 0.66, 0.70}, t).with(1))
	}
	for i := range ballColours {
		t := float64(i) / (ballColours - 1)
		p = append(p, rgb{0.35, 0.08, 0.05}.mix(rgb{1.0, 0.75, 0.55}, t).with(1))
	}
	return p
}

func animationFrame(palette color.Palette, frame int) *image.Paletted {
	img := image.NewPaletted(image.Rect(0, 0, animationWidth, animationHeight), palette)
	t := float64(frame) / animationFrames
	const radius, ground = 26.0, 168.0
	cx := lerp(-radius, animationWidth+radius, t)
	cy := ground - radius - 100*math.Abs(math.Sin(3*math.Pi*t))
	for y := range animationHeight {
		for x := range animationWidth {
			u, v := float64(x), float64(y)
			shade := v / animationHeight * 0.75
			if v > ground {
				shade += 0.15
				// The shadow on the ground shrinks as the ball rises.
				reach := radius * (0.4 + 0.6*cy/ground)
				shade += 0.25 * step(1, 0.6, math.Hypot((u-cx)/reach, (v-ground-8)/7))
			}
			index := int(min(shade, 1) * (backdropColours - 1))
			if d := math.Hypot(u-cx, v-cy); d < radius {
				light := 1 - math.Hypot(u-cx+9, v-cy+10)/(radius*1.6)
				index = backdropColours + int(min(max(light, 0), 1)*(ballColours-1))
			}
			img.SetColorIndex(x, y, uint8(index))
		}
	}
	return img
}
