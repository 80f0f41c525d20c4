package header

import (
	"encoding/binary"
	"time"
)

type gifState struct {
	screen  bool // the logical screen was read
	blocks  bool // inside a chain of sub-blocks
	global  bool // a global palette is there
	delay   time.Duration
	replace bool // the last frame is to be wiped, which leaves transparent pixels
}

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
			// Browsers end the animation here and show what they have.
			if s.info.Frames == 0 {
				return s.stop("no block at byte %d", s.pos)
			}
			s.done, s.info.Junk = true, true
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
	i, flags := &s.info, d[8]
	if i.Frames == 0 && (left > 0 || top > 0 || left+width < i.Width || top+height < i.Height) || s.gif.replace {
		i.Alpha = true
	}
	if width == 0 || height == 0 {
		i.EmptyFrames++
	} else {
		i.ExtentWidth, i.ExtentHeight = max(i.ExtentWidth, left+width), max(i.ExtentHeight, top+height)
	}
	if i.Frames == 0 || s.gif.delay < i.MinDelay {
		i.MinDelay = s.gif.delay
	}
	i.MaxDelay = max(i.MaxDelay, s.gif.delay)
	i.Duration += s.gif.delay
	s.gif.delay = 0
	i.Frames++
	i.Animated = i.Frames > 1
	i.Progressive = i.Progressive || flags&0x40 != 0
	s.pos += 10
	if flags&0x80 != 0 {
		size := 2 << (flags & 7)
		if !s.gif.global && i.PaletteSize == 0 {
			i.PaletteSize = size
		}
		s.pos += 3 * size
	}
	s.pos++ // the LZW code size
	s.gif.blocks, s.ready = true, true
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
		s.gif.replace = data[0]>>2&7 == 2
		s.info.Alpha = s.info.Alpha || data[0]&1 != 0
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
