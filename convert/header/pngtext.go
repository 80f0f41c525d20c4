package header

import (
	"bytes"
	"compress/zlib"
	"io"
	"strings"
	"unicode/utf8"
)

// maxInflations bounds how many compressed texts of one file are unpacked, so that a million bad ones cost nothing.
const maxInflations = 4

// unpackProfile reads an iCCP chunk: a name, a zero, the method, and a zlib stream.
func unpackProfile(data []byte) (profile []byte, ok bool) {
	name := bytes.IndexByte(data, 0)
	if name < 0 || name+2 > len(data) || data[name+1] != 0 {
		return nil, false
	}
	profile, err := inflate(data[name+2:], maxProfile)
	return profile, err == nil
}

// inflate unpacks a zlib stream of at most limit bytes; what is longer is an error. A wrong checksum at its end is
// not: decoders let it pass.
func inflate(data []byte, limit int64) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(out)) > limit {
		return nil, io.ErrShortBuffer
	}
	if err == zlib.ErrChecksum {
		err = nil
	}
	return out, err
}

// text takes Copyright and Author out of a tEXt, zTXt or iTXt chunk, and notes XMP.
func (s *Scanner) text(kind string, data []byte) {
	key, rest, ok := bytes.Cut(data[:min(len(data), maxPNGChunk)], []byte{0})
	if !ok {
		return
	}
	var field *string
	switch string(key) {
	case "XML:com.adobe.xmp":
		s.info.XMP = true
		return
	case "Copyright":
		field = &s.info.Copyright
	case "Author":
		field = &s.info.Artist
	default:
		return
	}
	if *field != "" {
		return
	}
	packed, latin := false, true
	switch kind {
	case "zTXt":
		if len(rest) < 1 || rest[0] != 0 {
			return
		}
		packed, rest = true, rest[1:]
	case "iTXt":
		if len(rest) < 2 || rest[0] > 1 || rest[1] != 0 {
			return
		}
		packed, latin = rest[0] == 1, false
		_, rest, _ = bytes.Cut(rest[2:], []byte{0}) // language
		_, rest, ok = bytes.Cut(rest, []byte{0})    // translated key
		if !ok {
			return
		}
	}
	if packed {
		if s.png.inflated++; s.png.inflated > maxInflations {
			return
		}
		unpacked, err := inflate(rest, maxText)
		if err != nil {
			return
		}
		rest = unpacked
	}
	*field = textOf(rest[:min(len(rest), maxText)], latin)
}

// textOf returns valid UTF-8. The standard has tEXt in Latin-1, but many write UTF-8 there.
func textOf(b []byte, latin bool) string {
	if latin && !utf8.Valid(b) {
		runes := make([]rune, len(b))
		for i, c := range b {
			runes[i] = rune(c)
		}
		b = []byte(string(runes))
	}
	b = b[:min(len(b), maxText)] // Latin-1 has grown
	return strings.Trim(strings.ToValidUTF8(string(b), ""), "\x00 \t\r\n")
}
