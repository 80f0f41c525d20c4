package sample

import (
	"bytes"
	"image"
	"image/jpeg"
	"math"
)

// Size of the photograph, about one megapixel, and the quality it is saved at.
const (
	photoWidth   = 1200
	photoHeight  = 868
	photoQuality = 90
)

// Photo draws mountains behind a lake at sunset: soft gradients, fine texture and
// the grain of a sensor, as in a photograph. The result is a JPEG.
func Photo() []byte {
	img := image.NewNRGBA(image.Rect(0, 0, photoWidth, photoHeight))
	const shore = 0.66
	s := newScene()
	for y := range photoHeight {
		for x := range photoWidth {
			u := float64(x) / photoWidth * sceneWidth
			v := float64(y) / photoHeight
			var c rgb
			if v < shore {
				c = s.land(u, v)
			} else {
				c = s.lake(u, v, shore)
			}
			grain := hash(x, y, 99) + hash(x, y, 98) - 1
			img.SetNRGBA(x, y, c.add(0.018*grain).with(1))
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: photoQuality}); err != nil {
		panic("sample: encode JPEG: " + err.Error()) // only for impossible sizes
	}
	return b.Bytes()
}

// sceneWidth is the width of the picture where its height is 1.
const sceneWidth = 1.38

// scene is what the picture shows: ridges from far to near.
type scene struct{ ridges []ridge }

type ridge struct {
	colour rgb
	// tops are the heights of its crest, from left to right in steps of crestStep.
	tops []float64
	seed uint32
	snow bool
}

const crestStep = 1.0 / 4096

func newScene() scene {
	shapes := []struct {
		height, rough, scale float64
		ridge
	}{
		{0.36, 0.16, 2.2, ridge{colour: rgb{0.45, 0.42, 0.55}, seed: 20, snow: true}},
		{0.47, 0.14, 3.1, ridge{colour: rgb{0.29, 0.30, 0.40}, seed: 30, snow: true}},
		{0.57, 0.10, 4.7, ridge{colour: rgb{0.13, 0.19, 0.18}, seed: 40}},
	}
	var s scene
	for _, shape := range shapes {
		r := shape.ridge
		for u := 0.0; u < sceneWidth+crestStep; u += crestStep {
			r.tops = append(r.tops, shape.height+shape.rough*(clouds(u*shape.scale, 3.7, 6, r.seed)-0.5)*2)
		}
		s.ridges = append(s.ridges, r)
	}
	return s
}

func (r ridge) top(u float64) float64 {
	return r.tops[min(max(int(u/crestStep), 0), len(r.tops)-1)]
}

// land is what lies above the shore: the nearest ridge that is high enough, or the sky.
func (s scene) land(u, v float64) rgb {
	for i := len(s.ridges) - 1; i >= 0; i-- {
		r := s.ridges[i]
		top := r.top(u)
		if v < top {
			continue
		}
		rock := clouds(u*30, v*42, 4, r.seed+5)
		light := 0.75 + 0.6*(rock-0.5) + 0.9*(clouds(u*9+v*3, v*11, 3, r.seed+7)-0.5)
		haze := step(0, 0.2, v-top) * 0.25
		c := r.colour.scale(light).mix(rgb{0.80, 0.62, 0.55}, haze*(1-float64(i)/3))
		if r.snow { // it lies on what is high and flat enough
			c = c.mix(rgb{0.93, 0.89, 0.92}, step(0.50, 0.62, rock)*step(0.12, 0.02, v-top))
		}
		return c
	}
	return sky(u, v)
}

func sky(u, v float64) rgb {
	c := rgb{0.24, 0.40, 0.66}.mix(rgb{0.98, 0.72, 0.48}, step(0, 0.5, v))
	sun := math.Hypot(u-0.95, v-0.30)
	c = c.mix(rgb{1, 0.93, 0.74}, 0.9*math.Exp(-sun*6))
	if sun < 0.045 {
		c = rgb{1, 0.98, 0.88}
	}
	cover := step(0.48, 0.75, clouds(u*3.2+4, v*8, 5, 3))
	return c.mix(rgb{0.99, 0.86, 0.80}, 0.75*cover*(1-0.5*v))
}

// lake mirrors the land in moving water.
func (s scene) lake(u, v, shore float64) rgb {
	depth := (v - shore) / (1 - shore)
	ripple := (clouds(u*6, v*90, 3, 60) - 0.5) * (0.006 + 0.05*depth)
	mirrored := s.land(u+ripple, shore-(v-shore)*0.9+ripple*0.6)
	water := mirrored.mix(rgb{0.10, 0.20, 0.30}, 0.35+0.25*depth)
	sparkle := step(0.72, 0.9, noise(u*40, v*220, 61)) * math.Exp(-math.Abs(u-0.95)*5)
	return water.add(0.35 * sparkle)
}
