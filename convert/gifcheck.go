package convert

import (
	"fmt"
)

// gifFacts is what a GIF says about itself, read to its end.
type gifFacts struct {
	width, height int
	delays        []int // one a frame, in hundredths of a second, as stored; 0 where nothing is said
	// pixels and bytes are of the image data of all frames together.
	pixels, bytes int64
	// odd says in words why libvips would draw it differently from a browser, "" when it would not.
	odd string
}

type gifFrame struct {
	x, y, w, h  int
	transparent bool
	disposal    int
	table       bool // of colours: its own or the global one
}

// checkGIF reads a GIF to its trailer, and counts the pixels that the data of each frame decodes to, without
// decoding them. libvips itself takes a short or senseless frame for a good one, and fills it up.
//
// The error is one of errCut and errDamage.
func checkGIF(b []byte) (gifFacts, error) {
	r := gifReader{b: b}
	facts, err := r.read()
	if err == nil && r.short {
		err = fmt.Errorf("%w: the file ends after %d frames, without a trailer", errCut, len(facts.delays))
	}
	return facts, err
}

type gifReader struct {
	b      []byte
	pos    int
	short  bool // something reached behind the end
	frames []gifFrame
	codes  lzwCounter
}

// take returns the next n bytes; at the end, short is set and zeros come back.
func (r *gifReader) take(n int) []byte {
	if r.short || len(r.b)-r.pos < n {
		r.short = true
		return make([]byte, n)
	}
	r.pos += n
	return r.b[r.pos-n : r.pos]
}

func (r *gifReader) byte() int { return int(r.take(1)[0]) }

func le16(b []byte) int { return int(b[0]) | int(b[1])<<8 }

func (r *gifReader) read() (gifFacts, error) {
	var f gifFacts
	r.take(6)
	screen := r.take(7)
	f.width, f.height = le16(screen), le16(screen[2:])
	global := r.skipTable(int(screen[4]))

	delay, next := 0, gifFrame{}
	for !r.short {
		switch kind := r.byte(); kind {
		case 0x3b:
			if r.short {
				continue
			}
			f.odd = r.oddity(f)
			return f, nil
		case 0x21:
			if label := r.byte(); label == 0xf9 {
				if g := r.control(); len(g) >= 4 {
					delay = le16(g[1:])
					next.transparent = g[0]&1 != 0
					next.disposal = int(g[0]>>2) & 7
				}
				continue
			}
			r.skipBlocks()
		case 0x2c:
			next.table = global
			err := r.image(&f, &next)
			if r.short {
				continue
			}
			if err != nil {
				return f, fmt.Errorf("%w: frame %d: %w", errDamage, len(f.delays)+1, err)
			}
			f.delays = append(f.delays, delay)
			r.frames = append(r.frames, next)
			delay, next = 0, gifFrame{}
		default:
			if !r.short {
				return f, fmt.Errorf("%w: 0x%02x at %d where a block should begin", errDamage, kind, r.pos-1)
			}
		}
	}
	return f, nil
}

// skipTable steps over a table of colours, and reports whether there is one.
func (r *gifReader) skipTable(flags int) bool {
	if flags&0x80 == 0 {
		return false
	}
	r.take(3 * (2 << (flags & 7)))
	return true
}

func (r *gifReader) skipBlocks() {
	for n := r.byte(); n > 0; n = r.byte() {
		r.take(n)
	}
}

// control reads the blocks of a graphic control extension and returns the first.
func (r *gifReader) control() []byte {
	n := r.byte()
	if n == 0 {
		return nil
	}
	first := r.take(n)
	r.skipBlocks()
	return first
}

func (r *gifReader) image(f *gifFacts, fr *gifFrame) error {
	d := r.take(9)
	fr.x, fr.y, fr.w, fr.h = le16(d), le16(d[2:]), le16(d[4:]), le16(d[6:])
	fr.table = r.skipTable(int(d[8])) || fr.table
	size := r.byte()
	if r.short {
		return nil
	}
	if size < 1 || size > 11 {
		return fmt.Errorf("codes of %d bits", size)
	}
	want := int64(fr.w) * int64(fr.h)
	r.codes.reset(size, want)
	for n := r.byte(); n > 0 && !r.short; n = r.byte() {
		block := r.take(n)
		f.bytes += int64(n)
		if !r.codes.feed(block) {
			return fmt.Errorf("a code that stands for nothing")
		}
	}
	if r.short {
		return nil
	}
	if r.codes.pixels < want {
		return fmt.Errorf("data for %d of %d pixels", r.codes.pixels, want)
	}
	f.pixels += want
	return nil
}

// oddity finds the cases in which libvips (libnsgif) and browsers draw differently: frames beyond the canvas, and
// parts of the canvas that are cleared or never drawn. Browsers clear to transparent. libnsgif clears to the
// background colour when the frame to be removed has no transparent index, and libvips gives no alpha to an
// animation none of whose frames has one.
func (r *gifReader) oddity(f gifFacts) string {
	some := false
	for i, fr := range r.frames {
		if fr.w == 0 || fr.h == 0 {
			return fmt.Sprintf("frame %d has no pixels", i+1)
		}
		if fr.x+fr.w > f.width || fr.y+fr.h > f.height {
			return fmt.Sprintf("frame %d reaches beyond the canvas of %d x %d px", i+1, f.width, f.height)
		}
		if !fr.table {
			return fmt.Sprintf("frame %d has no table of colours", i+1)
		}
		some = some || fr.transparent
	}
	if len(r.frames) == 0 {
		return "no frames"
	}
	if first := r.frames[0]; !some && (first.w < f.width || first.h < f.height) {
		return "the first frame leaves parts of the canvas undrawn, and no frame has a transparent colour"
	}
	for i, fr := range r.frames[:len(r.frames)-1] {
		next := r.frames[i+1]
		covered := !next.transparent && next.x <= fr.x && next.y <= fr.y &&
			next.x+next.w >= fr.x+fr.w && next.y+next.h >= fr.y+fr.h
		switch {
		case covered:
		case fr.disposal == 2 && !fr.transparent:
			return fmt.Sprintf("frame %d is cleared to the background, which browsers take for transparent", i+1)
		case fr.disposal == 3 && i == 0 && !some:
			return "the first frame is taken away, and no frame has a transparent colour"
		}
	}
	return ""
}

// lzwCounter counts what LZW codes stand for, without writing it down: all it keeps of an entry is its length.
type lzwCounter struct {
	pixels, want int64
	min          uint
	clear        int
	done         bool // the end code came, or enough pixels

	bits   uint32
	nBits  uint
	width  uint
	next   int // the next free entry
	prev   int // the code before, -1 behind a clear code
	length [4096]int32
}

func (c *lzwCounter) reset(min int, want int64) {
	c.pixels, c.want, c.min, c.clear, c.done = 0, want, uint(min), 1<<min, false
	c.bits, c.nBits = 0, 0
	for i := range c.clear {
		c.length[i] = 1
	}
	c.empty()
}

// empty is what a clear code does.
func (c *lzwCounter) empty() { c.width, c.next, c.prev = c.min+1, c.clear+2, -1 }

// feed reads one block; false means that a code stands for nothing.
func (c *lzwCounter) feed(block []byte) bool {
	for _, b := range block {
		c.bits |= uint32(b) << c.nBits
		c.nBits += 8
		for c.nBits >= c.width && !c.done {
			code := int(c.bits & (1<<c.width - 1))
			c.bits >>= c.width
			c.nBits -= c.width
			if !c.code(code) {
				return false
			}
		}
		if c.done {
			return true
		}
	}
	return true
}

func (c *lzwCounter) code(code int) bool {
	switch {
	case code == c.clear:
		c.empty()
		return true
	case code == c.clear+1:
		c.done = true
		return true
	}
	var n int32
	switch {
	case c.prev < 0:
		if code > c.clear {
			return false
		}
		n = 1
	case code < c.next:
		n = c.length[code]
	case code == c.next && c.next < len(c.length):
		n = c.length[c.prev] + 1
	default:
		return false
	}
	if c.prev >= 0 && c.next < len(c.length) {
		c.length[c.next] = c.length[c.prev] + 1
		c.next++
		if c.next == 1<<c.width && c.width < 12 {
			c.width++
		}
	}
	c.prev = code
	c.pixels += int64(n)
	c.done = c.done || c.pixels >= c.want
	return true
}
