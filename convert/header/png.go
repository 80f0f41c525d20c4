package header

import (
	"encoding/binary"
	"hash/crc32"
)

type pngState struct {
	header, palette bool
	data            bool // IDAT seen
	profile         bool // iCCP seen
	srgb            bool
	gamma           bool // gAMA other than sRGB's
	chroma          bool // cHRM other than sRGB's
	cicp            bool // cICP other than sRGB's
	animation       bool
	inflated        int // compressed texts that were tried
}

const (
	// maxPNGChunk bounds the chunks that are read; larger ones are stepped over.
	maxPNGChunk = maxProfile
	pngOverhead = 12 // length, type and checksum of a chunk
)

// scanPNG walks the chunks.
func (s *Scanner) scanPNG(b []byte) error {
	s.pos = max(s.pos, len(pngSignature))
	for !s.done {
		if s.pos+8 > len(b) {
			return s.short()
		}
		head := b[s.pos:]
		length, kind := int(binary.BigEndian.Uint32(head)), string(head[4:8])
		if length > 1<<31-1 || !isChunkType(kind) {
			return s.stop("no chunk at byte %d", s.pos)
		}
		if !s.png.header && kind != "IHDR" {
			return s.stop("first chunk is %s, not IHDR", kind)
		}
		if s.wantsChunk(kind, length) {
			if len(head) < length+pngOverhead {
				return s.short()
			}
			if !s.png.data && s.info.BadCRC == "" &&
				crc32.ChecksumIEEE(head[4:8+length]) != binary.BigEndian.Uint32(head[8+length:]) {
				s.info.BadCRC = kind
			}
			if err := s.chunk(kind, head[8:8+length]); err != nil {
				return err
			}
		} else if kind == "IDAT" {
			if err := s.pixelData(); err != nil {
				return err
			}
		}
		s.pos += length + pngOverhead
	}
	return nil
}

func isChunkType(kind string) bool {
	for i := range len(kind) {
		if c := kind[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// wantsChunk says which chunks are read, so that only these have to be there as a whole.
func (s *Scanner) wantsChunk(kind string, length int) bool {
	switch kind {
	case "IHDR", "IEND":
		return true
	case "PLTE", "tRNS", "acTL", "iCCP", "sRGB", "gAMA", "cHRM", "cICP":
		return !s.png.data && length <= maxPNGChunk
	case "eXIf", "tEXt", "zTXt", "iTXt":
		return length <= maxPNGChunk
	}
	return false
}

// pixelData is called at each IDAT; the first one ends the header.
func (s *Scanner) pixelData() error {
	p := &s.png
	if p.data {
		return nil
	}
	if s.info.Color == Palette && !p.palette {
		return s.stop("no palette before the pixels")
	}
	p.data, s.ready = true, true
	switch {
	case p.cicp: // wins over all others
		s.info.OddColor = "cICP"
	case p.profile, p.srgb:
	case p.gamma:
		s.info.OddColor = "gAMA"
	case p.chroma:
		s.info.OddColor = "cHRM"
	}
	return nil
}

func (s *Scanner) chunk(kind string, data []byte) error {
	p := &s.png
	switch kind {
	case "IHDR":
		return s.imageHeader(data)
	case "IEND":
		if !p.data {
			return s.stop("ends without pixels")
		}
		s.info.Whole, s.done = true, true
	case "PLTE":
		if p.palette = len(data) >= 3 && len(data)%3 == 0; p.palette {
			s.info.PaletteSize = len(data) / 3
		}
	case "tRNS":
		s.info.Alpha = s.info.Alpha || len(data) > 0
	case "acTL":
		if len(data) == 8 && !p.animation {
			p.animation, s.info.Animated = true, true
			s.info.Frames = int(binary.BigEndian.Uint32(data))
		}
	case "iCCP":
		if !p.profile {
			p.profile = true
			s.info.takeProfile(unpackProfile(data))
		}
	case "sRGB":
		p.srgb = true
	case "gAMA":
		p.gamma = len(data) == 4 && isOddGamma(binary.BigEndian.Uint32(data))
	case "cHRM":
		p.chroma = len(data) == 32 && isOddChroma(data)
	case "cICP":
		p.cicp = len(data) == 4 && !(data[0] == 1 && (data[1] == 13 || data[1] == 1) && data[2] == 0)
	case "eXIf":
		if !s.info.EXIF {
			s.info.EXIF = true
			upright := s.info.Orientation
			s.info.takeEXIF(data)
			if p.data { // decoders take the orientation from the header only
				s.info.Orientation = upright
			}
		}
	case "tEXt", "zTXt", "iTXt":
		s.text(kind, data)
	}
	return nil
}

func (s *Scanner) imageHeader(data []byte) error {
	if s.png.header {
		return s.stop("second IHDR")
	}
	s.png.header = true
	if len(data) != 13 {
		return s.stop("IHDR of %d bytes", len(data))
	}
	width, height := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	s.info.Width, s.info.Height, s.info.Frames = int(width), int(height), 1
	depth, colour := data[8], data[9]
	s.info.BitDepth, s.info.Progressive = int(depth), data[12] == 1
	depths := ""
	switch colour {
	case 0:
		s.info.Color, s.info.Components, depths = Gray, 1, "\x01\x02\x04\x08\x10"
	case 2:
		s.info.Color, s.info.Components, depths = RGB, 3, "\x08\x10"
	case 3:
		s.info.Color, s.info.Components, depths = Palette, 1, "\x01\x02\x04\x08"
	case 4:
		s.info.Color, s.info.Components, depths = Gray, 2, "\x08\x10"
	case 6:
		s.info.Color, s.info.Components, depths = RGB, 4, "\x08\x10"
	}
	s.info.Alpha = colour == 4 || colour == 6
	if width > 1<<31-1 || height > 1<<31-1 {
		return s.stop("%d x %d px", width, height)
	}
	for i := range len(depths) {
		if depths[i] == depth && data[10] == 0 && data[11] == 0 && data[12] <= 1 {
			return nil
		}
	}
	return s.stop("colour type %d with %d bits, compression %d, filter %d, interlace %d",
		colour, depth, data[10], data[11], data[12])
}

// isOddGamma: sRGB is written as 45455 (1/2.2); 5 % to either side is not seen. 0 is void.
func isOddGamma(g uint32) bool { return g != 0 && (g < 43200 || g > 47750) }

// isOddChroma compares with white point, red, green and blue of sRGB, x and y each, in units of 1/100000.
func isOddChroma(data []byte) bool {
	for i, want := range [8]int{31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000} {
		if abs(int(binary.BigEndian.Uint32(data[4*i:]))-want) > 1000 {
			return true
		}
	}
	return false
}
