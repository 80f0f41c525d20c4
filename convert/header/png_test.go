package header

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

func TestPNGHeader(t *testing.T) {
	for _, c := range []struct {
		name                string
		depth, kind, lace   byte
		color               Color
		components          int
		alpha, progressive  bool
		wrong, needsPalette bool
	}{
		{"grey 1", 1, 0, 0, Gray, 1, false, false, false, false},
		{"grey 16", 16, 0, 1, Gray, 1, false, true, false, false},
		{"rgb 8", 8, 2, 0, RGB, 3, false, false, false, false},
		{"rgb 4", 4, 2, 0, RGB, 3, false, false, true, false},
		{"palette 8", 8, 3, 0, Palette, 1, false, false, false, true},
		{"palette 16", 16, 3, 0, Palette, 1, false, false, true, true},
		{"grey alpha 8", 8, 4, 0, Gray, 2, true, false, false, false},
		{"rgba 16", 16, 6, 0, RGB, 4, true, false, false, false},
		{"type 1", 8, 1, 0, ColorUnknown, 0, false, false, true, false},
		{"interlace 2", 8, 2, 2, RGB, 3, false, false, true, false},
		{"no depth", 0, 2, 0, RGB, 3, false, false, true, false},
	} {
		info, err := Parse(join([]byte(pngSignature), ihdr(70_000, 3, c.depth, c.kind, c.lace),
			chunk("PLTE", 1, 2, 3, 4, 5, 6), chunk("IDAT"), chunk("IEND")))
		if c.wrong {
			if !errors.Is(err, ErrBroken) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || info.Width != 70_000 || info.Height != 3 || info.BitDepth != int(c.depth) || info.Color != c.color ||
			info.Components != c.components || info.Alpha != c.alpha || info.Progressive != c.progressive ||
			info.PaletteSize != 2 || info.Frames != 1 || !info.Whole {
			t.Errorf("%s: %+v (%v)", c.name, info, err)
		}
		_, err = Parse(join([]byte(pngSignature), ihdr(7, 3, c.depth, c.kind, c.lace), chunk("IDAT"), chunk("IEND")))
		if errors.Is(err, ErrBroken) != c.needsPalette {
			t.Errorf("%s without a palette: %v", c.name, err)
		}
	}
}

func TestPNGStructure(t *testing.T) {
	good := smallPNG()
	sig := []byte(pngSignature)
	badCRC := append([]byte(nil), good...)
	badCRC[8+8+13] ^= 1
	for _, c := range []struct {
		name   string
		bytes  []byte
		want   error
		whole  bool
		badCRC string
	}{
		{"whole", good, nil, true, ""},
		{"without its end", good[:len(good)-12], nil, false, ""},
		{"cut in its end", good[:len(good)-1], nil, false, ""},
		{"bytes behind its end", append(good[:len(good):len(good)], "more"...), nil, true, ""},
		{"wrong checksum", badCRC, nil, true, "IHDR"},
		{"junk behind the pixels", join(sig, ihdr(5, 4, 8, 2, 0), chunk("IDAT", 1), []byte("0123456789abcdef")), nil, false, ""},
		{"cut in the header", good[:20], ErrShort, false, ""},
		{"cut before the pixels", join(sig, ihdr(5, 4, 8, 2, 0)), ErrShort, false, ""},
		{"chunk larger than the file", join(sig, ihdr(5, 4, 8, 2, 0), []byte("\x7f\xff\xff\xffaaAa")), ErrShort, false, ""},
		{"no pixels", join(sig, ihdr(5, 4, 8, 2, 0), chunk("IEND")), ErrBroken, false, ""},
		{"header not first", join(sig, chunk("gAMA", 0, 0, 177, 143), ihdr(5, 4, 8, 2, 0)), ErrBroken, false, ""},
		{"header twice", join(sig, ihdr(5, 4, 8, 2, 0), ihdr(5, 4, 8, 2, 0)), ErrBroken, false, ""},
		{"header too short", join(sig, chunk("IHDR", 0, 0, 0, 1)), ErrBroken, false, ""},
		{"no chunk type", join(sig, ihdr(5, 4, 8, 2, 0), []byte("\x00\x00\x00\x01a1b2x....")), ErrBroken, false, ""},
		{"length over 2^31", join(sig, []byte("\xff\xff\xff\xffIHDR")), ErrBroken, false, ""},
		{"width over 2^31", join(sig, ihdr(1<<31, 4, 8, 2, 0)), ErrBroken, false, ""},
		{"apple's own variant", join(sig, chunk("CgBI", 0, 0, 0, 0), ihdr(5, 4, 8, 2, 0)), ErrBroken, false, ""},
	} {
		info, err := Parse(c.bytes)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || info.Whole != c.whole || info.BadCRC != c.badCRC {
			t.Errorf("%s: whole %v, bad %q, %v", c.name, info.Whole, info.BadCRC, err)
		}
	}
}

func TestPNGAnimation(t *testing.T) {
	two := binary.BigEndian.AppendUint32(nil, 2)
	acTL := chunk("acTL", append(two, 0, 0, 0, 0)...)
	info, err := Parse(smallPNG(acTL))
	if err != nil || !info.Animated || info.Frames != 2 {
		t.Errorf("%+v (%v)", info, err)
	}
	// Behind the pixels it is void, by the specification and for decoders.
	info, err = Parse(join([]byte(pngSignature), ihdr(5, 4, 8, 2, 0), chunk("IDAT", 1), acTL, chunk("IEND")))
	if err != nil || info.Animated || info.Frames != 1 {
		t.Errorf("behind the pixels: %+v (%v)", info, err)
	}
}

func TestPNGColours(t *testing.T) {
	number := func(n ...uint32) (b []byte) {
		for _, v := range n {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		return b
	}
	srgb, gamma22, linear := chunk("sRGB", 0), chunk("gAMA", number(45455)...), chunk("gAMA", number(100000)...)
	chroma := chunk("cHRM", number(31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)...)
	p3 := chunk("cHRM", number(31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000)...)
	profile := chunk("iCCP", append([]byte("p\x00\x00"), deflate(srgbProfile())...)...)
	for _, c := range []struct {
		name   string
		chunks []byte
		want   string
	}{
		{"nothing said", nil, ""},
		{"as srgb", join(gamma22, chroma), ""},
		{"linear", linear, "gAMA"},
		{"linear, but srgb is stated", join(linear, srgb), ""},
		{"linear, but a profile is there", join(linear, profile), ""},
		{"void gamma", chunk("gAMA", 0, 0, 0, 0), ""},
		{"primaries of p3", join(gamma22, p3), "cHRM"},
		{"primaries of p3, but a profile is there", join(p3, profile), ""},
		{"pq", join(srgb, chunk("cICP", 9, 16, 0, 1)), "cICP"},
		{"cicp that means srgb", chunk("cICP", 1, 13, 0, 1), ""},
		{"chunks of wrong sizes", join(chunk("gAMA", 1), chunk("cHRM", 1), chunk("cICP", 1)), ""},
	} {
		info, err := Parse(smallPNG(c.chunks))
		if err != nil || info.OddColor != c.want {
			t.Errorf("%s: %q (%v), want %q", c.name, info.OddColor, err, c.want)
		}
	}
}

func TestPNGMetadata(t *testing.T) {
	exif := chunk("eXIf", tiff(binary.BigEndian, short(binary.BigEndian, tagOrientation, 6), ascii(tagArtist, "From EXIF"))...)
	long := strings.Repeat("y", 10_000)
	for _, c := range []struct {
		name              string
		before, behind    []byte
		copyright, artist string
		orientation       int
	}{
		{"latin text", chunk("tEXt", []byte("Copyright\x00\xa9 Ren\xe9")...), nil, "© René", "", 1},
		{"utf-8 in latin text", chunk("tEXt", []byte("Copyright\x00© 大森")...), nil, "© 大森", "", 1},
		{"packed text", chunk("zTXt", append([]byte("Author\x00\x00"), deflate([]byte("Ren\xe9"))...)...), nil, "", "René", 1},
		{"international text", chunk("iTXt", []byte("Copyright\x00\x00\x00ja\x00x\x00© 大森")...), nil, "© 大森", "", 1},
		{"packed international text", chunk("iTXt", append([]byte("Author\x00\x01\x00\x00\x00"), deflate([]byte("大森"))...)...), nil, "", "大森", 1},
		{"behind the pixels", nil, chunk("tEXt", []byte("Author\x00A")...), "", "A", 1},
		{"exif", exif, nil, "", "From EXIF", 6},
		{"exif behind the pixels does not turn", nil, exif, "", "From EXIF", 1},
		{"the first one counts", join(chunk("tEXt", []byte("Author\x00A")...), chunk("tEXt", []byte("Author\x00B")...)), nil, "", "A", 1},
		{"other keys", chunk("tEXt", []byte("Software\x00karui")...), nil, "", "", 1},
		{"too long", chunk("tEXt", []byte("Copyright\x00"+long)...), nil, long[:maxText], "", 1},
		{"too long once it is UTF-8", chunk("tEXt", []byte("Copyright\x00"+strings.Repeat("\xe9", 4000))...), nil, strings.Repeat("é", maxText/2), "", 1},
		{"packed too long", chunk("zTXt", append([]byte("Copyright\x00\x00"), deflate([]byte(long))...)...), nil, "", "", 1},
		{"no key", chunk("tEXt", []byte("Copyright")...), nil, "", "", 1},
		{"unknown packing", chunk("zTXt", []byte("Copyright\x00\x01xxx")...), nil, "", "", 1},
		{"cut international text", chunk("iTXt", []byte("Copyright\x00\x00\x00ja")...), nil, "", "", 1},
	} {
		info, err := Parse(join([]byte(pngSignature), ihdr(5, 4, 8, 2, 0), c.before, chunk("IDAT", 1), c.behind, chunk("IEND")))
		if err != nil || info.Copyright != c.copyright || info.Artist != c.artist || info.Orientation != c.orientation {
			t.Errorf("%s: copyright %q, artist %q, orientation %d (%v)", c.name, info.Copyright, info.Artist, info.Orientation, err)
		}
	}
	info, err := Parse(smallPNG(chunk("iTXt", []byte("XML:com.adobe.xmp\x00\x00\x00\x00\x00<x/>")...)))
	if err != nil || !info.XMP {
		t.Errorf("xmp %v (%v)", info.XMP, err)
	}
}

func TestPNGTransparency(t *testing.T) {
	info, err := Parse(smallPNG(chunk("tRNS", 0, 1, 0, 2, 0, 3)))
	if err != nil || !info.Alpha {
		t.Errorf("alpha %v (%v)", info.Alpha, err)
	}
}
