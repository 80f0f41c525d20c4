package convert

import (
	"bytes"
	"errors"
	"fmt"
)

// Defects of an original that make its decoded picture one that its author never saw.
var (
	errCut    = errors.New("cut off")
	errDamage = errors.New("damaged")
)

// prepareJPEG makes a JPEG ready for a decoder that takes every warning for damage. It overwrites src, may append up
// to 2 bytes to it, and returns what is left.
//
// It makes two harmless oddities readable, and finds the cut-off files that would decode without a warning:
//
//   - the scan header of a sequential JPEG states a spectral range that does not matter there (Samsung writes zeros);
//   - the end marker is missing, and everything before it is there.
//
// It drops what is not needed for the pixels (EXIF, XMP, IPTC, comments, thumbnails, and the profile unless profile is
// set), so that no library reads it; an orientation other than 1 stays as an EXIF block with nothing else in it.
//
// The entropy-coded data is stepped over: damage in there is for the decoder to find. The error is errCut or
// errDamage.
func prepareJPEG(src []byte, orientation int, profile bool) ([]byte, error) {
	if len(src) < 2 {
		return nil, fmt.Errorf("%w: %d bytes", errCut, len(src))
	}
	r := jpegReader{
		b: src, out: src[:2], orientation: orientation, profile: profile,
		seen: make(map[byte]bool), left: make(map[byte]*[64]byte),
	}
	r.walk()
	if r.ended {
		return r.out, r.missing(errDamage, false)
	}
	if r.arithmetic {
		// The arithmetic decoder makes up data behind the end, without a warning.
		return nil, fmt.Errorf("%w: no end marker", errCut)
	}
	if err := r.missing(errCut, true); err != nil {
		return nil, err
	}
	return append(r.out, 0xff, 0xd9), nil
}

type jpegReader struct {
	b   []byte
	out []byte // what is kept, over the beginning of b
	pos int    // up to where b was dealt with

	orientation int
	profile     bool

	ended                   bool // the end marker was seen
	progressive, arithmetic bool
	components              []byte // ids; nil before the frame header
	seen                    map[byte]bool
	// left holds for each component of a progressive JPEG and each coefficient how many low bits are still to come;
	// 255 for coefficients of which nothing came.
	left map[byte]*[64]byte
}

// keep moves everything up to end to the output.
func (r *jpegReader) keep(end int) {
	r.out = append(r.out, r.b[r.pos:end]...)
	r.pos = end
}

// walk goes from marker to marker. What is no marker where one should be is left to the decoder.
func (r *jpegReader) walk() {
	r.pos = 2
	for at := r.next(2); at >= 0; {
		marker, start := r.b[at], at-1
		at++
		if marker == 0xd9 {
			r.keep(at)
			r.ended = true
			return
		}
		if marker == 0xd8 || marker == 0x01 { // without a length
			at = r.next(at)
			continue
		}
		if at+2 > len(r.b) {
			break
		}
		n := int(r.b[at])<<8 | int(r.b[at+1])
		if n < 2 || at+n > len(r.b) {
			break
		}
		r.segment(marker, start, at+2, at+n)
		at = r.next(at + n)
	}
	r.keep(len(r.b))
}

// next finds the next marker at or behind pos, and returns the place of its second byte; -1 without any. Stuffed
// zeros and restart markers are entropy-coded data.
func (r *jpegReader) next(pos int) int {
	for pos+1 < len(r.b) {
		if r.b[pos] != 0xff {
			skip := bytes.IndexByte(r.b[pos:], 0xff)
			if skip < 0 {
				return -1
			}
			pos += skip
			continue
		}
		switch m := r.b[pos+1]; {
		case m == 0xff:
			pos++ // fill byte
		case m == 0x00, m >= 0xd0 && m <= 0xd7:
			pos += 2
		default:
			return pos + 1
		}
	}
	return -1
}

// segment deals with one marker segment, whose marker begins at start and whose content is from body to end.
func (r *jpegReader) segment(marker byte, start, body, end int) {
	content := r.b[body:end]
	switch {
	case marker == 0xc0, marker == 0xc1, marker == 0xc2, marker == 0xc9, marker == 0xca:
		r.frame(marker, content)
	case marker == 0xda:
		r.scan(content)
	case marker == 0xe1 && r.orientation > 1 && bytes.HasPrefix(content, []byte("Exif\x00")) && len(content) >= orientationLen:
		r.keep(start)
		r.out = append(r.out, 0xff, 0xe1, 0, orientationLen+2)
		r.out = append(r.out, orientationEXIF(r.orientation)...)
		r.orientation = 1
		r.pos = end
		return
	case marker == 0xe0, marker == 0xee: // JFIF and Adobe say what the components mean
	case marker == 0xe2 && r.profile && bytes.HasPrefix(content, []byte("ICC_PROFILE\x00")):
	case marker >= 0xe1 && marker <= 0xef, marker == 0xfe:
		r.keep(start)
		r.pos = end
		return
	}
	r.keep(end)
}

func (r *jpegReader) frame(marker byte, content []byte) {
	if r.components != nil || len(content) < 6 || len(content) < 6+3*int(content[5]) {
		return
	}
	r.arithmetic = marker >= 0xc9
	r.progressive = marker == 0xc2 || marker == 0xca
	r.components = []byte{}
	for i := range int(content[5]) {
		id := content[6+3*i]
		r.components = append(r.components, id)
		var left [64]byte
		for k := range left {
			left[k] = 255
		}
		r.left[id] = &left
	}
}

func (r *jpegReader) scan(content []byte) {
	if r.components == nil || len(content) < 1 || len(content) < 4+2*int(content[0]) {
		return
	}
	n := int(content[0])
	tail := content[1+2*n:]
	if !r.progressive {
		tail[0], tail[1], tail[2] = 0, 63, 0
	}
	from, to, low := int(tail[0]), int(tail[1]), tail[2]&0x0f
	for i := range n {
		id := content[1+2*i]
		r.seen[id] = true
		left := r.left[id]
		if left == nil || !r.progressive {
			continue
		}
		for k := from; k <= to && k < len(left); k++ {
			left[k] = low
		}
	}
}

// missing reports a component without any scan, and, if thorough, one that was not refined to its last bit.
func (r *jpegReader) missing(kind error, thorough bool) error {
	for _, id := range r.components {
		if !r.seen[id] {
			return fmt.Errorf("%w: no scan of component %d", kind, id)
		}
		if !thorough || !r.progressive {
			continue
		}
		for k, left := range r.left[id] {
			if left != 0 {
				return fmt.Errorf("%w: coefficient %d of component %d is not complete", kind, k, id)
			}
		}
	}
	return nil
}
