package header

import (
	"encoding/binary"
	"strings"
	"testing"
)

var orders = map[string]byteOrder{"little": binary.LittleEndian, "big": binary.BigEndian}

func TestEXIF(t *testing.T) {
	for name, order := range orders {
		for o := uint16(1); o <= 8; o++ {
			info, err := Parse(smallJPEG(exifSegment(tiff(order,
				ascii(0x010F, "Maker"),
				short(order, tagOrientation, o),
				ascii(tagArtist, "A. Ōmori"),
				ascii(tagCopyright, "© 2026 A. Ōmori\x00Editor"),
			))))
			if err != nil || info.Orientation != int(o) || !info.EXIF {
				t.Errorf("%s: orientation %d is read as %d (%v)", name, o, info.Orientation, err)
			}
			if info.Artist != "A. Ōmori" || info.Copyright != "© 2026 A. Ōmori\x00Editor" {
				t.Errorf("%s: artist %q, copyright %q", name, info.Artist, info.Copyright)
			}
			w, h := info.Upright()
			if turned := o >= 5; turned != (w == 6 && h == 8) {
				t.Errorf("orientation %d: upright %d x %d", o, w, h)
			}
		}
	}
}

func TestEXIFOddities(t *testing.T) {
	le := binary.LittleEndian
	far := tiff(le, short(le, tagOrientation, 6))
	le.PutUint32(far[4:], 0xFFFFFFF0)
	inside := tiff(le, short(le, tagOrientation, 6))
	le.PutUint32(inside[4:], 2) // a directory that overlaps the header
	many := tiff(le, short(le, tagOrientation, 6))
	le.PutUint16(many[8:], 0xFFFF) // more entries than there are
	loop := tiff(le, short(le, tagOrientation, 6))
	le.PutUint32(loop[8+2+12:], 8) // the next directory is the same one
	for _, c := range []struct {
		name  string
		block []byte
		want  int
	}{
		{"none stated", tiff(le, ascii(0x010F, "Maker")), 1},
		{"zero", tiff(le, short(le, tagOrientation, 0)), 1},
		{"nine", tiff(le, short(le, tagOrientation, 9)), 1},
		{"as LONG", tiff(le, tiffField{tagOrientation, 4, 1, []byte{8, 0, 0, 0}}), 8},
		{"as BYTE", tiff(le, tiffField{tagOrientation, 1, 1, []byte{3}}), 3},
		{"as a text", tiff(le, ascii(tagOrientation, "6")), 1},
		{"of an unknown type", tiff(le, tiffField{tagOrientation, 99, 1, []byte{6}}), 1},
		{"count of zero", tiff(le, tiffField{tagOrientation, 3, 0, []byte{6, 0}}), 1},
		{"value beyond the block", tiff(le, tiffField{tagOrientation, 3, 1 << 31, []byte{6, 0}}), 1},
		{"first valid one counts", tiff(le, short(le, tagOrientation, 0), short(le, tagOrientation, 5), short(le, tagOrientation, 6)), 5},
		{"directory far away", far, 1},
		{"directory in the header", inside, 1},
		{"more entries than bytes", many, 6},
		{"directory in a loop", loop, 6},
		{"no directory", []byte("II*\x00"), 1},
		{"neither order", []byte("XX*\x00\x08\x00\x00\x00"), 1},
		{"empty", nil, 1},
	} {
		info, err := Parse(smallJPEG(exifSegment(c.block)))
		if err != nil || info.Orientation != c.want {
			t.Errorf("%s: %d (%v), want %d", c.name, info.Orientation, err, c.want)
		}
	}
}

func TestEXIFLongText(t *testing.T) {
	info, err := Parse(smallJPEG(exifSegment(tiff(binary.BigEndian, ascii(tagCopyright, strings.Repeat("x", 20_000))))))
	if err != nil || len(info.Copyright) != maxText {
		t.Errorf("%d bytes of copyright (%v)", len(info.Copyright), err)
	}
}
