package convert

import "encoding/binary"

const (
	tagArtist    = 0x013B
	tagCopyright = 0x8298
	typeASCII    = 2
)

// copyrightEXIF makes an EXIF block with these two texts and nothing else, as the content of WebP's EXIF chunk: a
// TIFF file with one directory. Empty texts are left out; nil when both are.
func copyrightEXIF(artist, copyright []byte) []byte {
	type entry struct {
		tag  uint16
		text []byte
	}
	var entries []entry
	for _, e := range []entry{{tagArtist, artist}, {tagCopyright, copyright}} { // in rising order, as TIFF wants it
		if len(e.text) > 0 {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	le := binary.LittleEndian
	b := []byte("II*\x00\x08\x00\x00\x00")
	b = le.AppendUint16(b, uint16(len(entries)))
	at := len(b) + 12*len(entries) + 4
	var texts []byte
	for _, e := range entries {
		n := len(e.text) + 1 // with its final NUL
		b = le.AppendUint16(b, e.tag)
		b = le.AppendUint16(b, typeASCII)
		b = le.AppendUint32(b, uint32(n))
		if n <= 4 { // a short text stands in the entry itself
			var value [4]byte
			copy(value[:], e.text)
			b = append(b, value[:]...)
			continue
		}
		b = le.AppendUint32(b, uint32(at+len(texts)))
		texts = append(append(texts, e.text...), 0)
		if len(texts)&1 != 0 {
			texts = append(texts, 0)
		}
	}
	b = le.AppendUint32(b, 0) // no further directory
	return append(b, texts...)
}

const (
	// exifPrefix is the length of "Exif\0\0", which stands before the TIFF file in a JPEG and not in a PNG.
	exifPrefix = 6
	// orientationLen is the length of what orientationEXIF returns.
	orientationLen = exifPrefix + 8 + 2 + 12 + 4
)

// orientationEXIF is the EXIF block of a JPEG that states an orientation (2..8) and nothing else.
func orientationEXIF(orientation int) []byte {
	return []byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00" +
		string([]byte{byte(orientation)}) + "\x00\x00\x00\x00\x00\x00\x00")
}
