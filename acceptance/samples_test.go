package acceptance

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

// scene draws something like a photo: soft shapes with a little grain, another
// one for every seed, with a red corner at the top left and a blue one at the
// bottom right, so that a picture that was turned is told from one that was not.
func scene(seed uint64, w, h int) *image.NRGBA {
	rng := rand.New(rand.NewPCG(seed, 7))
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	a, b, c := 1+4*rng.Float64(), 1+4*rng.Float64(), 6*rng.Float64()
	// The waves run along one axis each, or along both, which is a product of the two:
	// sin(x+y) = sin x cos y + cos x sin y. So there is no sine to take for each pixel.
	wave := func(n int, frequency, phase float64) (sin, cos []float64) {
		sin, cos = make([]float64, n), make([]float64, n)
		for i := range n {
			sin[i], cos[i] = math.Sincos(frequency*float64(i)/float64(n) + phase)
		}
		return sin, cos
	}
	red, _ := wave(w, 3*a, c)
	gsx, gcx := wave(w, a, 0)
	gsy, gcy := wave(h, 3*b, 0)
	bsx, bcx := wave(w, a, b)
	bsy, bcy := wave(h, a, 0)
	noise := rng.Uint64()
	for y := range h {
		row := img.Pix[y*img.Stride : y*img.Stride+4*w]
		for x := range w {
			noise ^= noise << 13
			noise ^= noise >> 7
			noise ^= noise << 17
			grain := 128 + float64(noise>>40&1023)/170 - 3
			p := row[4*x : 4*x+4]
			p[0] = uint8(grain + 90*red[x])
			p[1] = uint8(grain + 90*(gsx[x]*gcy[y]+gcx[x]*gsy[y]))
			p[2] = uint8(grain + 90*(bcx[x]*bcy[y]-bsx[x]*bsy[y]))
			p[3] = 255
		}
	}
	draw.Draw(img, image.Rect(0, 0, w/4, h/4), image.NewUniform(color.NRGBA{R: 230, G: 20, B: 20, A: 255}), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(w-w/4, h-h/4, w, h), image.NewUniform(color.NRGBA{R: 20, G: 20, B: 230, A: 255}), image.Point{}, draw.Src)
	return img
}

func encodeJPEG(t *testing.T, img image.Image, quality int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// photos are those drawn before, by their seed.
var photos sync.Map

// photo is a JPEG from which a variant is smaller. Nobody may write to it.
func photo(t *testing.T, seed uint64) []byte {
	t.Helper()
	if drawn, known := photos.Load(seed); known {
		return drawn.([]byte)
	}
	drawn := encodeJPEG(t, scene(seed, 320, 240), 93)
	photos.Store(seed, drawn)
	return drawn
}

func encodePNG(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// logo is a PNG with soft transparent edges.
func logo(t *testing.T, seed uint64) []byte {
	t.Helper()
	img := scene(seed, 200, 160)
	for y := range 160 {
		for x := range 200 {
			d := math.Hypot(float64(x-100)/100, float64(y-80)/80)
			img.Pix[img.PixOffset(x, y)+3] = uint8(255 * min(1, max(0, 4*(1-d))))
		}
	}
	return encodePNG(t, img)
}

// animation is a GIF of so many frames with delays of 50, 100, 150... ms.
// loops is as in image/gif: 0 for ever, -1 once, n for n more times.
func animation(t *testing.T, frames, loops int) []byte {
	t.Helper()
	palette := color.Palette{color.Transparent}
	for i := range 255 {
		palette = append(palette, color.NRGBA{R: uint8(i), G: uint8(255 - i), B: uint8(i * 7), A: 255})
	}
	g := &gif.GIF{LoopCount: loops}
	for n := range frames {
		p := image.NewPaletted(image.Rect(0, 0, 120, 90), palette)
		for y := range 90 {
			for x := range 120 {
				p.SetColorIndex(x, y, uint8(1+(x*2+y+n*20+(x*y)%5)%255))
			}
		}
		g.Image = append(g.Image, p)
		g.Delay = append(g.Delay, 5*(1+n%4))
		g.Disposal = append(g.Disposal, gif.DisposalNone)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// oriented puts an EXIF orientation into a JPEG.
func oriented(jpegFile []byte, orientation uint16) []byte {
	tiff := []byte{'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0}
	tiff = binary.LittleEndian.AppendUint16(tiff, 0x0112)
	tiff = binary.LittleEndian.AppendUint16(tiff, 3)
	tiff = binary.LittleEndian.AppendUint32(tiff, 1)
	tiff = binary.LittleEndian.AppendUint16(tiff, orientation)
	tiff = append(tiff, 0, 0, 0, 0, 0, 0)
	body := append([]byte("Exif\x00\x00"), tiff...)
	out := []byte{0xff, 0xd8, 0xff, 0xe1}
	out = binary.BigEndian.AppendUint16(out, uint16(len(body)+2))
	out = append(out, body...)
	return append(out, jpegFile[2:]...)
}

// pngClaiming is a PNG whose header claims a size that its data does not have.
func pngClaiming(t *testing.T, w, h uint32) []byte {
	t.Helper()
	b := encodePNG(t, scene(1, 8, 8))
	binary.BigEndian.PutUint32(b[16:], w)
	binary.BigEndian.PutUint32(b[20:], h)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

// someWebP is a WebP file of 12 x 10 pixels made elsewhere.
func someWebP(t *testing.T) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString("UklGRjgAAABXRUJQVlA4TCwAAAAvC0ACAImM6H9AQds2jPkDb3cICAQI/5t8EAikMJAPgkmaajvGIKnG8N+bAg==")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func gzipped(t *testing.T, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// stubborn is a JPEG of which no smaller variant can be made, which only trying shows.
func stubborn(t *testing.T) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	img := image.NewGray(image.Rect(0, 0, 96, 96))
	for i := range img.Pix {
		img.Pix[i] = uint8(rng.IntN(256))
	}
	return encodeJPEG(t, img, 30)
}
