package header

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
)

// The builders below make small files by hand, so that each test states the bytes it is about.

func seg(marker byte, data ...byte) []byte {
	n := len(data) + 2
	return append([]byte{0xFF, marker, byte(n >> 8), byte(n)}, data...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

var (
	soi = []byte{0xFF, mSOI}
	eoi = []byte{0xFF, mEOI}
)

// sof makes a frame header; components are given by their ids.
func sof(marker byte, depth, width, height int, ids ...byte) []byte {
	data := []byte{byte(depth), byte(height >> 8), byte(height), byte(width >> 8), byte(width), byte(len(ids))}
	for i, id := range ids {
		data = append(data, id, 0x11, byte(min(i, 1)))
	}
	return seg(marker, data...)
}

// sos makes a scan of the given components with a little data.
func sos(ids ...byte) []byte {
	data := []byte{byte(len(ids))}
	for _, id := range ids {
		data = append(data, id, 0)
	}
	return append(seg(mSOS, append(data, 0, 63, 0)...), 0x12, 0xFF, 0x00, 0x34)
}

// smallJPEG is 8 x 6 px with the given segments before the frame header.
func smallJPEG(extra ...[]byte) []byte {
	return join(soi, join(extra...), sof(0xC0, 8, 8, 6, 1, 2, 3), sos(1, 2, 3), eoi)
}

// byteOrder is binary.LittleEndian or binary.BigEndian.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// tiffField is one entry of an image file directory.
type tiffField struct {
	tag, kind uint16
	count     uint32
	data      []byte // in the order of the block
}

// tiff makes a TIFF block with one directory.
func tiff(order byteOrder, fields ...tiffField) []byte {
	b := []byte("II*\x00\x08\x00\x00\x00")
	if order == byteOrder(binary.BigEndian) {
		b = []byte("MM\x00*\x00\x00\x00\x08")
	}
	b = order.AppendUint16(b, uint16(len(fields)))
	heap, heapAt := []byte(nil), 8+2+12*len(fields)+4
	for _, f := range fields {
		b = order.AppendUint16(b, f.tag)
		b = order.AppendUint16(b, f.kind)
		b = order.AppendUint32(b, f.count)
		if len(f.data) <= 4 {
			b = append(b, f.data...)
			b = append(b, make([]byte, 4-len(f.data))...)
			continue
		}
		b = order.AppendUint32(b, uint32(heapAt+len(heap)))
		heap = append(heap, f.data...)
	}
	b = append(b, 0, 0, 0, 0)
	return append(b, heap...)
}

func short(order byteOrder, tag, value uint16) tiffField {
	return tiffField{tag, 3, 1, order.AppendUint16(nil, value)}
}

func ascii(tag uint16, text string) tiffField {
	return tiffField{tag, 2, uint32(len(text) + 1), append([]byte(text), 0)}
}

func exifSegment(block []byte) []byte {
	return seg(mAPP1, append([]byte("Exif\x00\x00"), block...)...)
}

// profileOf makes an ICC profile of a colour space with the given tags.
func profileOf(space string, tags map[string][]byte) []byte {
	b := make([]byte, iccHeader, 1024)
	copy(b[12:], "mntr"+space+"XYZ ")
	copy(b[36:], "acsp")
	b = binary.BigEndian.AppendUint32(b, uint32(len(tags)))
	at, heap := iccHeader+4+12*len(tags), []byte(nil)
	for name, data := range tags {
		b = append(b, name...)
		b = binary.BigEndian.AppendUint32(b, uint32(at+len(heap)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
		heap = append(heap, data...)
	}
	b = append(b, heap...)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

func xyzTag(x, y, z float64) []byte {
	b := []byte("XYZ \x00\x00\x00\x00")
	for _, v := range [3]float64{x, y, z} {
		b = binary.BigEndian.AppendUint32(b, uint32(int32(v*65536)))
	}
	return b
}

func paraTag(kind uint16, values ...float64) []byte {
	b := []byte("para\x00\x00\x00\x00")
	b = binary.BigEndian.AppendUint16(b, kind)
	b = append(b, 0, 0)
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, uint32(int32(v*65536)))
	}
	return b
}

func curvTag(points ...uint16) []byte {
	b := []byte("curv\x00\x00\x00\x00")
	b = binary.BigEndian.AppendUint32(b, uint32(len(points)))
	for _, p := range points {
		b = binary.BigEndian.AppendUint16(b, p)
	}
	return b
}

func descTag(text string) []byte {
	b := []byte("desc\x00\x00\x00\x00")
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)+1))
	return append(append(b, text...), 0)
}

// matrixProfile makes an RGB profile with one tone curve for all three.
func matrixProfile(name string, colorants [3][3]float64, curve []byte) []byte {
	tags := map[string][]byte{"desc": descTag(name), "rTRC": curve, "gTRC": curve, "bTRC": curve}
	for i, tag := range []string{"rXYZ", "gXYZ", "bXYZ"} {
		tags[tag] = xyzTag(colorants[i][0], colorants[i][1], colorants[i][2])
	}
	return profileOf("RGB ", tags)
}

var srgbCurve = paraTag(3, 2.4, 1/1.055, 0.055/1.055, 1/12.92, 0.04045)

func srgbProfile() []byte { return matrixProfile("anything", srgbColorants, srgbCurve) }

func iccSegment(number, count byte, piece []byte) []byte {
	return seg(mAPP2, append([]byte(iccMark+string([]byte{number, count})), piece...)...)
}

func chunk(kind string, data ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func ihdr(width, height uint32, depth, colour, interlace byte) []byte {
	data := binary.BigEndian.AppendUint32(nil, width)
	data = binary.BigEndian.AppendUint32(data, height)
	return chunk("IHDR", append(data, depth, colour, 0, 0, interlace)...)
}

// smallPNG is 5 x 4 px of RGB with the given chunks before the pixels.
func smallPNG(extra ...[]byte) []byte {
	return join([]byte(pngSignature), ihdr(5, 4, 8, 2, 0), join(extra...), chunk("IDAT", 1, 2, 3), chunk("IEND"))
}

func deflate(data []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, _ = w.Write(data) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// gifScreen begins a GIF with a palette of two colours.
func gifScreen(width, height uint16) []byte {
	b := []byte("GIF89a")
	b = binary.LittleEndian.AppendUint16(b, width)
	b = binary.LittleEndian.AppendUint16(b, height)
	return append(b, 0x80, 0, 0, 0, 0, 0, 255, 255, 255)
}

func gifControl(disposal byte, transparent bool, centiseconds uint16) []byte {
	flags := disposal << 2
	if transparent {
		flags |= 1
	}
	return []byte{'!', 0xF9, 4, flags, byte(centiseconds), byte(centiseconds >> 8), 0, 0}
}

func gifFrame(left, top, width, height uint16) []byte {
	b := []byte{','}
	for _, v := range [4]uint16{left, top, width, height} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return append(b, 0, 2, 2, 0x44, 0x01, 0)
}

func gifLoop(n uint16) []byte {
	return append([]byte("!\xff\x0bNETSCAPE2.0\x03\x01"), byte(n), byte(n>>8), 0)
}

var gifEnd = []byte{';'}
