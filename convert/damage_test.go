package convert

import (
	"bytes"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"path/filepath"
	"sync"
	"testing"

	"karui/convert/header"
	"karui/internal/sample"
)

// variant is a WebP and what it shows.
type variant struct {
	body  []byte
	shown []moment
}

// variantOf returns the variant of a good original.
func variantOf(t *testing.T, p *Pool, what string, source []byte) variant {
	t.Helper()
	r := convertOne(t, p, bytes.Clone(source), webpOptions(90))
	if r.Decision.Code != Converted {
		t.Fatalf("%s: %+v", what, r.Decision)
	}
	shown, _, err := decodeWebP(r.Body)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return variant{r.Body, shown}
}

// harmless fails the test when a damaged original was converted to anything but what the whole one would be.
func harmless(t *testing.T, p *Pool, what string, source []byte, whole variant) Code {
	t.Helper()
	r, err := p.Convert(t.Context(), source, webpOptions(90))
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return ""
	}
	if r.Decision.Code != Converted {
		if !r.Decision.Settled {
			t.Errorf("%s: not settled: %+v", what, r.Decision)
		}
		return r.Decision.Code
	}
	if bytes.Equal(r.Body, whole.body) {
		return Converted
	}
	shown, _, err := decodeWebP(r.Body)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return ""
	}
	if d := worst(whole.shown, shown, lookAt); d > 0.5 || total(whole.shown) != total(shown) {
		t.Errorf("%s: converted, and differs by %.2f from the whole picture", what, d)
	}
	return r.Decision.Code
}

// What is cut off anywhere is never shown as if it were whole. With an end marker put behind the cut, a decoder that
// goes by the markers alone would take it for whole.
func TestCutOff(t *testing.T) {
	p := newPool(t, nil)
	small := func(path string) []byte { return read(t, filepath.Join(corpusDir, path)) }
	for _, c := range []struct {
		name   string
		source func() []byte
		steps  int
	}{
		{"baseline 4:2:0", func() []byte { return small("photos/kodim01_q75_2x2.jpg") }, 20},
		{"baseline 4:2:2", func() []byte { return small("photos/kodim13_q85_2x1.jpg") }, 10},
		{"progressive 4:4:4", func() []byte { return small("photos/kodim03_q92_1x1_prog.jpg") }, 20},
		{"progressive 4:2:0", func() []byte { return small("photos/kodim20_q80_2x2_prog.jpg") }, 20},
		{"restarts", func() []byte { return small("hard/testdata__bicycles_restarts.jpg") }, 20},
		{"scan by component", func() []byte { return small("hard/testdata__flower_small.q85_420_partially_interleaved.jpg") }, 20},
		{"drawn photo", samplePhoto, 8},
		{"png", sample.Screenshot, 20},
		{"png with alpha", sample.Logo, 10},
		{"gif", sample.Animation, 20},
		{"still gif", func() []byte { return small("animated/wuffs__bricks-dither.gif") }, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := c.source()
			info, err := header.Parse(source)
			if err != nil {
				t.Fatal(err)
			}
			whole := variantOf(t, p, c.name, source)
			var cuts []int
			for i := range c.steps {
				cuts = append(cuts, len(source)*(i+1)/(c.steps+1))
			}
			for back := 1; back < 700; back += back/2 + 1 { // the last rows
				cuts = append(cuts, len(source)-back)
			}
			var wg sync.WaitGroup
			turns := make(chan struct{}, 2)
			for _, n := range cuts {
				turns <- struct{}{}
				wg.Go(func() {
					defer func() { <-turns }()
					what := fmt.Sprintf("%d of %d bytes", n, len(source))
					harmless(t, p, what, bytes.Clone(source[:n]), whole)
					if end := map[header.Format]string{header.JPEG: "\xff\xd9", header.GIF: "\x00\x3b"}[info.Format]; end != "" {
						harmless(t, p, what+" and an end", append(bytes.Clone(source[:n]), end...), whole)
					}
				})
			}
			wg.Wait()
		})
	}
}

// A JPEG without its end marker whose pixels are all there is converted.
func TestMissingEndMarker(t *testing.T) {
	p := newPool(t, nil)
	sources := map[string][]byte{"drawn": samplePhoto()}
	for _, name := range []string{"photos/kodim01_q75_2x2.jpg", "photos/kodim03_q92_1x1_prog.jpg"} {
		sources[name] = read(t, filepath.Join(corpusDir, name))
	}
	for name, source := range sources {
		if !bytes.HasSuffix(source, []byte{0xff, 0xd9}) {
			t.Fatalf("%s does not end with an end marker", name)
		}
		whole := variantOf(t, p, name, source)
		if code := harmless(t, p, name, bytes.Clone(source[:len(source)-2]), whole); code != Converted {
			t.Errorf("%s without its end marker: %s", name, code)
		}
	}
}

// Samsung's cameras write a spectral range of 0 to 0 into the scan header of sequential JPEGs.
func TestOddScanHeader(t *testing.T) {
	p := newPool(t, nil)
	source := bytes.Clone(samplePhoto())
	at := bytes.Index(source, []byte{0xff, 0xda})
	n := int(source[at+3]) // length, with one byte being enough
	tail := source[at+2+n-3 : at+2+n]
	if !bytes.Equal(tail, []byte{0, 63, 0}) {
		t.Fatalf("the scan header ends with % x", tail)
	}
	whole := variantOf(t, p, "as drawn", samplePhoto())
	tail[1] = 0
	if code := harmless(t, p, "odd scan header", source, whole); code != Converted {
		t.Errorf("odd scan header: %s", code)
	}
}

// A few bytes in the middle of the data are lost; what comes of it is never half a picture of grey.
func TestHoles(t *testing.T) {
	p := newPool(t, nil)
	for name, source := range map[string][]byte{"jpeg": samplePhoto(), "png": sample.Screenshot(), "gif": sample.Animation()} {
		converted := 0
		for i := 1; i < 20; i++ {
			at := len(source) * i / 20
			holed := append(bytes.Clone(source[:at]), source[at+200:]...)
			r := convertOne(t, p, holed, webpOptions(80))
			if r.Decision.Code == Converted {
				converted++
			}
			if !r.Decision.Settled {
				t.Errorf("%s: %+v", name, r.Decision)
			}
		}
		// Huffman codes have no check sum, and a GIF's have none either: now and then the rest still is a picture.
		if most := map[string]int{"jpeg": 5, "gif": 5}[name]; converted > most {
			t.Errorf("%s: %d of 19 with a hole were converted", name, converted)
		}
	}
}

// The last frame of a long animation is short of data.
func TestShortLastFrame(t *testing.T) {
	source := sample.Animation()
	g, err := gif.DecodeAll(bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	facts, err := checkGIF(source)
	if err != nil || len(facts.delays) != len(g.Image) || facts.odd != "" {
		t.Fatalf("whole: %+v, %v", facts, err)
	}
	for i, d := range facts.delays {
		if d != g.Delay[i] {
			t.Errorf("frame %d: delay %d, and Go says %d", i+1, d, g.Delay[i])
		}
	}
	// Drop the last block of image data, and put the terminator and the trailer back.
	cut := bytes.Clone(source[:len(source)-40])
	cut = append(cut, 0, 0x3b)
	p := newPool(t, nil)
	r := convertOne(t, p, cut, webpOptions(80))
	if r.Decision.Code == Converted {
		t.Errorf("converted: %+v", r.Decision)
	}
}

// Every kind of subsampling whose last row of blocks is damaged is found out: libvips itself looks at warnings before
// each strip, and never after the last one.
func TestDamagedLastStrip(t *testing.T) {
	p := newPool(t, nil)
	img := image.NewGray(image.Rect(0, 0, 64, 64)) // one component: a strip is one row of blocks
	for i := range img.Pix {
		img.Pix[i] = uint8(i * 7919 >> 3)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	source := b.Bytes()
	whole := variantOf(t, p, "grey noise", source)
	refused := 0
	for back := 3; back < 120; back++ {
		cut := append(bytes.Clone(source[:len(source)-back]), 0xff, 0xd9)
		if code := harmless(t, p, fmt.Sprintf("%d bytes short", back-2), cut, whole); code == Broken {
			refused++
		}
	}
	if refused < 110 {
		t.Errorf("only %d of 117 were refused", refused)
	}
}
