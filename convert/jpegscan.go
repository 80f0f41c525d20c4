package convert

import (
	"encoding/binary"
	"fmt"
)

// checkScan finds files whose picture ends before their data does: a sequential JPEG in which bytes were lost, or
// whose end is filled with zeros (a broken upload, a full disk), often decodes to its last row, in grey or in shifted
// colours. libjpeg warns of the data that is left over only behind the last row, where libvips no longer listens.
//
// It walks the Huffman codes of the scan without decoding them, which costs about 1 ms for 100 kB, and returns
// errDamage when more than maxUnread bytes are left. It looks at sequential Huffman files with a single scan; all
// others are read to their end by the decoder itself, and whatever it cannot follow is left to the decoder too.
func checkScan(jpeg []byte) error {
	s, ok := findScan(jpeg)
	if !ok {
		return nil
	}
	unread, ok := s.walk()
	if !ok || unread <= maxUnread {
		return nil
	}
	return fmt.Errorf("%w: %d bytes are left when the picture is complete", errDamage, unread)
}

// maxUnread is how many bytes may be left over behind the last code of a scan. None of the 90 intact files that
// this was tried on leaves any; the margin is for encoders that fill up to a word.
const maxUnread = 8

// huffScan is the only scan of a sequential JPEG.
type huffScan struct {
	bits   bitReader
	blocks []huffBlock // of one MCU
	mcus   int
	// restart is the number of MCUs between restart markers, 0 for none.
	restart int
}

// huffBlock is one block of an MCU: the codes for its first coefficient and for the others.
type huffBlock struct{ dc, ac *huffTable }

// findScan reads the headers of a JPEG up to its scan; false where there is nothing to walk.
func findScan(b []byte) (s huffScan, ok bool) {
	var (
		tables        [2][4]*huffTable
		width, height int
		sampling      = map[byte][2]int{} // by component: horizontal, vertical
		components    int
	)
	for at := 2; at+4 <= len(b); {
		marker, n := b[at+1], int(b[at+2])<<8|int(b[at+3])
		if b[at] != 0xff || n < 2 || at+2+n > len(b) {
			return s, false
		}
		content := b[at+4 : at+2+n]
		at += 2 + n
		switch marker {
		case 0xc4:
			if !readHuffTables(content, &tables) {
				return s, false
			}
		case 0xc0, 0xc1:
			if len(content) < 6 || len(content) < 6+3*int(content[5]) || content[0] != 8 {
				return s, false
			}
			height, width = int(content[1])<<8|int(content[2]), int(content[3])<<8|int(content[4])
			components = int(content[5])
			for i := range components {
				c := content[6+3*i:]
				sampling[c[0]] = [2]int{int(c[1] >> 4), int(c[1] & 15)}
			}
		case 0xdd:
			if len(content) < 2 {
				return s, false
			}
			s.restart = int(content[0])<<8 | int(content[1])
		case 0xda:
			if len(content) < 1 || len(content) < 4+2*int(content[0]) || int(content[0]) != components || width == 0 || height == 0 {
				return s, false
			}
			s.bits = bitReader{b: b, pos: at}
			return s, s.layOut(content, &tables, sampling, width, height)
		case 0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf:
			return s, false
		}
	}
	return s, false
}

// layOut finds the blocks of an MCU and the number of these from the scan's header.
func (s *huffScan) layOut(content []byte, tables *[2][4]*huffTable, sampling map[byte][2]int, width, height int) bool {
	most := [2]int{1, 1}
	for i := range int(content[0]) {
		f, known := sampling[content[1+2*i]]
		dc, ac := tables[0][content[2+2*i]>>4&3], tables[1][content[2+2*i]&3]
		if !known || f[0] < 1 || f[0] > 4 || f[1] < 1 || f[1] > 4 || dc == nil || ac == nil {
			return false
		}
		if content[0] == 1 {
			f = [2]int{1, 1} // a component of its own is not interleaved
		}
		most = [2]int{max(most[0], f[0]), max(most[1], f[1])}
		for range f[0] * f[1] {
			s.blocks = append(s.blocks, huffBlock{dc, ac})
		}
	}
	across, down := 8*most[0], 8*most[1]
	s.mcus = ((width + across - 1) / across) * ((height + down - 1) / down)
	return len(s.blocks) > 0
}

// walk steps over all MCUs, and returns the number of bytes between them and the marker behind; false when the data
// ends early or does not follow the codes, which the decoder will see as well.
func (s *huffScan) walk() (unread int, ok bool) {
	for mcu := range s.mcus {
		if s.restart > 0 && mcu > 0 && mcu%s.restart == 0 && !s.bits.nextInterval() {
			return 0, false
		}
		for _, block := range s.blocks {
			if !s.bits.skip(block.dc) {
				return 0, false
			}
			for k := 1; k < 64; {
				step := s.bits.skipRun(block.ac)
				if step == 0 {
					return 0, false
				}
				k += step
			}
		}
		if s.bits.short() {
			return 0, false
		}
	}
	return s.bits.unread(), true
}

// lookBits is the length up to which codes are found in one step.
const lookBits = 10

// huffTable holds the codes of one DHT table.
type huffTable struct {
	// look is indexed by the next lookBits bits, and holds length<<8 | value; 0 for longer codes.
	look [1 << lookBits]uint16
	// For longer codes: those of length n are below end[n], and begin in values at base[n] + code.
	end    [17]int32
	base   [17]int32
	values []byte
}

func readHuffTables(b []byte, tables *[2][4]*huffTable) bool {
	for len(b) > 0 {
		if len(b) < 17 || b[0]>>4 > 1 || b[0]&15 > 3 {
			return false
		}
		class, id, counts := b[0]>>4, b[0]&15, b[1:17]
		total := 0
		for _, n := range counts {
			total += int(n)
		}
		if total > 256 || len(b) < 17+total {
			return false
		}
		t := &huffTable{values: b[17 : 17+total]}
		code, at := 0, 0
		for n := 1; n <= 16; n++ {
			count := int(counts[n-1])
			t.base[n] = int32(at - code)   //nolint:gosec // at most 256 - 65536
			t.end[n] = int32(code + count) //nolint:gosec // checked below
			if code+count > 1<<n {
				return false
			}
			for range count {
				if n <= lookBits {
					first := code << (lookBits - n)
					for i := range 1 << (lookBits - n) {
						t.look[first+i] = uint16(n)<<8 | uint16(t.values[at]) //nolint:gosec // n is at most 16
					}
				}
				code++
				at++
			}
			code <<= 1
		}
		tables[class][id] = t
		b = b[17+total:]
	}
	return true
}

// bitReader reads entropy-coded data.
type bitReader struct {
	b   []byte
	pos int
	// acc holds the next n bits, the first one highest.
	acc uint64
	n   int
	// past counts the bits that were made up behind the end of the data.
	past int
}

// fill makes sure that at least 32 bits are there, zeros behind the end.
func (r *bitReader) fill() {
	if r.n <= 32 && r.pos+4 <= len(r.b) {
		w := binary.BigEndian.Uint32(r.b[r.pos:])
		// No byte of w is 0xff, which is to say that no byte of its complement is 0.
		if c := ^w; (c-0x01010101)&^c&0x80808080 == 0 {
			r.acc |= uint64(w) << (32 - r.n)
			r.n += 32
			r.pos += 4
			return
		}
	}
	for r.n <= 56 {
		if r.pos >= len(r.b) || r.b[r.pos] == 0xff && (r.pos+1 >= len(r.b) || r.b[r.pos+1] != 0) {
			r.past += 8
			r.n += 8
			continue
		}
		c := r.b[r.pos]
		r.pos++
		if c == 0xff {
			r.pos++
		}
		r.acc |= uint64(c) << (56 - r.n)
		r.n += 8
	}
}

func (r *bitReader) drop(bits int) {
	r.acc <<= bits
	r.n -= bits
}

// code reads one code; false if there is none.
func (r *bitReader) code(t *huffTable) (value byte, ok bool) {
	if r.n < 32 {
		r.fill()
	}
	if e := t.look[r.acc>>(64-lookBits)]; e != 0 {
		r.drop(int(e >> 8))
		return byte(e), true
	}
	for n := lookBits + 1; n <= 16; n++ {
		if code := int32(r.acc >> (64 - n)); code < t.end[n] { //nolint:gosec // 16 bits at most
			i := t.base[n] + code
			if i < 0 || int(i) >= len(t.values) {
				return 0, false
			}
			r.drop(n)
			return t.values[i], true
		}
	}
	return 0, false
}

// skip steps over a first coefficient.
func (r *bitReader) skip(t *huffTable) bool {
	size, ok := r.code(t)
	if !ok || size > 15 {
		return false
	}
	r.drop(int(size))
	return true
}

// skipRun steps over a run of zeros and the coefficient behind it, and returns how many coefficients these were; 64
// for the end of the block, 0 for no valid code.
func (r *bitReader) skipRun(t *huffTable) int {
	value, ok := r.code(t)
	if !ok {
		return 0
	}
	run, size := int(value>>4), int(value&15)
	if size == 0 {
		if run != 15 {
			return 64
		}
		return 16
	}
	r.drop(size)
	return run + 1
}

// short tells whether bits behind the end were used.
func (r *bitReader) short() bool { return r.past > r.n }

// nextInterval goes to the data behind the next restart marker.
func (r *bitReader) nextInterval() bool {
	r.acc, r.n, r.past = 0, 0, 0
	for r.pos+1 < len(r.b) {
		if r.b[r.pos] != 0xff {
			r.pos++
			continue
		}
		switch m := r.b[r.pos+1]; {
		case m == 0xff:
			r.pos++
		case m == 0:
			r.pos += 2
		case m >= 0xd0 && m <= 0xd7:
			r.pos += 2
			return true
		default:
			return false
		}
	}
	return false
}

// unread is the number of whole bytes between what was read and the next marker.
func (r *bitReader) unread() int {
	left := max(r.n-r.past, 0) / 8
	for r.pos+1 < len(r.b) {
		if r.b[r.pos] != 0xff {
			r.pos++
			left++
			continue
		}
		switch r.b[r.pos+1] {
		case 0xff:
			r.pos++
		case 0:
			r.pos += 2
			left++
		default:
			return left
		}
	}
	return left
}
