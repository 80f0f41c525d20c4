package header

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf16"
)

// iccMark begins an APP2 segment with a piece of a profile; the number of the piece and their count follow.
const iccMark = "ICC_PROFILE\x00"

// maxProfile bounds an embedded profile, in bytes. Printers' profiles reach 3 MiB.
const maxProfile = 4 << 20

// iccPieces collects where the pieces of a profile lie in a JPEG file.
type iccPieces struct {
	piece  []struct{ at, size int } // by number less one; size -1 for those not seen
	broken bool
	seen   int
}

// add notes the piece in a segment's data, which begins at byte at of the file. The rules are those of libjpeg
// (jpeg_read_icc_profile): all pieces name the same count, each comes once.
func (p *iccPieces) add(at int, data []byte) {
	head := len(iccMark) + 2
	if len(data) < head || p.broken {
		p.broken = true
		return
	}
	number, count := int(data[head-2]), int(data[head-1])
	if p.piece == nil {
		p.piece = make([]struct{ at, size int }, count)
		for i := range p.piece {
			p.piece[i].size = -1
		}
	}
	if count != len(p.piece) || number < 1 || number > count || p.piece[number-1].size >= 0 {
		p.broken = true
		return
	}
	p.piece[number-1].at, p.piece[number-1].size = at+head, len(data)-head
	p.seen++
}

// join returns the whole profile out of the file b: nil and true without one, nil and false when it is not whole.
func (p *iccPieces) join(b []byte) (profile []byte, ok bool) {
	if p.piece == nil && !p.broken {
		return nil, true
	}
	if p.broken || p.seen != len(p.piece) {
		return nil, false
	}
	if len(p.piece) == 1 {
		return b[p.piece[0].at : p.piece[0].at+p.piece[0].size], true
	}
	size := 0
	for _, piece := range p.piece {
		size += piece.size
	}
	if size > maxProfile {
		return nil, false
	}
	profile = make([]byte, 0, size)
	for _, piece := range p.piece {
		profile = append(profile, b[piece.at:piece.at+piece.size]...)
	}
	return profile, true
}

// takeProfile classifies an embedded profile; ok false means that one is there but could not be unpacked.
func (i *Info) takeProfile(b []byte, ok bool) {
	if b == nil && ok {
		return
	}
	i.Profile, i.ProfileSize = ProfileBroken, len(b)
	p, valid := newProfile(b)
	if !ok || !valid {
		return
	}
	i.ProfileName = p.description()
	switch p.space() {
	case "GRAY":
		i.Profile = ProfileGray
	case "CMYK":
		i.Profile = ProfileCMYK
	case "RGB ":
		i.Profile = ProfileWide
		i.ProfileMatrix = p.isMatrix()
		if i.ProfileMatrix && p.isSRGB() {
			i.Profile = ProfileSRGB
		}
	}
}

// iccProfile is a profile with a valid header (ICC.1:2022, 7.2) and a tag table inside its bounds.
type iccProfile struct {
	b    []byte
	tags int
}

const (
	iccHeader = 128
	// maxTags bounds the tag table; real profiles have some 10 to 60 tags.
	maxTags = 512
)

func newProfile(b []byte) (iccProfile, bool) {
	if len(b) < iccHeader+4 || string(b[36:40]) != "acsp" {
		return iccProfile{}, false
	}
	// A profile that is longer than it says is cut to size, as colour engines do; one that is shorter is not whole.
	size := int64(binary.BigEndian.Uint32(b))
	if size < iccHeader+4 || size > int64(len(b)) {
		return iccProfile{}, false
	}
	b = b[:size]
	tags := int64(binary.BigEndian.Uint32(b[iccHeader:]))
	if tags > maxTags || iccHeader+4+12*tags > size {
		return iccProfile{}, false
	}
	return iccProfile{b: b, tags: int(tags)}, true
}

func (p iccProfile) space() string { return string(p.b[16:20]) }

// tag returns the data of the first tag with this signature, nil without one.
func (p iccProfile) tag(signature string) []byte {
	for i := range p.tags {
		entry := p.b[iccHeader+4+12*i:]
		if string(entry[:4]) != signature {
			continue
		}
		from, size := int64(binary.BigEndian.Uint32(entry[4:])), int64(binary.BigEndian.Uint32(entry[8:]))
		if from+size > int64(len(p.b)) {
			return nil
		}
		return p.b[from : from+size]
	}
	return nil
}

// isMatrix: colour engines prefer look-up tables where both are there.
func (p iccProfile) isMatrix() bool {
	for _, lut := range [...]string{"A2B0", "A2B1", "A2B2", "D2B0", "D2B1"} {
		if p.tag(lut) != nil {
			return false
		}
	}
	return p.tag("rXYZ") != nil && p.tag("gXYZ") != nil && p.tag("bXYZ") != nil && p.tag("rTRC") != nil
}

// The colorants of sRGB adapted to D50, X Y Z for red, green, blue, as the sRGB profiles of the ICC state them.
var srgbColorants = [3][3]float64{{0.4361, 0.2225, 0.0139}, {0.3851, 0.7169, 0.0971}, {0.1431, 0.0606, 0.7141}}

const (
	// colorantTolerance lets the roundings of different makers pass; Display P3 is 0.08 away, Adobe RGB 0.17.
	colorantTolerance = 0.003
	// curveTolerance is two steps of 8 bits, in encoded values: small profiles state the curve by few points.
	curveTolerance = 2.0 / 255
)

// isSRGB compares primaries and tone curves, not names: profiles without a name or with "c2" for one are sRGB, and
// one called "sRGB" may have been edited.
func (p iccProfile) isSRGB() bool {
	for c, names := range [3][2]string{{"rXYZ", "rTRC"}, {"gXYZ", "gTRC"}, {"bXYZ", "bTRC"}} {
		xyz := p.tag(names[0])
		if len(xyz) < 20 || string(xyz[:4]) != "XYZ " {
			return false
		}
		for k := range 3 {
			if math.Abs(fixed(xyz[8+4*k:])-srgbColorants[c][k]) > colorantTolerance {
				return false
			}
		}
		if !isSRGBCurve(p.tag(names[1])) {
			return false
		}
	}
	return true
}

// fixed reads an s15Fixed16Number.
func fixed(b []byte) float64 { return float64(int32(binary.BigEndian.Uint32(b))) / 65536 }

// maxName bounds ProfileName, in bytes.
const maxName = 128

// description reads the 'desc' tag in its two forms, plain (version 2) and localized (version 4, first language).
func (p iccProfile) description() string {
	tag := p.tag("desc")
	if len(tag) < 12 {
		return ""
	}
	var text string
	switch string(tag[:4]) {
	case "desc":
		n := int64(binary.BigEndian.Uint32(tag[8:]))
		text = string(tag[12:min(12+n, int64(len(tag)), 12+maxName)])
	case "mluc":
		if len(tag) < 28 || binary.BigEndian.Uint32(tag[8:]) == 0 {
			return ""
		}
		n, from := int64(binary.BigEndian.Uint32(tag[20:])), int64(binary.BigEndian.Uint32(tag[24:]))
		if from+n > int64(len(tag)) {
			return ""
		}
		raw := tag[from : from+min(n, 2*maxName)]
		units := make([]uint16, len(raw)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(raw[2*i:])
		}
		text = string(utf16.Decode(units))
	}
	text, _, _ = strings.Cut(text, "\x00")
	text = strings.TrimSpace(strings.ToValidUTF8(text, "?"))
	return strings.ToValidUTF8(text[:min(len(text), maxName)], "")
}
