package score

import "math"

// What is behind a transparent picture.
const (
	black float32 = 0
	white float32 = 255
)

// bias is the light that the eye has of its own. Without it, what happens in the dark
// would count far too much. It and the mixtures below are those of the XYB colours of
// JPEG XL (ISO/IEC 18181-1), which are those of Butteraugli.
const bias = 0.0037930734

// light is that of the 256 values of sRGB (IEC 61966-2-1), 0 to 1.
func light() *[256]float32 {
	var t [256]float32
	for i := range t {
		v := float64(i) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		t[i] = float32(v)
	}
	return &t
}

// planes takes a picture apart: lightness, red against green, blue against yellow. The
// second is stretched, since the eye is.
func (p Picture) planes(behind float32) [3]plane {
	n := p.Width * p.Height
	var out [3]plane
	for c := range out {
		out[c] = plane{p.Width, p.Height, make([]float32, n)}
	}
	t := light()
	// Transparency is mixed as browsers do: by the values of sRGB, not by light.
	mixed := func(v, alpha byte) float32 {
		if alpha == 255 {
			return t[v]
		}
		share := float32(alpha) / 255
		return t[byte(float32(v)*share+behind*(1-share)+0.5)]
	}
	for i := range n {
		px := p.Pix[4*i : 4*i+4 : 4*i+4]
		r, g, b := mixed(px[0], px[3]), mixed(px[1], px[3]), mixed(px[2], px[3])
		long := cone(0.30*r + 0.622*g + 0.078*b)
		medium := cone(0.23*r + 0.692*g + 0.078*b)
		short := cone(0.243422689*r + 0.204767444*g + 0.551809867*b)
		lightness := (long + medium) / 2
		out[0].v[i] = lightness
		out[1].v[i] = 14 * (long - medium) / 2
		out[2].v[i] = short - lightness
	}
	return out
}

// cone is what the eye makes of light.
func cone(v float32) float32 { return float32(math.Cbrt(float64(v) + bias)) }
