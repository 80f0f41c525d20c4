package convert

import (
	"encoding/binary"
	"hash/crc32"
)

// preparePNG drops the chunks of a PNG that are not needed for its pixels, so that no library unpacks or reads them:
// texts (which can be small and unpack to hundreds of megabytes), times, previews, private chunks, and the profile
// unless profile is set. An orientation other than 1 stays as an eXIf chunk with nothing else in it. It overwrites
// src and returns what is left; what is no chunk is kept as it is, for the decoder to find.
func preparePNG(src []byte, orientation int, profile bool) []byte {
	const signature = 8
	if len(src) < signature {
		return src
	}
	out, pos := src[:signature], signature
	for len(src)-pos >= 12 {
		n := int64(binary.BigEndian.Uint32(src[pos:]))
		if n > int64(len(src)-pos-12) {
			break
		}
		chunk := src[pos : pos+12+int(n)]
		pos += len(chunk)
		switch kind := string(chunk[4:8]); {
		case kind[0]&0x20 == 0, kind == "tRNS", kind == "iCCP" && profile: // critical chunks have a capital letter
			out = append(out, chunk...)
		case kind == "eXIf" && orientation > 1:
			if n >= orientationLen-exifPrefix {
				out = appendChunk(out, kind, orientationEXIF(orientation)[exifPrefix:])
			} else {
				out = append(out, chunk...)
			}
		}
	}
	return append(out, src[pos:]...)
}

func appendChunk(out []byte, kind string, data []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
	sum := crc32.NewIEEE()
	_, _ = sum.Write([]byte(kind))
	_, _ = sum.Write(data)
	out = append(append(out, kind...), data...)
	return binary.BigEndian.AppendUint32(out, sum.Sum32())
}
