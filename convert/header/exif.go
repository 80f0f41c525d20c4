package header

import (
	"bytes"
	"encoding/binary"
)

// Tags of IFD0, from the EXIF and TIFF specifications.
const (
	tagOrientation = 0x0112
	tagArtist      = 0x013B
	tagCopyright   = 0x8298
)

// maxText bounds Copyright and Artist, in bytes.
const maxText = 4096

// tiffOrder reads the 8 bytes that EXIF and MPF share with TIFF and returns byte order and offset of the first IFD.
func tiffOrder(b []byte) (order binary.ByteOrder, ifd int64, ok bool) {
	if len(b) < 8 {
		return nil, 0, false
	}
	switch string(b[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return nil, 0, false
	}
	return order, int64(order.Uint32(b[4:])), true
}

// ifdEntry is one field of an image file directory; value points at its data inside the block.
type ifdEntry struct {
	tag, kind uint16
	count     uint32
	value     []byte
}

// Bytes per value, by TIFF type; 0 for types that are unknown.
var typeSize = [...]int64{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8}

// walkIFD calls visit for each entry of the directory at offset ifd whose data lies inside b. It follows no pointer
// but that one, so no loop is possible, and each entry costs the same whatever it claims.
func walkIFD(b []byte, order binary.ByteOrder, ifd int64, visit func(ifdEntry)) {
	if ifd < 8 || ifd+2 > int64(len(b)) {
		return
	}
	entries := int64(order.Uint16(b[ifd:]))
	for i := range entries {
		at := ifd + 2 + 12*i
		if at+12 > int64(len(b)) {
			return
		}
		e := ifdEntry{tag: order.Uint16(b[at:]), kind: order.Uint16(b[at+2:]), count: order.Uint32(b[at+4:])}
		width := int64(1)
		if int(e.kind) < len(typeSize) {
			width = typeSize[e.kind]
		}
		if width == 0 {
			continue
		}
		size, from := width*int64(e.count), at+8
		if size > 4 {
			from = int64(order.Uint32(b[at+8:]))
		}
		if from < 0 || from+size > int64(len(b)) {
			continue
		}
		e.value = b[from : from+size]
		visit(e)
	}
}

// takeEXIF takes orientation, copyright and artist from IFD0 of a TIFF block.
func (i *Info) takeEXIF(b []byte) {
	order, ifd, ok := tiffOrder(b)
	if !ok {
		return
	}
	oriented := false
	walkIFD(b, order, ifd, func(e ifdEntry) {
		switch e.tag {
		case tagOrientation:
			if n, ok := e.number(order); ok && !oriented && n >= 1 && n <= 8 {
				i.Orientation, oriented = int(n), true
			}
		case tagCopyright:
			if i.Copyright == "" {
				i.Copyright = e.text()
			}
		case tagArtist:
			if i.Artist == "" {
				i.Artist = e.text()
			}
		}
	})
}

func (e ifdEntry) number(order binary.ByteOrder) (uint32, bool) {
	switch {
	case e.count < 1:
	case e.kind == 1:
		return uint32(e.value[0]), true
	case e.kind == 3:
		return uint32(order.Uint16(e.value)), true
	case e.kind == 4:
		return order.Uint32(e.value), true
	}
	return 0, false
}

// text takes ASCII, and the types that writers use instead of it: BYTE, UNDEFINED and (EXIF 3) UTF-8.
func (e ifdEntry) text() string {
	switch e.kind {
	case 1, 2, 7, 129:
		return string(bytes.Trim(e.value[:min(len(e.value), maxText)], "\x00 \t\r\n"))
	}
	return ""
}
