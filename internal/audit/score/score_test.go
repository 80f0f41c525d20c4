package score

import (
	"bytes"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"karui/internal/picture"
	"karui/internal/sample"
)

func decode(t *testing.T, b []byte) *image.NRGBA {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return picture.ToNRGBA(img)
}

func of(img *image.NRGBA) Picture { return Picture{img.Rect.Dx(), img.Rect.Dy(), img.Pix} }

func compare(t *testing.T, a, b Picture) Score {
	t.Helper()
	s, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if back, _ := Compare(b, a); s < 0 || s > 100 || back-s > 1e-9 || s-back > 1e-9 {
		t.Errorf("%v one way, %v the other", s, back)
	}
	return s
}

// painted is a picture of one colour.
func painted(w, h int, r, g, b, a byte) Picture {
	return Picture{w, h, bytes.Repeat([]byte{r, g, b, a}, w*h)}
}

// middle is a part of a picture: under the race detector, a whole one takes long.
func middle(img *image.NRGBA) *image.NRGBA { return middleOf(img, 220) }

// middleOf is the square in the middle of a picture.
func middleOf(img *image.NRGBA, side int) *image.NRGBA {
	from := img.Rect.Max.Div(2).Sub(image.Pt(side/2, side/2))
	return picture.ToNRGBA(img.SubImage(image.Rectangle{from, from.Add(image.Pt(side, side))}))
}

// photos are a drawn one, and real ones where there is a corpus.
func photos(t *testing.T) map[string]*image.NRGBA {
	t.Helper()
	found := map[string]*image.NRGBA{"sample": middle(decode(t, sample.Photo()))}
	paths, _ := filepath.Glob("../../../../shared/corpus/photos/mde__*.jpg")
	if len(paths) == 0 {
		t.Log("no corpus: only the drawn photo is looked at")
	}
	for _, path := range paths[:min(len(paths), 4)] {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(path)] = middle(decode(t, b))
	}
	return found
}

func TestTheSameIsPerfect(t *testing.T) {
	for name, img := range photos(t) {
		if s := compare(t, of(img), of(img)); s != 100 || s.Words() != "looks the same" {
			t.Errorf("%s: %v", name, s)
		}
	}
	for _, size := range []image.Point{{1, 1}, {1, 9}, {3, 2}, {300, 1}} {
		p := painted(size.X, size.Y, 20, 200, 90, 255)
		if s := compare(t, p, p); s != 100 {
			t.Errorf("%v: %v", size, s)
		}
		if s := compare(t, p, painted(size.X, size.Y, 200, 20, 90, 255)); s > 50 {
			t.Errorf("another colour, %v: %v", size, s)
		}
	}
}

func TestMoreLossIsWorse(t *testing.T) {
	for name, img := range photos(t) {
		last, step := Score(-1), 13
		if name == "sample" {
			step = 65 // an encoder may be a little better at a drawing with a little less
		}
		for quality := 30; quality <= 95; quality += step {
			var b bytes.Buffer
			if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
				t.Fatal(err)
			}
			s := compare(t, of(img), of(decode(t, b.Bytes())))
			if s <= last {
				t.Errorf("%s: %v at quality %d, and %v below", name, s, quality, last)
			}
			last = s
		}
		if last < Same || last >= 100 {
			t.Errorf("%s: %v at quality 95", name, last)
		}
	}
}

// noisy adds so much noise to a part of a picture.
func noisy(img *image.NRGBA, part image.Rectangle, most int) Picture {
	p := of(img)
	p.Pix = bytes.Clone(p.Pix)
	random := rand.New(rand.NewPCG(1, 2))
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			for c := range 3 {
				i := 4*(y*p.Width+x) + c
				p.Pix[i] = byte(min(max(int(p.Pix[i])+random.IntN(2*most+1)-most, 0), 255))
			}
		}
	}
	return p
}

func TestNoiseIsWorseTheMoreThereIs(t *testing.T) {
	img := middle(decode(t, sample.Photo()))
	last := Score(100)
	for _, most := range []int{2, 5, 10, 20, 40} {
		s := compare(t, of(img), noisy(img, img.Rect, most))
		if s >= last {
			t.Errorf("%v with noise of %d, %v with less", s, most, last)
		}
		last = s
	}
	if last.Words() != "visibly different" {
		t.Errorf("%v", last)
	}
}

func TestASmallBadSpotCounts(t *testing.T) {
	img := middle(decode(t, sample.Photo()))
	spot := image.Rect(50, 50, 66, 66)
	if s := compare(t, of(img), noisy(img, spot, 120)); s >= Same {
		t.Errorf("%v", s)
	}
}

func TestColourCounts(t *testing.T) {
	grey, tinted := painted(64, 64, 128, 128, 128, 255), painted(64, 64, 150, 118, 128, 255)
	if s := compare(t, grey, tinted); s >= Same {
		t.Errorf("%v", s)
	}
}

// What is only seen on one ground is seen there.
func TestTransparentPicturesAreComparedOnBothGrounds(t *testing.T) {
	clear := painted(64, 64, 0, 0, 0, 0)
	if s := compare(t, clear, painted(64, 64, 255, 255, 255, 0)); s != 100 {
		t.Errorf("colours of what is not seen: %v", s)
	}
	for name, ground := range map[string]byte{"white": 255, "black": 0} {
		if s := compare(t, clear, painted(64, 64, ground, ground, ground, 255)); s >= Similar {
			t.Errorf("%s instead of nothing: %v", name, s)
		}
	}
}

func TestWhatCannotBeCompared(t *testing.T) {
	good := painted(2, 2, 1, 2, 3, 255)
	for name, p := range map[string]Picture{
		"another size": painted(2, 3, 1, 2, 3, 255), "too few bytes": {2, 2, make([]byte, 15)}, "nothing": {},
	} {
		if _, err := Compare(good, p); err == nil {
			t.Errorf("%s is compared", name)
		}
		if _, err := Compare(p, p); err == nil && name != "another size" {
			t.Errorf("%s is compared with itself", name)
		}
	}
	if _, err := Compare(Picture{Width: 1 << 20, Height: 1 << 20}, Picture{Width: 1 << 20, Height: 1 << 20}); err == nil {
		t.Error("a huge one is compared")
	}
}

func BenchmarkCompare(b *testing.B) {
	p, q := painted(1600, 1250, 9, 99, 199, 255), painted(1600, 1250, 19, 99, 199, 255)
	for b.Loop() {
		if _, err := Compare(p, q); err != nil {
			b.Fatal(err)
		}
	}
}
