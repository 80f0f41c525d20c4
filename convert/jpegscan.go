package convert

import "fmt"

// checkScan finds files whose picture ends before their data does: a sequential JPEG in which bytes were lost, or
// whose end is filled with zeros (a broken upload, a full disk), often decodes to its last row, in grey or in shifted
// colours. libjpeg warns of the data that is left over only behind the last row, where libvips no longer listens.
//
// It walks the Huffman codes of the scan without decoding them, which costs about 0.6 ms for 100 kB, and returns
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
			if !s.bits.skipBlock(block.dc, block.ac) {
				return 0, false
			}
		}
		if s.bits.short() {
			return 0, false
		}
	}
	return s.bits.unread(), true
}
