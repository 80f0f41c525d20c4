package convert

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"karui/convert/header"
)

// What becomes of each kind of file that arrives under an image's name: as AVIF where the viewer takes that, and as
// WebP. At a low quality, so that what matters is the kind of file and not which encoder is a byte better.
func TestKinds(t *testing.T) {
	p := newPool(t, nil)
	for _, c := range []struct {
		name       string
		source     func(t *testing.T) []byte
		avif, webp Code
	}{
		{"photo", from("photos/kodim13_q85_2x1.jpg"), Converted, Converted},
		{"photo without an end marker", without("photos/kodim13_q85_2x1.jpg", 2), Converted, Converted},
		{"photo cut off", without("photos/kodim13_q85_2x1.jpg", 30_000), Truncated, Truncated},
		{"progressive photo", from("photos/kodim03_q92_1x1_prog.jpg"), Converted, Converted},
		{"arithmetic photo", from("hard/libjpeg-turbo__testimgari.jpg"), Converted, Converted},
		{"grey arithmetic photo of 188 bytes", from("hard/imgproxy__test1.arith.jpg"), NotSmaller, Converted},
		{"photo of 12 bits", from("hard/libjpeg-turbo__monkey12.jpg"), UnsupportedJPEG, UnsupportedJPEG},
		{"lossless photo", from("hard/sharp__testimgl.jpg"), UnsupportedJPEG, UnsupportedJPEG},
		{"photo of 3,000 scans", manyScans("photos/testdata__flower.png.im_q85_420_progr.jpg", 3000), TooSlow, TooSlow},
		{"photo with a gain map", from("hard/libavif__paris_exif_xmp_gainmap_bigendian.jpg"), GainMap, GainMap},
		{"photo with Apple's gain map", from("hard/libavif__apple_gainmap_old.jpg"), GainMap, GainMap},
		{"photo whose gain map is cut off", from("hard/Pillow__ultrahdr.jpg"), GainMap, GainMap},
		// Browsers show the first picture only, so that none of their viewers loses the second.
		{"two photos in one file (MPO)", from("hard/Pillow__sugarshack.mpo"), Converted, Converted},
		{"two photos, the second one missing", from("hard/Pillow__sugarshack_no_data.mpo"), Converted, Converted},
		{"printers' colours", from("hard/sharp__Channel_digital_image_CMYK_color_no_profile.jpg"), Converted, Converted},
		{"photo wider than WebP holds", from("hard/syn_16384x16.jpg"), Converted, TooWide},
		{"photo as wide as WebP holds", from("hard/syn_16383x16.jpg"), Converted, Converted},
		{"photo whose header says 65,500 px a side", from("bombs/jpeg_65500x65500_header.jpg"), TooManyPixels, TooManyPixels},

		{"photo as PNG", from("photos/codec-corpus__kodim03.png"), Converted, Converted},
		{"flat drawing", from("graphics/saleor__placeholder1024.png"), Graphic, Converted},
		{"drawing with a palette", from("graphics/astro__twitter_3x.png"), Graphic, Converted},
		{"animated PNG", from("animated/zune-image__animated_ball.png"), AnimatedPNG, AnimatedPNG},
		{"animated PNG with its own name", from("animated/wuffs__muybridge.apng"), AnimatedPNG, AnimatedPNG},
		{"animated PNG of one frame", from("animated/Pillow__split_fdat_zero_chunk.png"), AnimatedPNG, AnimatedPNG},
		{"PNG of 900 MP", from("bombs/png_30000x30000_gray8.png"), TooManyPixels, TooManyPixels},
		{"PNG with 200 MB of text", from("bombs/png_ztxt_200MB.png"), Graphic, Converted},
		{"PNG cut off", without("photos/codec-corpus__kodim03.png", 5000), Truncated, Truncated},

		{"animation", from("animated/thumbor__SmallFullColourGIF.gif"), CannotAnimate, Converted},
		{"animation that would grow", from("animated/codec-corpus__any-disposal.gif"), CannotAnimate, NotSmaller},
		{"animation of 5,000 large frames", from("bombs/gif_5000frames_500x500.gif"), TooManyFrames, TooManyFrames},
		{"animation of 4,096 small frames, which would grow", gifFrames(4096), CannotAnimate, NotSmaller},
		{"animation of 4,097 small frames", gifFrames(4097), TooManyFrames, TooManyFrames},
		{"animation cut off", without("animated/thumbor__SmallFullColourGIF.gif", 1000), Truncated, Truncated},
		{"GIF of one frame", from("animated/codec-corpus__sample_1.gif"), Graphic, Converted},
		{"photo as GIF", from("animated/wuffs__hibiscus.regular.gif"), Converted, Converted},
		{"GIF of no frames", from("animated/wuffs__no-frames.gif"), Empty, Empty},
		{"GIF of 4.3 GP", from("bombs/gif_65535x65535_1frame.gif"), TooManyPixels, TooManyPixels},

		{"AVIF", from("hard/govips__avif-8bit.avif"), NotConvertible, NotConvertible},
		{"AVIF that opens, and then fails", without("hard/govips__avif-8bit.avif", 200_000), NotConvertible, NotConvertible},
		{"HEIC", from("hard/bimg__test2.heic"), NotConvertible, NotConvertible},
		{"WebP under a JPEG's name", from("hard/webp_named.jpg"), NotConvertible, NotConvertible},
		{"SVG under a PNG's name", from("hard/svg_named.png"), NotConvertible, NotConvertible},
		{"SVG that grows", from("bombs/svg_entity_bomb.svg"), NotConvertible, NotConvertible},
		{"HTML under a JPEG's name", from("hard/html_error_page.jpg"), NotConvertible, NotConvertible},
		{"XML under a JPEG's name", from("hard/xml_s3_error.jpg"), NotConvertible, NotConvertible},
		{"PDF under a JPEG's name", text("%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n"), NotConvertible, NotConvertible},
		{"PGM under a JPEG's name", text("P5\n2 2\n255\n\x00\x40\x80\xff"), NotConvertible, NotConvertible},
		{"BMP under a JPEG's name", text("BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00" + strings.Repeat("\x00", 60)), NotConvertible, NotConvertible},
		{"nothing", text(""), NotConvertible, NotConvertible},
		{"JPEG under a PNG's name", from("hard/jpeg_named.png"), Converted, Converted},
		{"PNG under a JPEG's name", from("hard/png_named.JPEG"), Converted, Converted},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := c.source(t)
			for format, want := range map[header.Format]Code{header.AVIF: c.avif, header.WebP: c.webp} {
				r := convertOne(t, p, source, Options{Formats: []header.Format{format}, Quality: 10})
				if r.Decision.Code != want || !r.Decision.Settled {
					t.Errorf("%s: %+v, want %s", format, r.Decision, want)
				}
				if len(r.Outcomes) != 1 || r.Outcomes[0] != (Outcome{format, r.Decision}) {
					t.Errorf("%s: outcomes %+v", format, r.Outcomes)
				}
			}
			// Where the viewer takes both, the second has its turn when the first is nothing for this picture.
			both := convertOne(t, p, source, Options{Formats: []header.Format{header.AVIF, header.WebP}, Quality: 10})
			second := c.webp
			if c.avif == Converted {
				second = NotTried
			}
			if got := both.Outcomes; len(got) != 2 || got[0].Decision.Code != c.avif || got[1].Decision.Code != second {
				t.Errorf("both: %+v, want %s and %s", got, c.avif, second)
			}
		})
	}
	for cause, n := range p.Stats().Ended {
		if cause == CauseCrash || cause == CauseMemory || cause == CauseTimeout {
			t.Errorf("%d workers ended by %s", n, cause)
		}
	}
}

func from(path string) func(*testing.T) []byte {
	return func(t *testing.T) []byte { return read(t, filepath.Join(corpusDir, filepath.FromSlash(path))) }
}

func without(path string, last int) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		b := from(path)(t)
		return b[:len(b)-last]
	}
}

func text(s string) func(*testing.T) []byte {
	return func(*testing.T) []byte { return []byte(s) }
}

// manyScans repeats the shortest scan of a progressive JPEG until there are so many.
func manyScans(path string, n int) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		b := from(path)(t)
		start, end := 0, len(b)
		for at := bytes.Index(b, []byte{0xff, 0xda}); at >= 0; {
			to := at + 2
			for to+1 < len(b) && (b[to] != 0xff || b[to+1] == 0 || b[to+1] >= 0xd0 && b[to+1] <= 0xd7) {
				to++
			}
			if to-at < end-start {
				start, end = at, to
			}
			next := bytes.Index(b[to:], []byte{0xff, 0xda})
			if next < 0 {
				break
			}
			at = to + next
		}
		out := append(bytes.Clone(b[:end]), bytes.Repeat(b[start:end], n)...)
		if out = append(out, b[end:]...); len(out) > 32<<20 {
			t.Fatalf("%d bytes", len(out))
		}
		return out
	}
}

// gifFrames is an animation of so many frames of 2 x 2 px, one black and the next white.
func gifFrames(n int) func(*testing.T) []byte {
	return func(*testing.T) []byte {
		b := []byte("GIF89a\x02\x00\x02\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
		for i := range n {
			b = append(b, "\x21\xf9\x04\x04\x05\x00\x00\x00\x2c\x00\x00\x00\x00\x02\x00\x02\x00\x00\x02"...)
			codes, color := uint32(0), uint32(i&1)
			for k, code := range []uint32{4, color, color, 4, color, color, 5} { // cleared before codes get longer
				codes |= code << (3 * k)
			}
			b = append(b, 3, byte(codes), byte(codes>>8), byte(codes>>16), 0)
		}
		return append(b, ';')
	}
}
