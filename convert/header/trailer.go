package header

import "bytes"

// TrailerLen is how many of the last bytes of a body [HasTrailer] wants to see.
const TrailerLen = 64

// HasTrailer reports whether a body that ends with tail ends with its format's own end marker (followed by nothing
// but padding): for bodies that came without a length, where a cut-off looks like an end. It is false for formats
// that have none.
func HasTrailer(f Format, tail []byte) bool {
	end := ""
	switch f {
	case JPEG:
		end = "\xff\xd9"
	case PNG:
		end = "\x00\x00\x00\x00IEND\xae\x42\x60\x82"
	case GIF:
		end = "\x00;" // the terminator of the last block and the trailer: one byte alone is there by chance too often
	case SVG:
		end = "</svg>"
	case PDF:
		end = "%%EOF"
	default:
		return false
	}
	return bytes.HasSuffix(bytes.TrimRight(tail, "\x00\r\n\t "), []byte(end))
}
