package sample

import (
	"image/color"
	"math"
)

// hash spreads a lattice point over 0 to 1, always in the same way.
func hash(x, y int, seed uint32) float64 {
	h := uint32(x)*0x8da6b343 ^ uint32(y)*0xd8163841 ^ seed*0xcb1ab31f
	h ^= h >> 16
	h *= 0x7feb352d
	h ^= h >> 15
	h *= 0x846ca68b
	h ^= h >> 16
	return float64(h) / math.MaxUint32
}

// noise is smooth between lattice points, 0 to 1.
func noise(x, y float64, seed uint32) float64 {
	fx, fy := math.Floor(x), math.Floor(y)
	ix, iy := int(fx), int(fy)
	u, v := smooth(x-fx), smooth(y-fy)
	top := lerp(hash(ix, iy, seed), hash(ix+1, iy, seed), u)
	bottom := lerp(hash(ix, iy+1, seed), hash(ix+1, iy+1, seed), u)
	return lerp(top, bottom, v)
}

// clouds sums noise of ever finer grain, 0 to 1.
func clouds(x, y float64, octaves int, seed uint32) float64 {
	sum, weight, total := 0.0, 0.5, 0.0
	for o := range octaves {
		sum += weight * noise(x, y, seed+uint32(o))
		total += weight
		x, y, weight = 2*x, 2*y, weight/2
	}
	return sum / total
}

func smooth(t float64) float64 { return t * t * (3 - 2*t) }

func lerp(a, b, t float64) float64 { return a + (b-a)*t }

// step goes from 0 at low to 1 at high.
func step(low, high, x float64) float64 {
	return smooth(min(max((x-low)/(high-low), 0), 1))
}

// rgb is a colour with components from 0 to 1.
type rgb struct{ r, g, b float64 }

func (c rgb) mix(d rgb, t float64) rgb {
	return rgb{lerp(c.r, d.r, t), lerp(c.g, d.g, t), lerp(c.b, d.b, t)}
}

func (c rgb) scale(f float64) rgb { return rgb{c.r * f, c.g * f, c.b * f} }

func (c rgb) add(f float64) rgb { return rgb{c.r + f, c.g + f, c.b + f} }

func (c rgb) with(alpha float64) color.NRGBA {
	return color.NRGBA{octet(c.r), octet(c.g), octet(c.b), octet(alpha)}
}

func octet(x float64) uint8 { return uint8(min(max(x, 0), 1)*255 + 0.5) }
