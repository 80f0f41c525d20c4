package header

import (
	"bytes"
	"encoding/binary"
)

// Marks of segments and names in XMP.
const (
	xmpMark          = "http://ns.adobe.com/xap/1.0/\x00"
	xmpExtensionMark = "http://ns.adobe.com/xmp/extension/\x00"
	// ISO 21496-1 marks both the picture that has a gain map and the gain map itself.
	isoGainMapMark = "urn:iso:std:iso:ts:21496:-1\x00"
)

var (
	xmpAdobeGainMap    = []byte("http://ns.adobe.com/hdr-gain-map/1.0/")
	xmpGoogleContainer = []byte("http://ns.google.com/photos/1.0/container/")
	xmpGainMapItem     = []byte("GainMap")
	xmpAppleGainMap    = []byte("urn:com:apple:photo:2020:aux:hdrgainmap")
)

// gainMapInXMP looks for the three vocabularies. The Google container alone is not one: motion photos and depth maps
// use it too.
func gainMapInXMP(xmp []byte) bool {
	return bytes.Contains(xmp, xmpAdobeGainMap) ||
		bytes.Contains(xmp, xmpGoogleContainer) && bytes.Contains(xmp, xmpGainMapItem) ||
		bytes.Contains(xmp, xmpAppleGainMap)
}

// maxPictures bounds how many further pictures of an MPF index are looked at. Cameras write two or three.
const maxPictures = 16

// mpfIndex is what a Multi-Picture Format segment (CIPA DC-007) says about where the further pictures begin.
type mpfIndex struct {
	start  [maxPictures]int64 // in the file
	n      int
	looked int // these were looked at: none is a gain map
	at     int // how far the next one was read
}

// read takes the offsets from the segment's TIFF block, which begins at byte base of the file: they count from there.
func (m *mpfIndex) read(base int, b []byte) {
	const (
		tagEntries = 0xB002
		entrySize  = 16
	)
	order, ifd, ok := tiffOrder(b)
	if !ok {
		return
	}
	walkIFD(b, order, ifd, func(e ifdEntry) {
		if e.tag != tagEntries {
			return
		}
		for v := e.value; len(v) >= entrySize && m.n < len(m.start); v = v[entrySize:] {
			// The first picture has offset 0, whatever it is.
			if offset := int64(order.Uint32(v[8:])); offset != 0 {
				m.start[m.n] = int64(base) + offset
				m.n++
			}
		}
	})
}

// gainMap looks at the pictures that b holds so far; pending says that some begin, or have their header, beyond it.
func (m *mpfIndex) gainMap(b []byte) (found, pending bool) {
	for ; m.looked < m.n; m.looked++ {
		start := m.start[m.looked]
		if start >= int64(len(b)) {
			return false, true
		}
		found, short := m.isGainMap(b[start:])
		if found || short {
			return found, short
		}
		m.at = 0
	}
	return false, false
}

// isGainMap reads the segments before the first scan of a further picture, from where the last call stopped.
func (m *mpfIndex) isGainMap(b []byte) (found, short bool) {
	if n := min(len(b), 3); string(b[:n]) != "\xff\xd8\xff"[:n] {
		return false, false
	}
	for m.at = max(m.at, len("\xff\xd8")); ; {
		if m.at+4 > len(b) {
			return false, true
		}
		head := b[m.at:]
		if head[0] != 0xFF || head[1] == mSOS || head[1] == mEOI {
			return false, false
		}
		end := 2 + int(binary.BigEndian.Uint16(head[2:]))
		if end < 4 {
			return false, false
		}
		if end > len(head) {
			return false, true
		}
		data := head[4:end]
		switch head[1] {
		case mAPP1:
			if has(data, xmpMark) && gainMapInXMP(data) {
				return true, false
			}
		case mAPP2:
			if has(data, isoGainMapMark) {
				return true, false
			}
		}
		m.at += end
	}
}
