package header

import (
	"encoding/binary"
	"time"
)

type gifState struct {
	screen bool // the logical screen was read
	blocks bool // inside a chain of sub-blocks
	frame  bool // which holds the pixels of a frame
	global bool // a global palette is there

	// From the graphic control before the next frame.
	delay       time.Duration
	disposal    byte
	transparent bool

	wiped   bool // the frame before is wiped away, and announced no transparent colour
	exposed bool // such a place was not painted over by the next frame
	bare    bool // the first frame does not cover the screen
	clear   bool // some frame announced a transparent colour
}

// wipe is the disposal method "restore to background".
const wipe = 2

// scanGIF walks the blocks; pixel data is stepped over sub-block by sub-block.
func (s *Scanner) scanGIF(b []byte) error {
	if !s.gif.screen {
		if len(b) < 13 {
			return ErrShort
		}
		s.logicalScreen(b)
	}
	for !s.done {
		if s.gif.blocks {
			if !s.skipBlocks(b) {
				return s.short()
			}
			continue
		}
		if s.pos >= len(b) {
			return s.short()
		}
		var need bool
		switch b[s.pos] {
		case ';':
			s.ready, s.done, s.info.Whole = true, true, true
		case ',':
			need = s.imageDescriptor(b)
		case '!':
			need = s.extension(b)
		default:
			return s.stop("no block at byte %d", s.pos)
		}
		if need {
			return s.short()
		}
	}
	return nil
}

func (s *Scanner) logicalScreen(b []byte) {
	s.gif.screen = true
	s.info.Width, s.info.Height = int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
	s.info.BitDepth, s.info.Components, s.info.Color, s.info.Loop = 8, 1, Palette, -1
	s.pos = 13
	if flags := b[10]; flags&0x80 != 0 {
		s.gif.global = true
		s.info.PaletteSize = 2 << (flags & 7)
		s.pos += 3 * s.info.PaletteSize
	}
}

// skipBlocks steps over a chain of sub-blocks and its terminator; false when b ends before it does.
func (s *Scanner) skipBlocks(b []byte) bool {
	at := s.pos
	for at < len(b) {
		n := int(b[at])
		at += 1 + n
		if n == 0 {
			s.gif.blocks = false
			if s.gif.frame {
				s.gif.frame = false
				s.info.FramesWhole++
			}
			break
		}
	}
	s.pos = at
	return !s.gif.blocks
}

// imageDescriptor reads the beginning of a frame; need says that it is not there as a whole.
func (s *Scanner) imageDescriptor(b []byte) (need bool) {
	if s.pos+10 > len(b) {
		return true
	}
	d := b[s.pos+1:]
	left, top := int(binary.LittleEndian.Uint16(d)), int(binary.LittleEndian.Uint16(d[2:]))
	width, height := int(binary.LittleEndian.Uint16(d[4:])), int(binary.LittleEndian.Uint16(d[6:]))
	i, g, flags := &s.info, &s.gif, d[8]
	covers := left == 0 && top == 0 && width >= i.Width && height >= i.Height
	if i.Frames == 0 && !covers {
		g.bare, i.Alpha = true, true
	}
	if g.wiped && !(covers && !g.transparent) {
		g.exposed, i.Alpha = true, true
	}
	g.wiped = g.disposal == wipe && !g.transparent
	g.clear = g.clear || g.transparent
	i.Alpha = i.Alpha || g.transparent
	if width == 0 || height == 0 {
		i.EmptyFrames++
	}
	i.ExtentWidth, i.ExtentHeight = max(i.ExtentWidth, left+width), max(i.ExtentHeight, top+height)
	if i.Frames == 0 || g.delay < i.MinDelay {
		i.MinDelay = g.delay
	}
	i.MaxDelay = max(i.MaxDelay, g.delay)
	i.Duration += g.delay
	g.delay, g.disposal, g.transparent = 0, 0, false
	i.Frames++
	i.Animated = i.Frames > 1
	i.Progressive = i.Progressive || flags&0x40 != 0
	s.pos += 10
	if flags&0x80 != 0 {
		size := 2 << (flags & 7)
		if !g.global && i.PaletteSize == 0 {
			i.PaletteSize = size
		}
		s.pos += 3 * size
	}
	s.pos++ // the LZW code size
	g.blocks, g.frame, s.ready = true, true, true
	return false
}

// extension reads a graphic control or the loop count, and steps over all others.
func (s *Scanner) extension(b []byte) (need bool) {
	head := b[s.pos:]
	if len(head) < 3 {
		return true
	}
	size := int(head[2])
	if len(head) < 3+size {
		return true
	}
	switch data := head[3 : 3+size]; {
	case head[1] == 0xF9 && size >= 4:
		s.gif.delay = time.Duration(binary.LittleEndian.Uint16(data[1:])) * 10 * time.Millisecond
		s.gif.disposal, s.gif.transparent = data[0]>>2&7, data[0]&1 != 0
	case head[1] == 0xFF && size == 11 && (string(data) == "NETSCAPE2.0" || string(data) == "ANIMEXTS1.0"):
		sub := head[14:]
		if len(sub) < 1 || len(sub) < 1+int(sub[0]) {
			return true
		}
		if sub[0] >= 3 && sub[1]&7 == 1 {
			s.info.Loop = int(binary.LittleEndian.Uint16(sub[2:]))
		}
	}
	s.pos += 2
	s.gif.blocks = true
	return false
}
