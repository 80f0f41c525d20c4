package acceptance

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"math"
	"sync"
	"testing"
)

// sketch averages a picture over a grid of at most 48 cells a side and at least
// 8 pixels each, premultiplied, so that noise and sharpness do not count but
// place, colour and transparency do.
func sketch(img *image.NRGBA) [][4]float64 {
	const cells = 48
	w, h := img.Rect.Dx(), img.Rect.Dy()
	nx, ny := min(cells, max(1, w/8)), min(cells, max(1, h/8))
	sums, counts := make([][4]float64, nx*ny), make([]float64, nx*ny)
	for y := range h {
		base := (y * ny / h) * nx
		row := img.Pix[y*img.Stride : y*img.Stride+4*w]
		for cx := range nx {
			from, to := (cx*w+nx-1)/nx, ((cx+1)*w+nx-1)/nx
			var r, g, b, alpha int
			for p := row[4*from : 4*to]; len(p) >= 4; p = p[4:] {
				a := int(p[3])
				r, g, b, alpha = r+int(p[0])*a, g+int(p[1])*a, b+int(p[2])*a, alpha+a
			}
			sum := &sums[base+cx]
			sum[0] += float64(r) / 255
			sum[1] += float64(g) / 255
			sum[2] += float64(b) / 255
			sum[3] += float64(alpha)
			counts[base+cx] += float64(to - from)
		}
	}
	for i := range sums {
		for j := range 4 {
			sums[i][j] /= counts[i]
		}
	}
	return sums
}

// difference is the mean and the largest distance of two sketches of the same size, in steps of 255.
func difference(a, b *image.NRGBA) (mean, worst float64) {
	sa, sb := sketch(a), sketch(b)
	for i := range sa {
		d := 0.0
		for j := range 4 {
			d = max(d, math.Abs(sa[i][j]-sb[i][j]))
		}
		mean += d / float64(len(sa))
		worst = max(worst, d)
	}
	return mean, worst
}

// likeness is the correlation of two pictures' brightness: 1 for the same, -1 for a negative.
func likeness(a, b *image.NRGBA) float64 {
	sa, sb := sketch(a), sketch(b)
	var ma, mb, saa, sbb, sab float64
	light := func(c [4]float64) float64 { return 0.3*c[0] + 0.6*c[1] + 0.1*c[2] }
	for i := range sa {
		ma += light(sa[i]) / float64(len(sa))
		mb += light(sb[i]) / float64(len(sb))
	}
	for i := range sa {
		da, db := light(sa[i])-ma, light(sb[i])-mb
		saa, sbb, sab = saa+da*da, sbb+db*db, sab+da*db
	}
	if saa == 0 || sbb == 0 {
		return 1
	}
	return sab / math.Sqrt(saa*sbb)
}

// judgements are those passed before, by the digests of both files.
var judgements sync.Map

// samePicture names what is wrong with a variant of an original, if anything is.
func samePicture(original, variant []byte) []string {
	pair := [2][sha256.Size]byte{sha256.Sum256(original), sha256.Sum256(variant)}
	if passed, known := judgements.Load(pair); known {
		return passed.([]string)
	}
	passed := judge(original, variant)
	judgements.Store(pair, passed)
	return passed
}

func judge(original, variant []byte) []string {
	want, err := render(original)
	if err != nil {
		return []string{fmt.Sprintf("a variant of a file that no other decoder reads: %v", err)}
	}
	if want.keep != "" {
		return []string{"a variant although the original is " + want.keep}
	}
	got, err := decodeWebP(variant)
	if err != nil {
		return []string{fmt.Sprintf("the variant does not decode: %v", err)}
	}
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if len(variant) > len(original)*98/100 {
		say("%d bytes instead of %d are not 2 %% less", len(variant), len(original))
	}
	found = append(found, metadata(got)...)
	if got.size() != want.size() {
		say("size %v, want %v", got.size(), want.size())
		return found
	}
	if len(got.profile) > 0 {
		for i := range got.frames {
			if got.frames[i].img, err = managed(got.frames[i].img, got.profile); err != nil {
				say("the variant's profile: %v", err)
				return found
			}
		}
	}
	if want.guess {
		if r := likeness(want.frames[0].img, got.frames[0].img); r < 0.8 {
			say("light and dark correlate by %.2f only", r)
		}
		return found
	}
	if len(want.frames) == 1 && len(got.frames) == 1 {
		compare(say, "", want.frames[0].img, got.frames[0].img, want.loose)
		return found
	}
	found = append(found, sameTiming(want.clip, got)...)
	for i, at := 0, 0; i < len(want.frames); i++ {
		// The middle of each original frame, on the variant's time line.
		ms := want.frames[i].shownFor()
		compare(say, fmt.Sprintf("frame %d: ", i), want.frames[i].img, got.at(at+ms/2), want.loose)
		at += ms
	}
	return found
}

func compare(say func(string, ...any), where string, want, got *image.NRGBA, loose float64) {
	mean, worst := difference(want, got)
	// The corpus stays under this at quality 80; tiny pictures have few cells to average over.
	limit := 7 * loose
	if want.Rect.Dx()*want.Rect.Dy() < 32*32 {
		limit *= 2
	}
	if mean > limit || worst > 12*limit {
		say("%scolours differ by %.1f in the mean and %.0f at most (limit %.0f)", where, mean, worst, limit)
	}
}

// sameTiming compares total time and loops. Equal neighbours may have become one frame.
func sameTiming(want, got clip) []string {
	if len(got.frames) == 1 {
		return nil // all frames were equal, which their comparison proves
	}
	var found []string
	if got.total() != want.total() {
		found = append(found, fmt.Sprintf("animation of %d ms, want %d", got.total(), want.total()))
	}
	if len(got.frames) > len(want.frames) {
		found = append(found, fmt.Sprintf("%d frames, want %d", len(got.frames), len(want.frames)))
	}
	// "n more times" and "n times" are both read out of a GIF's number by browsers.
	if got.plays != want.plays && (want.plays <= 1 || got.plays != want.plays-1) {
		found = append(found, fmt.Sprintf("plays %d times, want %d (0 is for ever)", got.plays, want.plays))
	}
	return found
}

// metadata names what a variant carries of its original's private side.
func metadata(c clip) []string {
	var found []string
	if len(c.xmp) > 0 {
		found = append(found, fmt.Sprintf("%d bytes of XMP in a variant", len(c.xmp)))
	}
	if len(c.exif) == 0 {
		return found
	}
	tags := exifTags(bytes.TrimPrefix(c.exif, []byte("Exif\x00\x00")))
	for tag, name := range map[uint16]string{
		0x8825: "a place", 0x010f: "a maker", 0x0110: "a model", 0x0132: "a date", 0x9003: "a date",
		0x927c: "a maker's note", 0x9286: "a comment", 0x010e: "a description", 0x0131: "a program",
	} {
		if _, there := tags[tag]; there {
			found = append(found, fmt.Sprintf("%s (tag %#04x) in a variant's EXIF", name, tag))
		}
	}
	if o, there := tags[0x0112]; there && o != 1 {
		found = append(found, fmt.Sprintf("orientation %d left in a variant", o))
	}
	return found
}

// The comparison itself is held against pictures that differ on purpose.
func TestHarnessTellsPicturesApart(t *testing.T) {
	img := scene(1, 320, 240)
	if mean, worst := difference(img, toNRGBA(img)); mean != 0 || worst != 0 {
		t.Errorf("equal pictures differ by %v, %v", mean, worst)
	}
	for o := 2; o <= 4; o++ {
		if mean, _ := difference(img, upright(img, o)); mean < 12 {
			t.Errorf("orientation %d differs by %v only", o, mean)
		}
	}
	negative := toNRGBA(img)
	for i := range negative.Pix {
		if i%4 != 3 {
			negative.Pix[i] = 255 - negative.Pix[i]
		}
	}
	if r := likeness(img, negative); r > -0.9 || likeness(img, img) < 0.999 {
		t.Errorf("a negative correlates by %v", r)
	}
	half := toNRGBA(img)
	for i := len(half.Pix) / 2; i < len(half.Pix); i++ {
		half.Pix[i] = 128
	}
	if mean, _ := difference(img, half); mean < 12 {
		t.Errorf("a half-grey picture differs by %v only", mean)
	}
	jpeg := photo(t, 1)
	want, err := render(jpeg)
	if err != nil {
		t.Fatal(err)
	}
	for o := uint16(1); o <= 8; o++ {
		turned, err := render(oriented(jpeg, o))
		if err != nil {
			t.Fatal(err)
		}
		// Turning back by the inverse must give the first picture again.
		inverse := []int{0, 1, 2, 3, 4, 5, 8, 7, 6}[o]
		if mean, _ := difference(want.frames[0].img, upright(turned.frames[0].img, inverse)); mean != 0 {
			t.Errorf("orientation %d and back differ by %v", o, mean)
		}
	}
}
