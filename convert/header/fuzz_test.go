package header

import (
	"encoding/binary"
	"errors"
	"testing"
)

// seeds are small files of every kind, whole and damaged.
func seeds() [][]byte {
	le, be := binary.LittleEndian, binary.BigEndian
	exif := tiff(be, short(be, tagOrientation, 6), ascii(tagCopyright, "© somebody"), ascii(tagArtist, "A"))
	all := [][]byte{
		nil,
		smallJPEG(),
		smallJPEG(exifSegment(exif), iccSegment(1, 1, srgbProfile()), dqt(80, 80), seg(mDRI, 0, 4)),
		smallJPEG(exifSegment(tiff(le, short(le, tagOrientation, 3))), xmpSegment("http://ns.adobe.com/hdr-gain-map/1.0/")),
		smallJPEG(iccSegment(2, 2, srgbProfile()[200:]), iccSegment(1, 2, srgbProfile()[:200])),
		withPictures(smallJPEG(xmpSegment("urn:com:apple:photo:2020:aux:hdrgainmap")), smallJPEG()),
		join(soi, sof(0xC2, 8, 640, 480, 1, 2, 3, 4), sos(1), sos(2, 3), sos(4), seg(mDNL, 1, 2), eoi),
		join(soi, sof(0xC3, 12, 8, 0, 1), sos(1)),
		smallPNG(),
		smallPNG(chunk("iCCP", append([]byte("p\x00\x00"), deflate(srgbProfile())...)...), chunk("acTL", 0, 0, 0, 2, 0, 0, 0, 0)),
		smallPNG(chunk("eXIf", exif...), chunk("tEXt", []byte("Copyright\x00x")...), chunk("zTXt", append([]byte("Author\x00\x00"), deflate([]byte("y"))...)...)),
		smallPNG(chunk("iTXt", []byte("Author\x00\x00\x00\x00\x00y")...), chunk("gAMA", 0, 1, 2, 3), chunk("cICP", 9, 16, 0, 1), chunk("tRNS", 1)),
		join(gifScreen(10, 8), gifLoop(2), gifControl(wipe, true, 7), gifFrame(1, 1, 5, 5), gifControl(1, false, 0), gifFrame(0, 0, 0, 99), gifEnd),
	}
	for _, c := range sniffCases {
		all = append(all, []byte(c.bytes))
	}
	return all
}

func FuzzSniff(f *testing.F) {
	for _, b := range seeds() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		format := Sniff(b)
		if format != Unknown && SniffMore(b) {
			t.Errorf("known as %v, and wants more", format)
		}
		if len(b) >= SniffLen && SniffMore(b) {
			t.Error("wants more than it looks at")
		}
		_ = HasTrailer(format, b)
	})
}

func FuzzParse(f *testing.F) {
	for _, b := range seeds() {
		f.Add(b, 5)
		f.Add(b[:len(b)*2/3], 100)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole, err := Parse(b)
		check(t, whole, err)
		// Two calls on a growing prefix say the same as one on the whole.
		var s Scanner
		info, first := s.Scan(b[:min(max(cut, 0), len(b))])
		check(t, info, first)
		info, second := s.Scan(b)
		if errors.Is(first, ErrUnsupported) {
			return // a prefix that is known to be no image is not looked at again
		}
		if info != whole || (second == nil) != (err == nil) {
			t.Errorf("cut at %d:\n got %+v (%v)\nwant %+v (%v)", cut, info, second, whole, err)
		}
	})
}

// check holds for every file.
func check(t *testing.T, i Info, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrShort) && !errors.Is(err, ErrBroken) && !errors.Is(err, ErrUnsupported) {
		t.Errorf("error of no kind: %v", err)
	}
	if i.Orientation < 1 || i.Orientation > 8 || i.JPEGQuality < 0 || i.JPEGQuality > 100 || i.Pixels() < 0 ||
		i.Frames < 0 || i.FramesWhole > i.Frames && i.Format == GIF || i.Width < 0 || i.Height < 0 || i.Duration < 0 ||
		len(i.Copyright) > maxText || len(i.Artist) > maxText || len(i.ProfileName) > maxName || i.ProfileSize > maxProfile {
		t.Errorf("%+v", i)
	}
	if err == nil && !i.Format.Convertible() {
		t.Errorf("%v was read", i.Format)
	}
}

func FuzzEXIF(f *testing.F) {
	for _, order := range orders {
		f.Add(tiff(order, short(order, tagOrientation, 6), ascii(tagCopyright, "somebody"), ascii(tagArtist, "A")))
	}
	f.Add([]byte("MM\x00*\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		info := Info{Orientation: 1}
		info.takeEXIF(b)
		check(t, info, ErrShort)
		var m mpfIndex
		m.read(12, b)
		m.gainMap(b)
	})
}

func FuzzProfile(f *testing.F) {
	f.Add(srgbProfile())
	f.Add(matrixProfile("c2", srgbColorants, sampledSRGB(26)))
	f.Add(matrixProfile("g", adobeRGB, curvTag(563)))
	f.Add(matrixProfile("p0", displayP3, paraTag(0, 2.2)))
	f.Add(matrixProfile("p1", displayP3, paraTag(1, 2.2, 1, 0)))
	f.Add(matrixProfile("p2", displayP3, paraTag(2, 2.2, 1, 0, 0)))
	f.Add(matrixProfile("p4", displayP3, paraTag(4, 2.2, 1, 0, 0, 0, 0, 0)))
	f.Add(profileOf("GRAY", nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		info := Info{Orientation: 1}
		info.takeProfile(b, true)
		check(t, info, ErrShort)
		_, _ = unpackProfile(b)
	})
}
