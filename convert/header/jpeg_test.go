package header

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"testing"
)

func TestJPEGFrame(t *testing.T) {
	jfif := seg(mAPP0, []byte("JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")...)
	adobe := func(transform byte) []byte {
		return seg(mAPP14, append([]byte("Adobe\x00\x64\x00\x00\x00\x00"), transform)...)
	}
	for _, c := range []struct {
		name    string
		before  []byte
		sof     []byte
		scan    []byte
		color   Color
		process Process
	}{
		{"grey", nil, sof(0xC0, 8, 8, 6, 1), sos(1), Gray, Baseline},
		{"jfif", jfif, sof(0xC0, 8, 8, 6, 1, 2, 3), sos(1, 2, 3), YCC, Baseline},
		{"jfif wins over ids", jfif, sof(0xC0, 8, 8, 6, 'R', 'G', 'B'), sos('R', 'G', 'B'), YCC, Baseline},
		{"ids alone", nil, sof(0xC0, 8, 8, 6, 'R', 'G', 'B'), sos('R', 'G', 'B'), RGB, Baseline},
		{"adobe rgb", adobe(0), sof(0xC0, 8, 8, 6, 1, 2, 3), sos(1, 2, 3), RGB, Baseline},
		{"adobe ycc", adobe(1), sof(0xC0, 8, 8, 6, 'R', 'G', 'B'), sos('R', 'G', 'B'), YCC, Baseline},
		{"cmyk", nil, sof(0xC0, 8, 8, 6, 1, 2, 3, 4), sos(1, 2, 3, 4), CMYK, Baseline},
		{"adobe cmyk", adobe(0), sof(0xC0, 8, 8, 6, 1, 2, 3, 4), sos(1, 2, 3, 4), CMYK, Baseline},
		{"ycck", adobe(2), sof(0xC0, 8, 8, 6, 1, 2, 3, 4), sos(1, 2, 3, 4), YCCK, Baseline},
		{"two components", nil, sof(0xC0, 8, 8, 6, 1, 2), sos(1, 2), ColorUnknown, Baseline},
		{"five components", nil, sof(0xC0, 8, 8, 6, 1, 2, 3, 4, 5), sos(1, 2, 3, 4), ColorUnknown, Baseline},
		{"extended", nil, sof(0xC1, 12, 8, 6, 1), sos(1), Gray, Extended},
		{"progressive", nil, sof(0xC2, 8, 8, 6, 1), sos(1), Gray, Progressive},
		{"lossless", nil, sof(0xC3, 16, 8, 6, 1), sos(1), Gray, Lossless},
		{"differential", nil, sof(0xC5, 8, 8, 6, 1), sos(1), Gray, Hierarchical},
		{"hierarchical with a plain first frame", sof(mDHP, 8, 8, 6, 1), sof(0xC0, 8, 8, 6, 1), sos(1), Gray, Hierarchical},
		{"arithmetic", nil, sof(0xC9, 8, 8, 6, 1), sos(1), Gray, ArithmeticSequential},
		{"arithmetic progressive", nil, sof(0xCA, 8, 8, 6, 1), sos(1), Gray, ArithmeticProgressive},
		{"arithmetic lossless", nil, sof(0xCB, 8, 8, 6, 1), sos(1), Gray, ArithmeticLossless},
	} {
		info, err := Parse(join(soi, c.before, c.sof, c.scan, eoi))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if info.Color != c.color || info.Process() != c.process {
			t.Errorf("%s: %v %v, want %v %v", c.name, info.Color, info.Process(), c.color, c.process)
		}
		if info.Width != 8 || info.Height != 6 || info.Frames != 1 || !info.Whole || info.Scans != 1 || info.Orientation != 1 {
			t.Errorf("%s: %+v", c.name, info)
		}
		if progressive := c.process == Progressive || c.process == ArithmeticProgressive; info.Progressive != progressive {
			t.Errorf("%s: progressive %v", c.name, info.Progressive)
		}
	}
}

func TestJPEGStructure(t *testing.T) {
	good := smallJPEG()
	for _, c := range []struct {
		name  string
		bytes []byte
		want  error
		whole bool
	}{
		{"whole", good, nil, true},
		{"without its end", good[:len(good)-2], nil, false},
		{"with bytes behind its end", append(good[:len(good):len(good)], "SEFT and more"...), nil, true},
		{"fill bytes before markers", join(soi, []byte{0xFF, 0xFF, 0xFF}, sof(0xC0, 8, 8, 6, 1), []byte{0xFF, 0xFF}, sos(1), eoi), nil, true},
		{"garbage between segments", join(soi, sof(0xC0, 8, 8, 6, 1), []byte("garbage\xff\x00"), sos(1), eoi), nil, true},
		{"restart markers", join(soi, sof(0xC0, 8, 8, 6, 1), sos(1), []byte{1, 0xFF, 0xD0, 2, 0xFF, 0xD7, 3}, eoi), nil, true},
		{"cut in the frame header", good[:9], ErrShort, false},
		{"cut before the scan", join(soi, sof(0xC0, 8, 8, 6, 1)), ErrShort, false},
		{"first marker only", good[:3], ErrShort, false},
		{"ends without a scan", join(soi, sof(0xC0, 8, 8, 6, 1), eoi), ErrBroken, false},
		{"scan without a frame", join(soi, seg(mDQT), sos(1), eoi), ErrBroken, false},
		{"two frames", join(soi, sof(0xC0, 8, 8, 6, 1), sof(0xC0, 8, 8, 6, 1), sos(1), eoi), ErrBroken, false},
		{"two beginnings", join(soi, seg(mDQT), soi, sof(0xC0, 8, 8, 6, 1), sos(1), eoi), ErrBroken, false},
		{"length of a segment too small", join(soi, []byte{0xFF, mDQT, 0, 1}), ErrBroken, false},
		{"frame header of the wrong length", join(soi, seg(0xC0, 8, 0, 6, 0, 8, 3, 1, 0x11, 0), sos(1), eoi), ErrBroken, false},
		{"frame without components", join(soi, seg(0xC0, 8, 0, 6, 0, 8, 0), sos(1), eoi), ErrBroken, false},
	} {
		info, err := Parse(c.bytes)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || info.Whole != c.whole {
			t.Errorf("%s: whole %v, %v; want %v, %v", c.name, info.Whole, err, c.whole, c.want)
		}
	}
}

// Samsung phones leave the last three bytes of a baseline scan header at 0 0 0 where 0 63 0 is prescribed.
func TestJPEGOddScanHeader(t *testing.T) {
	info, err := Parse(join(soi, sof(0xC0, 8, 8, 6, 1), seg(mSOS, 1, 1, 0, 0, 0, 0), []byte{1, 2}, eoi))
	if err != nil || !info.Whole || !info.OnePass {
		t.Errorf("%+v %v", info, err)
	}
}

func TestJPEGHeight(t *testing.T) {
	info, err := Parse(join(soi, sof(0xC0, 8, 8, 0, 1), sos(1), seg(mDNL, 0, 77), eoi))
	if err != nil || info.Height != 77 || !info.LateHeight {
		t.Errorf("height from DNL: %d %v %v", info.Height, info.LateHeight, err)
	}
	info, err = Parse(join(soi, sof(0xC0, 8, 8, 6, 1), sos(1), seg(mDNL, 0, 77), eoi))
	if err != nil || info.Height != 6 || info.LateHeight {
		t.Errorf("DNL against the frame header: %d %v %v", info.Height, info.LateHeight, err)
	}
	info, err = Parse(join(soi, sof(0xC0, 8, 8, 0, 1), sos(1), eoi))
	if err != nil || info.Height != 0 {
		t.Errorf("no height: %d %v", info.Height, err)
	}
}

func TestJPEGScans(t *testing.T) {
	parts := [][]byte{soi, sof(0xC2, 8, 8, 6, 1, 2, 3), seg(mDRI, 1, 44)}
	for range 3000 {
		parts = append(parts, sos(1))
	}
	info, err := Parse(join(append(parts, eoi)...))
	if err != nil || info.Scans != 3000 || info.OnePass || info.RestartInterval != 300 || !info.Whole {
		t.Errorf("%d scans, one pass %v, restart %d, whole %v, %v", info.Scans, info.OnePass, info.RestartInterval, info.Whole, err)
	}
}

func encodeJPEG(t testing.TB, img image.Image, quality int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func noise(w, h int) *image.RGBA {
	img, state := image.NewRGBA(image.Rect(0, 0, w, h)), uint32(1)
	for y := range h {
		for x := range w {
			state = state*1664525 + 1013904223
			img.SetRGBA(x, y, color.RGBA{byte(state >> 24), byte(state >> 16), byte(x), 255})
		}
	}
	return img
}

func TestJPEGQuality(t *testing.T) {
	colour, grey := noise(16, 16), image.NewGray(image.Rect(0, 0, 16, 16))
	for q := 1; q <= 100; q++ {
		for name, img := range map[string]image.Image{"colour": colour, "grey": grey} {
			info, err := Parse(encodeJPEG(t, img, q))
			if err != nil {
				t.Fatal(err)
			}
			if d := info.JPEGQuality - q; d < -1 || d > 1 {
				t.Errorf("%s saved at %d is taken for %d", name, q, info.JPEGQuality)
			}
		}
	}
}

// dqt scales the example tables, each by its own quality.
func dqt(luma, chroma int) []byte {
	var data []byte
	for id, q := range [2]int{luma, chroma} {
		t := quantTable{}
		data = append(data, byte(id))
		for _, step := range annexK[id] {
			data = append(data, byte(scaled(int(step), t.scale(q), 255)))
		}
	}
	return seg(mDQT, data...)
}

func TestJPEGQualityOfOtherTables(t *testing.T) {
	flat := func(step byte) []byte {
		data := []byte{0}
		for range 64 {
			data = append(data, step)
		}
		return seg(mDQT, data...)
	}
	for _, c := range []struct {
		name     string
		tables   []byte
		low, top int
	}{
		{"luma better than chroma", dqt(90, 50), 75, 89},
		{"chroma better than luma", dqt(50, 90), 51, 65},
		{"the same for both", dqt(60, 60), 60, 60},
		{"no tables", nil, 0, 0},
		{"all ones", flat(1), 100, 100},
		{"flat and fine", flat(4), 88, 99},
		{"flat and coarse", flat(60), 35, 60},
		{"worst", flat(255), 1, 10},
		{"cut off", seg(mDQT, 0, 1, 2, 3), 0, 0},
	} {
		info, err := Parse(smallJPEG(c.tables))
		if err != nil || info.JPEGQuality < c.low || info.JPEGQuality > c.top {
			t.Errorf("%s: %d (%v), want %d..%d", c.name, info.JPEGQuality, err, c.low, c.top)
		}
	}
}
