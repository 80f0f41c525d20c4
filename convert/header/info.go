// Package header reads what the headers of image files say, without decoding a pixel.
//
// It guarantees: no panic on any bytes; work and memory linear in the bytes given (embedded profiles and texts are
// unpacked up to fixed bounds); the same answer for the same bytes; nothing kept of the input after the call.
//
// It does not guarantee that a file decodes: the pixel data is stepped over, never looked into.
package header

import (
	"errors"
	"time"
)

// Errors of [Parse]; tell them apart with errors.Is. The Info that comes with one holds what was read before it.
var (
	// ErrShort says that the bytes end before the header does. For a prefix: come back with more. For a whole file:
	// it is cut off.
	ErrShort = errors.New("header is not complete")
	// ErrBroken says that no further bytes will make this a good file.
	ErrBroken = errors.New("header is broken")
	// ErrUnsupported says that this format's headers are not read: anything but JPEG, PNG and GIF.
	ErrUnsupported = errors.New("header of this format is not read")
)

// Color is how the stored samples mean colours.
type Color uint8

// The colour models of JPEG, PNG and GIF.
const (
	ColorUnknown Color = iota
	Gray
	RGB
	YCC // YCbCr
	CMYK
	YCCK
	Palette
)

// String returns "gray", "rgb", "ycc", "cmyk", "ycck", "palette" or "unknown".
func (c Color) String() string {
	switch c {
	case Gray:
		return "gray"
	case RGB:
		return "rgb"
	case YCC:
		return "ycc"
	case CMYK:
		return "cmyk"
	case YCCK:
		return "ycck"
	case Palette:
		return "palette"
	}
	return "unknown"
}

// Profile is what kind of ICC profile is embedded.
type Profile uint8

// The kinds of profile.
const (
	ProfileNone   Profile = iota
	ProfileSRGB           // the primaries and the tone curve of sRGB, whatever its name
	ProfileWide           // any other RGB profile, wider than sRGB or not
	ProfileGray           // a profile for grey samples
	ProfileCMYK           // a profile for four inks
	ProfileBroken         // pieces missing, no valid header, too large, or another colour space (Lab, ...)
)

// String returns "none", "srgb", "wide", "gray", "cmyk" or "broken".
func (p Profile) String() string {
	switch p {
	case ProfileNone:
		return "none"
	case ProfileSRGB:
		return "srgb"
	case ProfileWide:
		return "wide"
	case ProfileGray:
		return "gray"
	case ProfileCMYK:
		return "cmyk"
	}
	return "broken"
}

// Info is what a header says. Zero values mean that it says nothing, except where noted.
type Info struct {
	Format Format
	// Width and Height are stored pixels, before Orientation is applied; for GIF the logical screen.
	Width, Height int
	// ExtentWidth and ExtentHeight are how far the frames of a GIF seen so far reach, which may be less or more than
	// the logical screen; for others Width and Height.
	ExtentWidth, ExtentHeight int
	// Frames is 1 for still images, the announced number of an animated PNG (not verified, up to 2^32-1), the
	// number of frames seen so far of a GIF (0 for a GIF without any).
	Frames   int
	Animated bool
	// Alpha says that pixels may be transparent.
	Alpha bool
	// BitDepth is bits per sample: 1, 2, 4, 8, 12, 16; for palettes bits per index (GIF: always 8).
	BitDepth   int
	Components int // samples per pixel, 1 for palettes
	Color      Color
	// PaletteSize is the number of entries of the (first, global) palette.
	PaletteSize int
	// Orientation is 1..8 as in EXIF; 1 (upright) also when nothing or nonsense is stated.
	Orientation int
	// Progressive: JPEG in several passes, interlaced PNG, GIF with an interlaced frame.
	Progressive bool

	Profile     Profile
	ProfileName string // description of the profile, at most 128 bytes
	ProfileSize int    // bytes, unpacked
	// ProfileMatrix says that an RGB profile is given by primaries and curves and not (also) by look-up tables.
	ProfileMatrix bool

	// Copyright and Artist are the texts of EXIF (0x8298, 0x013B), else PNG's Copyright and Author. At most
	// 4 KiB each. From EXIF they are the bytes as stored, which need not be UTF-8; an inner NUL separates the
	// photographer's copyright from the editor's.
	Copyright, Artist string
	EXIF, XMP         bool // such metadata is there

	// Whole says that the end of the image was seen: EOI, IEND, or the trailer of a GIF.
	Whole bool

	// JPEG
	//
	// SOF is the second byte of the frame marker, 0xC0..0xCF; see [Info.Process].
	SOF byte
	// LateHeight: the frame header left the height open and a DNL segment gave it. Most decoders cannot follow.
	LateHeight bool
	// JPEGQuality is the libjpeg quality 1..100 whose tables fit best; 0 when unknown.
	JPEGQuality int
	Scans       int // seen so far
	// OnePass: the first scan holds all components of a sequential frame. Decoders read no further scan then.
	OnePass         bool
	RestartInterval int // in MCUs, 0 for none
	// GainMap: the file also holds what a bright screen needs to show it as HDR.
	GainMap bool
	// MPF: the file announces further pictures behind the first one (MPO, Apple, Ultra HDR).
	MPF bool
	// MPFPending: at least one of these begins beyond the bytes given, and may be a gain map.
	MPFPending bool

	// PNG
	//
	// OddColor names the chunk that gives colours a meaning other than sRGB's outside of an ICC profile ("gAMA",
	// "cHRM", "cICP"); "" for none. Decoders that ignore these chunks show such a file differently.
	OddColor string
	// BadCRC is the type of the first chunk before the pixel data whose checksum is wrong, of those that are read
	// here; "" for none.
	BadCRC string

	// GIF
	//
	// Loop is how often the animation plays again: -1 says nothing about it (plays once), 0 for ever.
	Loop               int
	Duration           time.Duration // sum of the delays as stored, over all frames seen
	MinDelay, MaxDelay time.Duration // of the frames seen
	EmptyFrames        int           // frames with a width or height of 0
	FramesWhole        int           // frames whose data was seen to its end
	// Uncovered says that at some time pixels show that no frame paints, while nothing announces transparency.
	// Browsers leave them transparent; decoders paint them black or in the background colour. A later frame may
	// still announce transparency.
	Uncovered bool

	// Junk says that behind the header something stands that is no chunk, block or segment where one should:
	// decoders stop there.
	Junk bool

	hierarchical bool // announced by DHP; the frame header that follows may be of any kind
}

// Process names how a JPEG's frame is coded.
type Process uint8

// The processes of ITU-T T.81 as far as decoders treat them differently.
const (
	ProcessNone Process = iota // no JPEG, or no frame seen
	Baseline
	Extended // sequential, up to 12 bits
	Progressive
	Lossless
	Hierarchical
	ArithmeticSequential
	ArithmeticProgressive
	ArithmeticLossless
)

// String returns "baseline", "extended", "progressive", "lossless", "hierarchical", "arithmetic", "arithmetic
// progressive", "arithmetic lossless" or "none".
func (p Process) String() string {
	switch p {
	case Baseline:
		return "baseline"
	case Extended:
		return "extended"
	case Progressive:
		return "progressive"
	case Lossless:
		return "lossless"
	case Hierarchical:
		return "hierarchical"
	case ArithmeticSequential:
		return "arithmetic"
	case ArithmeticProgressive:
		return "arithmetic progressive"
	case ArithmeticLossless:
		return "arithmetic lossless"
	}
	return "none"
}

// Process returns the coding process that SOF stands for.
func (i Info) Process() Process {
	if i.hierarchical {
		return Hierarchical
	}
	switch i.SOF {
	case 0xC0:
		return Baseline
	case 0xC1:
		return Extended
	case 0xC2:
		return Progressive
	case 0xC3:
		return Lossless
	case 0xC5, 0xC6, 0xC7, 0xCD, 0xCE, 0xCF:
		return Hierarchical
	case 0xC9:
		return ArithmeticSequential
	case 0xCA:
		return ArithmeticProgressive
	case 0xCB:
		return ArithmeticLossless
	}
	return ProcessNone
}

// Upright returns width and height as a viewer sees them, after Orientation.
func (i Info) Upright() (width, height int) {
	if i.Orientation >= 5 && i.Orientation <= 8 {
		return i.Height, i.Width
	}
	return i.Width, i.Height
}

// Pixels returns the pixels of all frames together, counting each frame of an animation as a whole picture: that is
// what a decoder holds. It saturates at 2^62.
func (i Info) Pixels() int64 {
	const most = 1 << 62
	w, h := int64(max(i.Width, i.ExtentWidth)), int64(max(i.Height, i.ExtentHeight))
	n := int64(max(i.Frames, 1))
	if w <= 0 || h <= 0 {
		return 0
	}
	if w > most/h || w*h > most/n {
		return most
	}
	return w * h * n
}
