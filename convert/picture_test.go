package convert

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"

	"golang.org/x/image/webp"

	"karui/convert/header"
)

// Pictures as decoders other than the worker's see them: Go's own for JPEG, PNG and GIF, golang.org/x/image for WebP.

// moment is one frame of an animation as it is shown, and for how long in milliseconds.
type moment struct {
	img *image.NRGBA
	ms  int
}

func toNRGBA(img image.Image) *image.NRGBA {
	b := img.Bounds()
	out := image.NewNRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(out, out.Bounds(), img, b.Min, draw.Src)
	return out
}

// decodeOriginal returns what an original shows, the right way up, with its samples taken as they are: no profile is
// looked at.
func decodeOriginal(info header.Info, source []byte) ([]moment, error) {
	switch info.Format {
	case header.JPEG:
		img, err := jpeg.Decode(bytes.NewReader(source))
		if err != nil {
			return nil, err
		}
		return []moment{{img: turn(toNRGBA(img), info.Orientation)}}, nil
	case header.PNG:
		img, err := png.Decode(bytes.NewReader(source))
		if err != nil {
			return nil, err
		}
		return []moment{{img: turn(toNRGBA(img), info.Orientation)}}, nil
	case header.GIF:
		g, err := gif.DecodeAll(bytes.NewReader(source))
		if err != nil {
			return nil, err
		}
		return playGIF(g), nil
	}
	return nil, fmt.Errorf("no decoder for %s", info.Format)
}

// playGIF draws the frames onto each other as browsers do.
func playGIF(g *gif.GIF) []moment {
	canvas := image.NewNRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
	var shown []moment
	for i, frame := range g.Image {
		before := image.NewNRGBA(canvas.Rect)
		copy(before.Pix, canvas.Pix)
		draw.Draw(canvas, frame.Rect, frame, frame.Rect.Min, draw.Over)
		now := image.NewNRGBA(canvas.Rect)
		copy(now.Pix, canvas.Pix)
		shown = append(shown, moment{now, 10 * g.Delay[i]})
		switch g.Disposal[i] {
		case gif.DisposalBackground:
			draw.Draw(canvas, frame.Rect, image.Transparent, image.Point{}, draw.Src)
		case gif.DisposalPrevious:
			canvas = before
		}
	}
	return shown
}

// turn applies an EXIF orientation.
func turn(img *image.NRGBA, orientation int) *image.NRGBA {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	at := map[int]func(x, y int) (int, int){
		2: func(x, y int) (int, int) { return w - 1 - x, y },
		3: func(x, y int) (int, int) { return w - 1 - x, h - 1 - y },
		4: func(x, y int) (int, int) { return x, h - 1 - y },
		5: func(x, y int) (int, int) { return y, x },
		6: func(x, y int) (int, int) { return h - 1 - y, x },
		7: func(x, y int) (int, int) { return h - 1 - y, w - 1 - x },
		8: func(x, y int) (int, int) { return y, w - 1 - x },
	}[orientation]
	if at == nil {
		return img
	}
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	if orientation >= 5 {
		out = image.NewNRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			tx, ty := at(x, y)
			copy(out.Pix[out.PixOffset(tx, ty):][:4], img.Pix[img.PixOffset(x, y):][:4])
		}
	}
	return out
}

// decodeWebP returns what a WebP shows.
func decodeWebP(b []byte) ([]moment, webpFile, error) {
	f, err := parseWebP(b)
	if err != nil {
		return nil, f, err
	}
	if len(f.frames) == 0 {
		img, err := webp.Decode(bytes.NewReader(b))
		if err != nil {
			return nil, f, err
		}
		return []moment{{img: video(img)}}, f, nil
	}
	canvas := image.NewNRGBA(image.Rect(0, 0, f.width, f.height))
	var shown []moment
	for i, fr := range f.frames {
		chunks, err := splitChunks(fr.body)
		if err != nil {
			return nil, f, err
		}
		p, err := readPicture(chunks)
		if err != nil {
			return nil, f, err
		}
		alone := webpFile{width: p.width, height: p.height, alpha: p.alpha, still: chunks}
		img, err := webp.Decode(bytes.NewReader(alone.bytes()))
		if err != nil {
			return nil, f, fmt.Errorf("frame %d: %w", i+1, err)
		}
		place := image.Rect(0, 0, p.width, p.height).Add(image.Pt(2*uint24(fr.head[0:]), 2*uint24(fr.head[3:])))
		op := draw.Over
		if fr.head[15]&2 != 0 { // do not blend
			op = draw.Src
		}
		draw.Draw(canvas, place, video(img), image.Point{}, op)
		now := image.NewNRGBA(canvas.Rect)
		copy(now.Pix, canvas.Pix)
		shown = append(shown, moment{now, fr.delay()})
		if fr.head[15]&1 != 0 { // dispose to background
			draw.Draw(canvas, place, image.Transparent, image.Point{}, draw.Src)
		}
	}
	return shown, f, nil
}

// video turns what golang.org/x/image makes of a lossy WebP into sRGB. It says YCbCr of the full range, as in a JPEG,
// where WebP has the range of video, 16..235.
func video(img image.Image) *image.NRGBA {
	var ycc *image.YCbCr
	alpha := func(int, int) uint8 { return 255 }
	switch src := img.(type) {
	case *image.YCbCr:
		ycc = src
	case *image.NYCbCrA:
		ycc = &src.YCbCr
		alpha = func(x, y int) uint8 { return src.A[src.AOffset(x, y)] }
	default:
		return toNRGBA(img)
	}
	out := image.NewNRGBA(image.Rect(0, 0, ycc.Rect.Dx(), ycc.Rect.Dy()))
	clip := func(v float64) uint8 { return uint8(min(max(v+0.5, 0), 255)) }
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			at := ycc.COffset(x, y)
			l := 255.0 / 219 * (float64(ycc.Y[ycc.YOffset(x, y)]) - 16)
			u, v := 255.0/224*(float64(ycc.Cb[at])-128), 255.0/224*(float64(ycc.Cr[at])-128)
			out.SetNRGBA(x, y, color.NRGBA{clip(l + 1.402*v), clip(l - 0.344136*u - 0.714136*v), clip(l + 1.772*u), alpha(x, y)})
		}
	}
	return out
}

// distance is the mean CIEDE2000 of two pictures over at most about most pixels, both shown on grey.
func distance(a, b *image.NRGBA, most int) float64 {
	w, h := a.Rect.Dx(), a.Rect.Dy()
	if b.Rect.Dx() != w || b.Rect.Dy() != h {
		return math.Inf(1)
	}
	step := 1
	for (w/step+1)*(h/step+1) > most {
		step++
	}
	sum, n := 0.0, 0
	for y := 0; y < h; y += step {
		for x := 0; x < w; x += step {
			sum += deltaE(onGrey(a.NRGBAAt(x, y)), onGrey(b.NRGBAAt(x, y)))
			n++
		}
	}
	return sum / float64(n)
}

func onGrey(c color.NRGBA) [3]float64 {
	const ground = 128.0
	alpha := float64(c.A) / 255
	mix := func(v uint8) float64 { return (float64(v)*alpha + ground*(1-alpha)) / 255 }
	return lab(mix(c.R), mix(c.G), mix(c.B))
}

// lab turns sRGB samples (0..1) into CIELAB for D65.
func lab(r, g, b float64) [3]float64 {
	lin := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	r, g, b = lin(r), lin(g), lin(b)
	f := func(t float64) float64 {
		if t > 216.0/24389 {
			return math.Cbrt(t)
		}
		return (24389.0/27*t + 16) / 116
	}
	x := f((0.4124564*r + 0.3575761*g + 0.1804375*b) / 0.95047)
	y := f(0.2126729*r + 0.7151522*g + 0.0721750*b)
	z := f((0.0193339*r + 0.1191920*g + 0.9503041*b) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// deltaE is CIEDE2000, after Sharma, Wu and Dalal (2005).
func deltaE(p, q [3]float64) float64 {
	const rad = math.Pi / 180
	pow7 := func(v float64) float64 { return v * v * v * v * v * v * v }
	c1, c2 := math.Hypot(p[1], p[2]), math.Hypot(q[1], q[2])
	cm := pow7((c1 + c2) / 2)
	g := 0.5 * (1 - math.Sqrt(cm/(cm+pow7(25))))
	a1, a2 := (1+g)*p[1], (1+g)*q[1]
	c1, c2 = math.Hypot(a1, p[2]), math.Hypot(a2, q[2])
	hue := func(a, b float64) float64 {
		if a == 0 && b == 0 {
			return 0
		}
		h := math.Atan2(b, a) / rad
		if h < 0 {
			h += 360
		}
		return h
	}
	h1, h2 := hue(a1, p[2]), hue(a2, q[2])
	dl, dc := q[0]-p[0], c2-c1
	dh := h2 - h1
	mean := (h1 + h2) / 2
	if c1*c2 == 0 {
		dh, mean = 0, h1+h2
	} else if math.Abs(h1-h2) > 180 {
		if dh > 0 {
			dh -= 360
		} else {
			dh += 360
		}
		if h1+h2 < 360 {
			mean += 180
		} else {
			mean -= 180
		}
	}
	dH := 2 * math.Sqrt(c1*c2) * math.Sin(dh/2*rad)
	lm, cmean := (p[0]+q[0])/2, (c1+c2)/2
	t := 1 - 0.17*math.Cos((mean-30)*rad) + 0.24*math.Cos(2*mean*rad) + 0.32*math.Cos((3*mean+6)*rad) - 0.20*math.Cos((4*mean-63)*rad)
	l50 := (lm - 50) * (lm - 50)
	sl := 1 + 0.015*l50/math.Sqrt(20+l50)
	sc := 1 + 0.045*cmean
	sh := 1 + 0.015*cmean*t
	theta := 30 * math.Exp(-((mean-275)/25)*((mean-275)/25))
	c7 := pow7(cmean)
	rt := -math.Sin(2*theta*rad) * 2 * math.Sqrt(c7/(c7+pow7(25)))
	return math.Sqrt(dl/sl*dl/sl + dc/sc*dc/sc + dH/sh*dH/sh + rt*dc/sc*dH/sh)
}

// worst compares two animations moment by moment: at every instant of one round, what the one shows against what the
// other shows. It returns the largest mean distance. Frames of 0 ms are left out of that.
func worst(a, b []moment, most int) float64 {
	i, j, ra, rb := 0, 0, a[0].ms, b[0].ms
	far := 0.0
	if len(a) == 1 && len(b) == 1 {
		return distance(a[0].img, b[0].img, most)
	}
	for {
		for ra == 0 && i+1 < len(a) {
			i++
			ra = a[i].ms
		}
		for rb == 0 && j+1 < len(b) {
			j++
			rb = b[j].ms
		}
		far = max(far, distance(a[i].img, b[j].img, most))
		n := min(ra, rb)
		if n == 0 {
			return far
		}
		ra, rb = ra-n, rb-n
	}
}

func total(m []moment) int {
	sum := 0
	for _, f := range m {
		sum += f.ms
	}
	return sum
}

// readTIFFTags returns the tags of the first directory of an EXIF block, and whether there is a second directory.
func readTIFFTags(b []byte) (tags map[uint16]string, more bool, err error) {
	le := binary.LittleEndian
	if len(b) < 14 || string(b[:4]) != "II*\x00" || le.Uint32(b[4:]) != 8 {
		return nil, false, fmt.Errorf("no TIFF header in %q", b)
	}
	n := int(le.Uint16(b[8:]))
	if len(b) < 10+12*n+4 {
		return nil, false, fmt.Errorf("%d entries in %d bytes", n, len(b))
	}
	tags = make(map[uint16]string)
	for i := range n {
		e := b[10+12*i:]
		size := int(le.Uint32(e[4:]))
		value := e[8:12]
		if size > 4 {
			at := int(le.Uint32(e[8:]))
			if at+size > len(b) {
				return nil, false, fmt.Errorf("entry %d reaches behind the end", i)
			}
			value = b[at:]
		}
		tags[le.Uint16(e)] = string(bytes.TrimSuffix(value[:size], []byte{0}))
	}
	return tags, le.Uint32(b[10+12*n:]) != 0, nil
}
