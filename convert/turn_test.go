package convert

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"path/filepath"
	"testing"
)

// withOrientation puts an orientation into a JPEG or PNG that has none.
func withOrientation(source []byte, o int) []byte {
	exif := orientationEXIF(o)
	if bytes.HasPrefix(source, []byte("\x89PNG")) {
		const ihdr = 8 + 12 + 13
		out := appendChunk(bytes.Clone(source[:ihdr]), "eXIf", exif[exifPrefix:])
		return append(out, source[ihdr:]...)
	}
	out := append(bytes.Clone(source[:2]), 0xff, 0xe1, 0, byte(len(exif)+2))
	return append(append(out, exif...), source[2:]...)
}

func encodePNG(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Pictures of every kind of colours are turned, not only the usual ones.
func TestOrientationOfEveryKind(t *testing.T) {
	p := newPool(t, nil)
	photo, err := jpeg.Decode(bytes.NewReader(samplePhoto()))
	if err != nil {
		t.Fatal(err)
	}
	small := image.NewGray(image.Rect(0, 0, 300, 200))
	for y := range 200 {
		for x := range 300 {
			small.Set(x, y, photo.At(2*x, 2*y))
		}
	}
	var gray bytes.Buffer
	if err := jpeg.Encode(&gray, small, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}
	opaque, holes := image.NewNRGBA(image.Rect(0, 0, 150, 100)), image.NewNRGBA(image.Rect(0, 0, 150, 100))
	for y := range 100 {
		for x := range 150 {
			c := photo.At(4*x, 4*y)
			opaque.Set(x, y, c)
			if x+y < 180 {
				holes.Set(x, y, c)
			}
		}
	}
	sources := map[string][]byte{"grey jpeg": gray.Bytes(), "png": encodePNG(t, opaque), "png with alpha": encodePNG(t, holes)}
	for name, path := range map[string]string{
		"ycck": "hard/sharp__Channel_digital_image_CMYK_color_no_profile.jpg", "progressive": "photos/kodim20_q80_2x2_prog.jpg",
		"png of 16 bit": "graphics/images__trim-16bit-rgba.png",
	} {
		sources[name] = read(t, filepath.Join(corpusDir, path))
	}
	for name, source := range sources {
		upright := variantOf(t, p, name, withOrientation(source, 1))
		for o := 2; o <= 8; o++ {
			what := fmt.Sprintf("%s, orientation %d", name, o)
			got := variantOf(t, p, what, withOrientation(source, o))
			// Turned blocks lose other details: what counts is the picture.
			want := turn(upright.shown[0].img, o)
			if d := distance(averaged(want), averaged(got.shown[0].img), lookAt); d > 2 || distance(want, got.shown[0].img, lookAt) > 4 {
				t.Errorf("%s: %.2f", what, d)
			}
		}
	}
}
