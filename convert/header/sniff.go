package header

import (
	"bytes"
	"encoding/binary"
)

// SniffLen is the number of leading bytes that [Sniff] looks at. All formats but SVG are told by the first 64 at
// most; an SVG may stand behind a prolog with comments and entity declarations.
const SniffLen = 4096

// Sniff tells the format by magic bytes alone, never by a name or a declared type. It returns [Unknown] for
// everything else and for a prefix that is too short to tell (see [SniffMore]).
func Sniff(prefix []byte) Format {
	b := prefix[:min(len(prefix), SniffLen)]
	switch {
	case has(b, "\xff\xd8\xff"):
		return JPEG
	case has(b, pngSignature):
		return PNG
	case has(b, "GIF87a"), has(b, "GIF89a"):
		return GIF
	case has(b, "RIFF") && len(b) >= 12 && string(b[8:12]) == "WEBP":
		return WebP
	case has(b, "\xff\x0a"), has(b, "\x00\x00\x00\x0cJXL \x0d\x0a\x87\x0a"):
		return JXL
	case has(b, "II*\x00"), has(b, "MM\x00*"), has(b, "II+\x00"), has(b, "MM\x00+"):
		return TIFF
	case has(b, "%PDF-"):
		return PDF
	case len(b) >= 12 && string(b[4:8]) == "ftyp":
		return sniffBrands(b)
	case sniffBMP(b):
		return BMP
	}
	if svg, _ := sniffSVG(b); svg {
		return SVG
	}
	return Unknown
}

// SniffMore reports whether bytes after this prefix may still turn [Unknown] into a format. A caller that waits
// while it says true waits for [SniffLen] bytes at most.
func SniffMore(prefix []byte) bool {
	if len(prefix) >= SniffLen || Sniff(prefix) != Unknown {
		return false
	}
	if len(prefix) < 30 {
		for _, magic := range magics {
			n := min(len(prefix), len(magic))
			if string(prefix[:n]) == magic[:n] {
				return true
			}
		}
		if len(prefix) < 12 && (len(prefix) <= 4 || has([]byte("ftyp"), string(prefix[4:min(len(prefix), 8)]))) {
			return true
		}
	}
	_, more := sniffSVG(prefix)
	return more
}

// The beginnings that are shorter than what Sniff needs to be sure.
var magics = [...]string{
	"\xff\xd8\xff", pngSignature, "GIF87a", "GIF89a", "RIFF", "\x00\x00\x00\x0cJXL \x0d\x0a\x87\x0a",
	"II*\x00", "MM\x00*", "II+\x00", "MM\x00+", "%PDF-", "BM",
}

const pngSignature = "\x89PNG\r\n\x1a\n"

func has(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// sniffBrands reads an ISO media file's ftyp box. A brand that names a codec wins over the structural ones (mif1,
// msf1, miaf), which both codecs use, wherever it stands in the list; the major brand is looked at first.
func sniffBrands(b []byte) Format {
	box := b[8:]
	if size := binary.BigEndian.Uint32(b); size >= 16 && int64(size) < int64(len(b)) {
		box = b[8:size]
	}
	structural := false
	for i := 0; i+4 <= len(box) && i < 4*32; i += 4 {
		if i == 4 {
			continue // the minor version, a number
		}
		switch string(box[i : i+4]) {
		case "avif", "avis":
			return AVIF
		case "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs":
			return HEIC
		case "mif1", "msf1", "mif2":
			structural = true
		}
	}
	if structural {
		return HEIC
	}
	return Unknown
}

func sniffBMP(b []byte) bool {
	if len(b) < 18 || !has(b, "BM") {
		return false
	}
	switch binary.LittleEndian.Uint32(b[14:]) { // size of the information header, one per version
	case 12, 16, 40, 52, 56, 64, 108, 124:
		return true
	}
	return false
}

// sniffSVG skips what may stand before the root element of an XML document and looks at its name. More says that
// the prefix ended before the root element did.
func sniffSVG(b []byte) (svg, more bool) {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	for {
		b = bytes.TrimLeft(b, " \t\r\n")
		end := ""
		switch {
		case len(b) < 4 && (has([]byte("<?"), string(b)) || has([]byte("<!--"), string(b)) || has(b, "<!") || has(b, "<?")):
			return false, true
		case has(b, "<?"):
			end = "?>"
		case has(b, "<!--"):
			end = "-->"
		case has(b, "<!"):
			rest, ok := skipDoctype(b)
			if !ok {
				return false, true
			}
			b = rest
			continue
		case has(b, "<"):
			return rootIsSVG(b[1:])
		default:
			return false, len(b) == 0
		}
		i := bytes.Index(b, []byte(end))
		if i < 0 {
			return false, true
		}
		b = b[i+len(end):]
	}
}

// skipDoctype steps over <!DOCTYPE ...> with an internal subset in brackets and quoted strings inside.
func skipDoctype(b []byte) (rest []byte, ok bool) {
	depth := 0
	var quote byte
	for i, c := range b {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '<':
			depth++
		case c == '>':
			if depth--; depth == 0 {
				return b[i+1:], true
			}
		}
	}
	return nil, false
}

func rootIsSVG(b []byte) (svg, more bool) {
	i := bytes.IndexAny(b, " \t\r\n/>")
	if i < 0 {
		return false, len(b) < 64
	}
	name := b[:i]
	if colon := bytes.LastIndexByte(name, ':'); colon >= 0 {
		name = name[colon+1:]
	}
	return string(name) == "svg", false
}
