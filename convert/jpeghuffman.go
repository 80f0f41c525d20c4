package convert

import "encoding/binary"

// lookBits is the length up to which codes are found in one step. Of 10 to 13, 11 was the quickest.
const lookBits = 11

// huffTable holds the codes of one DHT table.
type huffTable struct {
	// look is indexed by the next lookBits bits; 0 where these are no whole code.
	look [1 << lookBits]huffStep
	// For other codes: those of length n are below end[n], and begin in values at base[n] + code.
	end    [17]int32
	base   [17]int32
	values []byte
	// first: the codes are for the first coefficients of blocks.
	first bool
}

// huffStep says what begins with certain bits. For one code and the coefficient behind it: how many bits these are, and
// how many coefficients are done with them, blockSize for the end of the block. And the same for as many codes as the
// bits hold: how many bits all of them are, how many coefficients are done with all but the end of the block, and
// whether that is the last of them.
//
//	bits 0..4 and 5..11 for one, 12..16 and 17..23 for all, 24 for the end
type huffStep uint32

// blockSize is the number of coefficients in a block.
const blockSize = 64

func oneStep(bits, done int) huffStep { return huffStep(bits | done<<5) } //nolint:gosec // 27 bits and 64 at most

func (s huffStep) bits() int { return int(s & 31) }
func (s huffStep) done() int { return int(s >> 5 & 127) }

func (s huffStep) withAll(bits, done int, ends bool) huffStep {
	s |= huffStep(bits<<12 | done<<17) //nolint:gosec // 27 bits and 79 at most
	if ends {
		s |= 1 << 24
	}
	return s
}

func (s huffStep) allBits() int { return int(s >> 12 & 31) }
func (s huffStep) allDone() int { return int(s >> 17 & 127) }
func (s huffStep) ends() bool   { return s>>24 != 0 }

// stepOf is what a code of so many bits for the value stands for; false for a value that no decoder takes.
func (t *huffTable) stepOf(bits int, value byte) (huffStep, bool) {
	run, size := int(value>>4), int(value&15)
	switch {
	case t.first:
		return oneStep(bits+size, 1), run == 0
	case size > 0:
		return oneStep(bits+size, run+1), true
	case run == 15:
		return oneStep(bits, 16), true
	}
	return oneStep(bits, blockSize), true
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
		t := &huffTable{values: b[17 : 17+total], first: class == 0}
		var bits [1 << lookBits]uint8 // of the code in look
		code, at := 0, 0
		for n := 1; n <= 16; n++ {
			count := int(counts[n-1])
			t.base[n] = int32(at - code)   //nolint:gosec // at most 256 - 65536
			t.end[n] = int32(code + count) //nolint:gosec // checked below
			if code+count > 1<<n {
				return false
			}
			for range count {
				if step, ok := t.stepOf(n, t.values[at]); ok && n <= lookBits {
					first := code << (lookBits - n)
					for i := range 1 << (lookBits - n) {
						t.look[first+i], bits[first+i] = step, uint8(n) //nolint:gosec // n is at most 16
					}
				}
				code++
				at++
			}
			code <<= 1
		}
		if !t.first {
			t.chain(&bits)
		}
		tables[class][id] = t
		b = b[17+total:]
	}
	return true
}

// chain finds out how many codes, of so many bits each, follow one another in each step.
func (t *huffTable) chain(codeBits *[1 << lookBits]uint8) {
	for i := range t.look {
		bits, done, ends := 0, 0, false
		for bits < lookBits && done < blockSize && !ends {
			// What is pushed out makes room for zeros, which are none of the bits: a code must end before them.
			at := i << bits & (1<<lookBits - 1)
			step := t.look[at]
			if step == 0 || bits+int(codeBits[at]) > lookBits {
				break
			}
			bits += step.bits()
			if ends = step.done() == blockSize; !ends {
				done += step.done()
			}
		}
		t.look[i] = t.look[i].withAll(bits, done, ends)
	}
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

// step reads one code that is not among those to look up, and says what it stands for; false if there is none.
func (r *bitReader) step(t *huffTable) (huffStep, bool) {
	for n := 1; n <= 16; n++ {
		if code := int32(r.acc >> (64 - n)); code < t.end[n] { //nolint:gosec // 16 bits at most
			i := t.base[n] + code
			if i < 0 || int(i) >= len(t.values) {
				return 0, false
			}
			return t.stepOf(n, t.values[i])
		}
	}
	return 0, false
}

// skipBlock steps over one block; false if there is no valid code where one is due.
//
// What it keeps in variables here stays in registers, which is half of its speed.
func (r *bitReader) skipBlock(first, others *huffTable) bool {
	b, pos, acc, n := r.b, r.pos, r.acc, r.n
	table := first
	for k := 0; k < blockSize; table = others {
		if n < 32 {
			var w, c uint32
			if pos+4 <= len(b) {
				w = binary.BigEndian.Uint32(b[pos:])
				c = ^w
			}
			// No byte of w is 0xff, which is to say that no byte of its complement is 0.
			if (c-0x01010101)&^c&0x80808080 == 0 && c != 0 {
				acc |= uint64(w) << ((32 - n) & 63)
				n += 32
				pos += 4
			} else {
				r.pos, r.acc, r.n = pos, acc, n
				r.fill()
				pos, acc, n = r.pos, r.acc, r.n
			}
		}
		step := table.look[acc>>(64-lookBits)]
		if all := k + step.allDone(); all < blockSize && k > 0 && step != 0 {
			acc <<= step.allBits() & 63
			n -= step.allBits()
			k = all
			if step.ends() {
				break
			}
			continue
		}
		if step == 0 {
			r.acc = acc
			var ok bool
			if step, ok = r.step(table); !ok {
				return false
			}
		}
		acc <<= step.bits() & 63
		n -= step.bits()
		k += step.done()
	}
	r.pos, r.acc, r.n = pos, acc, n
	return true
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
