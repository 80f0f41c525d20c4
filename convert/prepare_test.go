package convert

import (
	"bytes"
	"errors"
	"image/gif"
	"os"
	"path/filepath"
	"testing"

	"karui/convert/header"
	"karui/internal/sample"
)

func seeds(f *testing.F, format header.Format) {
	f.Helper()
	for _, folder := range []string{"hard", "broken", "animated", "graphics"} {
		paths, _ := filepath.Glob(filepath.Join(corpusDir, folder, "*"))
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err == nil && len(b) < 4000 && header.Sniff(b) == format {
				f.Add(b)
			}
		}
	}
}

func FuzzPrepareJPEG(f *testing.F) {
	seeds(f, header.JPEG)
	f.Add([]byte("\xff\xd8"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, o := range []int{1, 6} {
			out, err := prepareJPEG(bytes.Clone(in), o, false)
			if err != nil {
				if !errors.Is(err, errCut) && !errors.Is(err, errDamage) {
					t.Fatal(err)
				}
				continue
			}
			if len(out) > len(in)+2 || !bytes.HasPrefix(out, in[:2]) {
				t.Fatalf("%d bytes became %d", len(in), len(out))
			}
			if info, err := header.Parse(in); err != nil || !info.Whole {
				continue
			}
			again, err := prepareJPEG(bytes.Clone(out), o, false)
			if err != nil || !bytes.Equal(again, out) {
				t.Fatalf("a second time: %v", err)
			}
		}
	})
}

func FuzzPreparePNG(f *testing.F) {
	seeds(f, header.PNG)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		out := preparePNG(bytes.Clone(in), 3, true)
		if len(out) > len(in) {
			t.Fatalf("%d bytes became %d", len(in), len(out))
		}
		if again := preparePNG(bytes.Clone(out), 3, true); !bytes.Equal(again, out) {
			t.Fatal("a second time it changes")
		}
	})
}

// What is dropped is not part of the pixels.
func TestPrepareJPEGKeepsPixels(t *testing.T) {
	for _, path := range corpus(t, "photos", false) {
		source := read(t, path)
		info, err := header.Parse(source)
		if err != nil || info.Format != header.JPEG {
			continue
		}
		out, err := prepareJPEG(bytes.Clone(source), 1, false)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		after, err := header.Parse(out)
		if err != nil || after.Width != info.Width || after.Scans != info.Scans || after.Color != info.Color {
			t.Errorf("%s: %+v, %v", path, after, err)
		}
		if after.EXIF || after.XMP || after.Profile != header.ProfileNone || after.Copyright != "" {
			t.Errorf("%s: metadata is left", path)
		}
		for _, marker := range []string{"\xff\xe1", "\xff\xed", "\xff\xfe"} {
			if i := bytes.Index(out, []byte(marker)); i >= 0 && i < bytes.Index(out, []byte("\xff\xda")) && !inTable(out, i) {
				t.Errorf("%s: marker % x at %d", path, marker, i)
			}
		}
	}
}

// inTable reports whether a place lies inside of a segment.
func inTable(b []byte, at int) bool {
	for pos := 2; pos+4 <= len(b) && b[pos] == 0xff; {
		n := 2 + (int(b[pos+2])<<8 | int(b[pos+3]))
		if at > pos && at < pos+n {
			return true
		}
		if at <= pos {
			return false
		}
		pos += n
	}
	return false
}

func TestPrepareJPEGDefects(t *testing.T) {
	progressive := read(t, filepath.Join(corpusDir, "photos/kodim03_q92_1x1_prog.jpg"))
	var scans []int // places of the scans' markers
	for i := 0; i+1 < len(progressive); i++ {
		if progressive[i] == 0xff && progressive[i+1] == 0xda {
			scans = append(scans, i)
		}
	}
	if len(scans) != 10 {
		t.Fatalf("%d scans", len(scans))
	}
	for i, at := range scans {
		_, err := prepareJPEG(bytes.Clone(progressive[:at]), 1, false)
		if !errors.Is(err, errCut) {
			t.Errorf("cut before scan %d: %v", i+1, err)
		}
		// With an end marker it is what its author may have wanted, as long as every component is there.
		ended := append(bytes.Clone(progressive[:at]), 0xff, 0xd9)
		if _, err := prepareJPEG(ended, 1, false); (err == nil) != (i > 0) {
			t.Errorf("ended before scan %d: %v", i+1, err)
		}
	}
	if out, err := prepareJPEG(bytes.Clone(progressive[:len(progressive)-2]), 1, false); err != nil || !bytes.HasSuffix(out, []byte{0xff, 0xd9}) {
		t.Errorf("without its end marker: %v", err)
	}
	arithmetic := read(t, filepath.Join(corpusDir, "hard/libjpeg-turbo__testimgari.jpg"))
	if _, err := prepareJPEG(bytes.Clone(arithmetic), 1, false); err != nil {
		t.Errorf("arithmetic: %v", err)
	}
	if _, err := prepareJPEG(bytes.Clone(arithmetic[:len(arithmetic)-2]), 1, false); !errors.Is(err, errCut) {
		t.Errorf("arithmetic without its end marker: %v", err)
	}
}

func FuzzCheckGIF(f *testing.F) {
	seeds(f, header.GIF)
	f.Add([]byte("GIF89a"))
	f.Fuzz(func(t *testing.T, in []byte) {
		facts, err := checkGIF(in)
		if err != nil {
			if !errors.Is(err, errCut) && !errors.Is(err, errDamage) {
				t.Fatal(err)
			}
			return
		}
		if facts.bytes > int64(len(in)) || len(facts.delays) > len(in) {
			t.Fatalf("%+v of %d bytes", facts, len(in))
		}
	})
}

// What checkGIF takes for whole, Go's decoder does too, and the other way round, but for what is told here.
func TestCheckGIFAgainstGo(t *testing.T) {
	agreed := 0
	for _, path := range corpus(t, "animated", false) {
		b := read(t, path)
		if header.Sniff(b) != header.GIF {
			continue
		}
		facts, err := checkGIF(b)
		g, goErr := gif.DecodeAll(bytes.NewReader(b))
		switch {
		case err == nil && goErr == nil:
			agreed++
			if len(facts.delays) != len(g.Image) {
				t.Errorf("%s: %d frames, Go has %d", path, len(facts.delays), len(g.Image))
			}
		case err == nil && len(facts.delays) > 0 && facts.odd == "" && !usual(goErr):
			t.Errorf("%s: Go says %v", path, goErr)
		case err != nil && goErr == nil:
			t.Errorf("%s: %v, and Go reads it", path, err)
		}
	}
	if agreed < 30 {
		t.Errorf("only %d agreed", agreed)
	}
}

// The parts of a canvas that nobody draws, or that are cleared, look different in libvips and in browsers.
func TestOddGIFs(t *testing.T) {
	full := gifFrame{w: 10, h: 10, table: true}
	part := gifFrame{x: 2, y: 2, w: 4, h: 4, table: true}
	with := func(f gifFrame, disposal int, transparent bool) gifFrame {
		f.disposal, f.transparent = disposal, transparent
		return f
	}
	for name, c := range map[string]struct {
		frames []gifFrame
		odd    bool
	}{
		"one full frame":                {[]gifFrame{full}, false},
		"a part upon a full frame":      {[]gifFrame{full, part}, false},
		"a lonely part":                 {[]gifFrame{part}, true},
		"a lonely part, transparent":    {[]gifFrame{with(part, 0, true)}, false},
		"cleared to the background":     {[]gifFrame{with(full, 2, false), part}, true},
		"cleared to transparent":        {[]gifFrame{with(full, 2, true), part}, false},
		"cleared, and covered at once":  {[]gifFrame{with(full, 2, false), full}, false},
		"cleared last":                  {[]gifFrame{full, with(part, 2, false)}, false},
		"covered by a frame with holes": {[]gifFrame{with(full, 2, false), with(full, 0, true)}, true},
		"taken away":                    {[]gifFrame{full, with(part, 3, false), part}, false},
		"the first one taken away":      {[]gifFrame{with(full, 3, false), part}, true},
		"beyond the canvas":             {[]gifFrame{full, {x: 8, y: 0, w: 4, h: 4, table: true}}, true},
		"without pixels":                {[]gifFrame{full, {w: 0, h: 4, table: true}}, true},
		"none":                          {nil, true},
		"no colours":                    {[]gifFrame{{w: 10, h: 10}}, true},
	} {
		r := gifReader{frames: c.frames}
		if odd := r.oddity(gifFacts{width: 10, height: 10}); (odd != "") != c.odd {
			t.Errorf("%s: %q", name, odd)
		}
	}
}

func TestLook(t *testing.T) {
	const w, h = 40, 40
	px := func(f func(x, y int) byte) []byte {
		b := make([]byte, w*h)
		for i := range b {
			b[i] = f(i%w, i/w)
		}
		return b
	}
	for name, c := range map[string]struct {
		px       []byte
		lossless bool
	}{
		"one colour": {px(func(int, int) byte { return 7 }), true},
		"stripes":    {px(func(_, y int) byte { return byte(y%2) * 255 }), true},
		"text":       {px(func(x, y int) byte { return byte((x/5*y/7)%2) * 255 }), true},
		"gradient":   {px(func(x, y int) byte { return byte(3*x + 2*y) }), false},
		"noise":      {px(func(x, y int) byte { return byte((x*7919 + y*104729) >> 3 * 31) }), false},
	} {
		got, why := look(c.px, w, h, 1, 1).choose()
		if got != c.lossless || why == "" {
			t.Errorf("%s: lossless %t, %s", name, got, why)
		}
	}
	wide := make([]byte, w*h*3*2) // 16 bit: the low bytes are noise
	for i := 0; i < len(wide); i += 2 {
		wide[i] = byte(i * 31)
	}
	if c := look(wide, w, h, 3, 2); c.soft+c.same != c.pixels {
		t.Errorf("steps in the low byte count as edges: %+v", c)
	}
}

// PNGs are made the way that suits them.
func TestPNGMode(t *testing.T) {
	p := newPool(t, nil)
	for path, lossless := range map[string]bool{
		"photos/codec-corpus__kodim01.png":                    false,
		"photos/codec-corpus__kodim03.png":                    false,
		"graphics/testdata__tmshre_riaphotographs_alpha.png":  false,
		"graphics/testdata__cvo9xd_keong_macan_grayscale.png": false,
		"graphics/scikit-image__bw_text.png":                  true,
		"graphics/thumbor__forbes-logo.png":                   true,
		"graphics/solidus__product.png":                       true,
		"graphics/govips__png-8bit_alpha.png":                 true,
		"graphics/astro__qoddi.png":                           true,
	} {
		source := read(t, filepath.Join(corpusDir, path))
		r := convertOne(t, p, source, webpOptions(80))
		if r.Decision.Code != Converted || r.Lossless != lossless {
			t.Errorf("%s: lossless %t, %+v", path, r.Lossless, r.Decision)
		}
		for mode, want := range map[string]bool{PNGLossy: false, PNGLossless: true} {
			opt := webpOptions(80)
			opt.PNG = mode
			if r := convertOne(t, p, source, opt); r.Decision.Code == Converted && r.Lossless != want {
				t.Errorf("%s as %s: lossless %t", path, mode, r.Lossless)
			}
		}
	}
	if r := convertOne(t, p, sample.Screenshot(), webpOptions(80)); !r.Lossless {
		t.Errorf("the screenshot: %+v", r.Decision)
	}
}
