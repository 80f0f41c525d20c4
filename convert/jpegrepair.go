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

// repairJPEG makes two harmless oddities readable for a decoder that takes every warning for damage, and finds the
// cut-off files that it would decode without a warning:
//
//   - the scan header of a sequential JPEG states a spectral range that does not matter there (Samsung writes zeros);
//   - the end marker is missing, and everything before it is there.
//
// It steps over the entropy-coded data without decoding it: damage in there is for the decoder to find. It changes
// src and may append to it; both errors of this file can come back.
func repairJPEG(src []byte) ([]byte, error) {
	r := jpegRepair{b: src}
	if err := r.walk(); err != nil {
		return nil, err
	}
	if r.ended {
		return r.b, r.missing(errDamage, false)
	}
	if r.arithmetic {
		// The arithmetic decoder makes up data behind the end, without a warning.
		return nil, fmt.Errorf("%w: no end marker", errCut)
	}
	if err := r.missing(errCut, true); err != nil {
		return nil, err
	}
	return append(r.b, 0xff, 0xd9), nil
}

type jpegRepair struct {
	b     []byte
	ended bool // the end marker was seen

	sequential, progressive, arithmetic bool

	components []byte // ids
	seen       map[byte]bool
	// precision holds, for each component of a progressive JPEG and each coefficient, how many low bits are still
	// to come; unseen coefficients have 255.
	precision map[byte]*[64]byte
}

// walk goes from marker to marker. What is no marker where one should be is left to the decoder.
func (r *jpegRepair) walk() error {
	r.seen, r.precision = make(map[byte]bool), make(map[byte]*[64]byte)
	pos := 2
	for {
		pos = r.next(pos)
		if pos < 0 {
			return nil
		}
		marker := r.b[pos]
		pos++
		switch {
		case marker == 0xd9:
			r.ended = true
			return nil
		case marker >= 0xd0 && marker <= 0xd8, marker == 0x01:
			continue
		}
		if pos+2 > len(r.b) {
			return nil
		}
		n := int(r.b[pos])<<8 | int(r.b[pos+1])
		if n < 2 || pos+n > len(r.b) {
			return nil
		}
		body := r.b[pos+2 : pos+n]
		pos += n
		switch marker {
		case 0xc0, 0xc1, 0xc2, 0xc9, 0xca:
			r.frame(marker, body)
		case 0xda:
			r.scan(body)
		}
	}
}

// next finds the next marker at or behind pos, and returns the place of its second byte; -1 without any. Stuffed
// zeros and restart markers are entropy-coded data.
func (r *jpegRepair) next(pos int) int {
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

func (r *jpegRepair) frame(marker byte, body []byte) {
	if len(body) < 6 || len(body) < 6+3*int(body[5]) || r.components != nil {
		return
	}
	r.arithmetic = marker >= 0xc9
	r.progressive = marker == 0xc2 || marker == 0xca
	r.sequential = !r.progressive
	r.components = []byte{}
	for i := range int(body[5]) {
		id := body[6+3*i]
		r.components = append(r.components, id)
		var left [64]byte
		for k := range left {
			left[k] = 255
		}
		r.precision[id] = &left
	}
}

func (r *jpegRepair) scan(body []byte) {
	if len(body) < 1 || len(body) < 4+2*int(body[0]) {
		return
	}
	n := int(body[0])
	tail := body[1+2*n:]
	if r.sequential {
		tail[0], tail[1], tail[2] = 0, 63, 0
	}
	from, to, low := tail[0], tail[1], tail[2]&0x0f
	for i := range n {
		id := body[1+2*i]
		r.seen[id] = true
		left := r.precision[id]
		if left == nil || !r.progressive {
			continue
		}
		for k := int(from); k <= int(to) && k < len(left); k++ {
			left[k] = low
		}
	}
}

// missing reports a component without any scan, and, if thorough, one that was not refined to its last bit.
func (r *jpegRepair) missing(kind error, thorough bool) error {
	for _, id := range r.components {
		if !r.seen[id] {
			return fmt.Errorf("%w: no scan of component %d", kind, id)
		}
		if !thorough || !r.progressive {
			continue
		}
		for k, left := range r.precision[id] {
			if left != 0 {
				return fmt.Errorf("%w: coefficient %d of component %d is not complete", kind, k, id)
			}
		}
	}
	return nil
}
