package picture

import (
	"bytes"
	"encoding/binary"
)

// jpegFacts reads a JPEG's EXIF orientation, colour profile and number of components.
func jpegFacts(b []byte) (orientation int, profile []byte, components int) {
	orientation = 1
	for at := 2; at+4 <= len(b) && b[at] == 0xff; {
		marker, n := b[at+1], int(binary.BigEndian.Uint16(b[at+2:]))
		if marker == 0xff {
			at++
			continue
		}
		if marker == 0xda || at+2+n > len(b) || n < 2 {
			break
		}
		data := b[at+4 : at+2+n]
		switch {
		case marker == 0xe1 && bytes.HasPrefix(data, []byte("Exif\x00\x00")):
			if tags := EXIFTags(data[6:]); tags[0x0112] >= 1 && tags[0x0112] <= 8 {
				orientation = int(tags[0x0112])
			}
		case marker == 0xe2 && bytes.HasPrefix(data, []byte("ICC_PROFILE\x00")) && len(data) > 14:
			profile = append(profile, data[14:]...)
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc && len(data) > 5:
			components = int(data[5])
		}
		at += 2 + n
	}
	return orientation, profile, components
}

// EXIFTags reads the tags of the first folder and of the EXIF folder below it,
// with the value where it is a short number.
func EXIFTags(b []byte) map[uint16]uint32 {
	tags := map[uint16]uint32{}
	if len(b) < 8 {
		return tags
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	next := []uint32{order.Uint32(b[4:])}
	for range 2 {
		if len(next) == 0 || uint64(next[0])+2 > uint64(len(b)) {
			return tags
		}
		at := int(next[0])
		next = next[1:]
		for n := int(order.Uint16(b[at:])); n > 0; n-- {
			e := at + 2 + 12*(n-1)
			if e+12 > len(b) {
				continue
			}
			tag, value := order.Uint16(b[e:]), order.Uint32(b[e+8:])
			if order.Uint16(b[e+2:]) == 3 {
				value = uint32(order.Uint16(b[e+8:]))
			}
			tags[tag] = value
			if tag == 0x8769 {
				next = append(next, value)
			}
		}
	}
	return tags
}
