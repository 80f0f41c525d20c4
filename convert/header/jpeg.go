package header

import (
	"bytes"
	"encoding/binary"
)

// Second bytes of the markers of ITU-T T.81, table B.1.
const (
	mTEM   = 0x01
	mSOF0  = 0xC0
	mDHT   = 0xC4
	mJPG   = 0xC8
	mDAC   = 0xCC
	mSOF15 = 0xCF
	mRST0  = 0xD0
	mRST7  = 0xD7
	mSOI   = 0xD8
	mEOI   = 0xD9
	mSOS   = 0xDA
	mDQT   = 0xDB
	mDNL   = 0xDC
	mDRI   = 0xDD
	mDHP   = 0xDE
	mAPP0  = 0xE0
	mAPP1  = 0xE1
	mAPP2  = 0xE2
	mAPP14 = 0xEE
)

type jpegState struct {
	frame      bool // SOF seen
	components [4]struct{ id, table byte }
	jfif       bool
	adobe      bool
	transform  byte // of the Adobe segment
	quant      [4]quantTable
	icc        iccPieces
	mpf        mpfIndex
}

// scanJPEG walks the markers. Like libjpeg it steps over garbage between segments; entropy-coded data is garbage of
// the same kind, with stuffed zeros and restart markers in it.
func (s *Scanner) scanJPEG(b []byte) error {
	s.pos = max(s.pos, 2)
	for !s.info.Whole && !s.info.Junk { // behind that, only the further pictures are of interest
		i := bytes.IndexByte(b[min(s.pos, len(b)):], 0xFF)
		if i < 0 {
			s.pos = max(s.pos, len(b))
			return s.shortJPEG(b)
		}
		at := s.pos + i
		for at+1 < len(b) && b[at+1] == 0xFF {
			at++
		}
		s.pos = at
		if at+1 >= len(b) {
			return s.shortJPEG(b)
		}
		marker := b[at+1]
		switch {
		case marker == 0, marker == mTEM, marker >= mRST0 && marker <= mRST7:
			s.pos = at + 2
			continue
		case marker == mEOI:
			if !s.ready {
				return s.stop("ends before the first scan")
			}
			s.pos = at + 2
			s.info.Whole = true
			continue
		case marker == mSOI && s.ready:
			s.info.Junk = true
			continue
		case marker == mSOI:
			return s.stop("begins again inside")
		}
		if at+4 > len(b) {
			return s.shortJPEG(b)
		}
		length := int(binary.BigEndian.Uint16(b[at+2:]))
		if length < 2 && s.ready {
			s.info.Junk = true
			continue
		}
		if length < 2 {
			return s.stop("segment %#x has length %d", marker, length)
		}
		if at+2+length > len(b) {
			return s.shortJPEG(b)
		}
		if err := s.segment(b, marker, at+4, b[at+4:at+2+length]); err != nil {
			return err
		}
		s.pos = at + 2 + length
	}
	return s.shortJPEG(b)
}

// shortJPEG ends a call: at the end of the bytes, or at the end of the first picture, behind which others may stand.
func (s *Scanner) shortJPEG(b []byte) error {
	if s.ready {
		found, pending := s.jpeg.mpf.gainMap(b)
		s.info.GainMap = s.info.GainMap || found
		s.info.MPFPending = pending && !s.info.GainMap
		s.done = (s.info.Whole || s.info.Junk) && !s.info.MPFPending
	}
	return s.short()
}

// segment reads one segment; at is where its data begins in the file.
func (s *Scanner) segment(b []byte, marker byte, at int, data []byte) error {
	j := &s.jpeg
	switch {
	case marker == mSOS:
		if !j.frame {
			return s.stop("scan before the frame header")
		}
		s.info.Scans++
		if !s.ready {
			s.ready = true
			p := s.info.Process()
			sequential := p == Baseline || p == Extended || p == ArithmeticSequential
			s.info.OnePass = sequential && len(data) > 0 && int(data[0]) == s.info.Components
			s.finishJPEG(b)
		}
	case marker >= mSOF0 && marker <= mSOF15 && marker != mDHT && marker != mJPG && marker != mDAC:
		return s.frameHeader(marker, data)
	case marker == mDNL:
		// Only a frame that left its height open takes it from here.
		if s.ready && s.info.Scans == 1 && s.info.Height == 0 && len(data) >= 2 {
			s.info.Height = int(binary.BigEndian.Uint16(data))
			s.info.LateHeight = true
		}
	case s.ready:
		// Tables and applications' segments between scans change nothing that is asked for here.
	case marker == mDQT:
		readQuantTables(&j.quant, data)
	case marker == mDRI:
		if len(data) >= 2 {
			s.info.RestartInterval = int(binary.BigEndian.Uint16(data))
		}
	case marker == mDHP:
		s.info.hierarchical = true
	case marker == mAPP0:
		j.jfif = j.jfif || has(data, "JFIF\x00")
	case marker == mAPP1:
		s.app1(data)
	case marker == mAPP2:
		s.app2(at, data)
	case marker == mAPP14:
		if has(data, "Adobe") && len(data) >= 12 {
			j.adobe, j.transform = true, data[11]
		}
	}
	return nil
}

func (s *Scanner) frameHeader(marker byte, data []byte) error {
	j := &s.jpeg
	if s.ready {
		return nil // a further frame of a hierarchical file; the first one told
	}
	if j.frame {
		return s.stop("second frame header")
	}
	if len(data) < 6 || len(data) != 6+3*int(data[5]) || data[5] == 0 {
		return s.stop("frame header of %d bytes", len(data))
	}
	j.frame = true
	s.info.SOF = marker
	s.info.BitDepth = int(data[0])
	s.info.Height = int(binary.BigEndian.Uint16(data[1:]))
	s.info.Width = int(binary.BigEndian.Uint16(data[3:]))
	s.info.Components = int(data[5])
	s.info.Frames = 1
	p := s.info.Process()
	s.info.Progressive = p == Progressive || p == ArithmeticProgressive
	for i := range min(s.info.Components, len(j.components)) {
		j.components[i].id, j.components[i].table = data[6+3*i], data[8+3*i]
	}
	return nil
}

func (s *Scanner) app1(data []byte) {
	switch {
	case has(data, "Exif\x00"):
		if s.info.EXIF || len(data) < 6 {
			return
		}
		s.info.EXIF = true
		s.info.takeEXIF(data[6:])
	case has(data, xmpMark), has(data, xmpExtensionMark):
		s.info.XMP = true
		s.info.GainMap = s.info.GainMap || gainMapInXMP(data)
	}
}

func (s *Scanner) app2(at int, data []byte) {
	switch {
	case has(data, iccMark):
		s.jpeg.icc.add(at, data)
	case has(data, "MPF\x00") && !s.info.MPF:
		s.info.MPF = true
		s.jpeg.mpf.read(at+4, data[4:])
	case has(data, isoGainMapMark):
		s.info.GainMap = true
	}
}

// finishJPEG works out what only the segments together tell, when all of them have been seen.
func (s *Scanner) finishJPEG(b []byte) {
	j := &s.jpeg
	s.info.Color = j.color(s.info.Components)
	s.info.takeProfile(j.icc.join(b))
	// XYB and the like: RGB samples that mean something else, by a profile with look-up tables.
	if s.info.Color != RGB || s.info.Profile != ProfileWide || s.info.ProfileMatrix {
		s.info.JPEGQuality = j.quality(s.info.Color)
	}
}

// color decides as libjpeg does (default_decompress_parms in jdapimin.c), so that the plan and the decoder agree.
func (j *jpegState) color(components int) Color {
	switch components {
	case 1:
		return Gray
	case 3:
		ids := [3]byte{j.components[0].id, j.components[1].id, j.components[2].id}
		switch {
		case j.jfif:
			return YCC
		case j.adobe && j.transform == 0:
			return RGB
		case !j.adobe && ids == [3]byte{'R', 'G', 'B'}:
			return RGB
		}
		return YCC
	case 4:
		if j.adobe && j.transform != 0 {
			return YCCK
		}
		return CMYK
	}
	return ColorUnknown
}
