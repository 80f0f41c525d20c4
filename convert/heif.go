package convert

import (
	"encoding/binary"
	"errors"
	"fmt"

	"karui/convert/header"
)

// The container of AVIF and HEIC (ISO/IEC 23008-12 and 14496-12): boxes that say which items there are, what belongs
// to them and where their bytes lie.
//
// As with WebP, the encoder's output is taken apart and put together again, since what goes into the file besides
// pixels is ours to say. libheif writes an Exif item that libvips makes up, calls profiles restricted, and leaves open
// what the colours mean.

var errHEIF = errors.New("not a whole HEIF file")

// errNoItems is a file that names no picture as its own, which libheif writes without
// an error where its encoder made nothing: so does x265 of some that are very thin.
var errNoItems = errors.New("it holds no picture")

// heifFile is an AVIF or HEIC of one picture.
type heifFile struct {
	format        header.Format
	brand         string
	compatible    []string
	width, height int
	primary       int // its index in items
	alpha         int // that of the alpha plane, -1 without one
	items         []heifItem
	// icc and exif (a TIFF file) are what travels with the pixels.
	icc, exif []byte
}

// heifItem is a coded picture, or the grid that a coded picture is a cell of.
type heifItem struct {
	id     uint32
	kind   string // av01, hvc1, grid
	hidden bool
	// inline: the bytes lie in the meta box, which is where a grid's description is expected.
	inline     bool
	data       []byte
	properties []heifProperty
	// cells are the items that a grid is made of, of the picture that an alpha plane belongs to.
	cells []uint32
	of    uint32
}

// heifProperty is one box of what is said about an item, as in the file.
type heifProperty struct {
	kind      string
	essential bool
	content   []byte
}

// Bounds of what is read. The encoder writes 4 items with 5 properties each, at most.
const (
	heifItemsMost      = 16
	heifPropertiesMost = 64
)

// Auxiliary types that mean alpha: of AVIF and newer files, and of HEIC.
const (
	alphaCICP = "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha"
	alphaHEVC = "urn:mpeg:hevc:2015:auxid:1"
)

func (it heifItem) property(kind string) ([]byte, bool) {
	for _, p := range it.properties {
		if p.kind == kind {
			return p.content, true
		}
	}
	return nil, false
}

// size is what the property ispe says, within what any picture here can have.
func (it heifItem) size() (width, height int, err error) {
	p, ok := it.property("ispe")
	if !ok || len(p) != 12 {
		return 0, 0, fmt.Errorf("%w: item %d has no size", errHEIF, it.id)
	}
	w, h := binary.BigEndian.Uint32(p[4:]), binary.BigEndian.Uint32(p[8:])
	const most = 1 << 16
	if w == 0 || h == 0 || w > most || h > most {
		return 0, 0, fmt.Errorf("%w: item %d has a size of %d x %d", errHEIF, it.id, w, h)
	}
	return int(w), int(h), nil
}

func (f heifFile) item(id uint32) int {
	for i := range f.items {
		if f.items[i].id == id {
			return i
		}
	}
	return -1
}

// coded says which items hold the pictures of a format.
func codedKind(f header.Format) (kind, configuration string) {
	if f == header.AVIF {
		return "av01", "av1C"
	}
	return "hvc1", "hvcC"
}

// check looks whether the items are one picture that any viewer of the format shows as it is meant: coded in one
// piece, with its size, not to be turned, with at most an alpha plane of that size. It decodes nothing, but every byte
// of the coded pictures must belong to a unit of their code.
func (f *heifFile) check() error {
	if f.primary < 0 {
		return fmt.Errorf("%w: no primary picture", errHEIF)
	}
	w, h, err := f.checkPicture(f.primary)
	if err != nil {
		return err
	}
	f.width, f.height = w, h
	if f.alpha < 0 {
		return nil
	}
	aw, ah, err := f.checkPicture(f.alpha)
	if err != nil {
		return err
	}
	if aw != w || ah != h {
		return fmt.Errorf("%w: an alpha plane of %d x %d px for a picture of %d x %d", errHEIF, aw, ah, w, h)
	}
	return nil
}

func (f *heifFile) checkPicture(index int) (width, height int, err error) {
	it := f.items[index]
	for _, turned := range []string{"irot", "imir"} {
		if _, ok := it.property(turned); ok {
			return 0, 0, fmt.Errorf("%w: item %d is to be turned (%s)", errHEIF, it.id, turned)
		}
	}
	if width, height, err = it.size(); err != nil {
		return 0, 0, err
	}
	if it.kind != "grid" {
		if width, height, err = f.checkCoded(it); err != nil {
			return 0, 0, err
		}
		clap, ok := it.property("clap")
		if !ok {
			return width, height, nil
		}
		return clapped(clap, width, height)
	}
	if len(it.cells) != 1 || len(it.data) != 8 || it.data[0] != 0 || it.data[1] != 0 || it.data[2] != 0 || it.data[3] != 0 {
		return 0, 0, fmt.Errorf("%w: a grid of %d cells, described by %x", errHEIF, len(it.cells), it.data)
	}
	gw, gh := int(binary.BigEndian.Uint16(it.data[4:])), int(binary.BigEndian.Uint16(it.data[6:]))
	cell := f.item(it.cells[0])
	if cell < 0 {
		return 0, 0, fmt.Errorf("%w: a grid of item %d, which is missing", errHEIF, it.cells[0])
	}
	cw, ch, err := f.checkCoded(f.items[cell])
	if err != nil {
		return 0, 0, err
	}
	if gw != width || gh != height || cw < gw || ch < gh || cw > gw+64 || ch > gh+64 {
		return 0, 0, fmt.Errorf("%w: a grid of %d x %d px in an item of %d x %d, its cell %d x %d", errHEIF, gw, gh, width, height, cw, ch)
	}
	return width, height, nil
}

// checkCoded looks at an item of coded pixels.
func (f *heifFile) checkCoded(it heifItem) (width, height int, err error) {
	kind, configuration := codedKind(f.format)
	if it.kind != kind {
		return 0, 0, fmt.Errorf("%w: item %d is of the kind %q", errHEIF, it.id, it.kind)
	}
	if c, ok := it.property(configuration); !ok || len(c) < 4 {
		return 0, 0, fmt.Errorf("%w: item %d says nothing about its code", errHEIF, it.id)
	}
	if width, height, err = it.size(); err != nil {
		return 0, 0, err
	}
	if f.format == header.AVIF {
		err = checkOBUs(it.data)
	} else {
		err = checkNALs(it.data)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: item %d: %w", errHEIF, it.id, err)
	}
	return width, height, nil
}

// clapped is the size of a picture whose right and lower edge are cut off, as encoders do with sides that are no
// multiple of their blocks.
func clapped(b []byte, width, height int) (int, int, error) {
	if len(b) != 32 {
		return 0, 0, fmt.Errorf("%w: clap of %d bytes", errHEIF, len(b))
	}
	n := func(i int) int64 { return int64(int32(binary.BigEndian.Uint32(b[4*i:]))) } //nolint:gosec // signed as stored
	w, h := n(0), n(2)
	if n(1) != 1 || n(3) != 1 || w < 1 || h < 1 || w > int64(width) || h > int64(height) {
		return 0, 0, fmt.Errorf("%w: clap of %d/%d x %d/%d in %d x %d px", errHEIF, w, n(1), h, n(3), width, height)
	}
	// The offset is that of the centres: (w - width)/2 keeps the left edge.
	if !sameRatio(n(4), n(5), w-int64(width), 2) || !sameRatio(n(6), n(7), h-int64(height), 2) {
		return 0, 0, fmt.Errorf("%w: clap does not keep the upper left corner", errHEIF)
	}
	return int(w), int(h), nil
}

func sameRatio(a, b, c, d int64) bool { return b != 0 && a*d == c*b }

// checkNALs steps through the units of HEVC, each behind its length, and wants one with a picture.
func checkNALs(b []byte) error {
	pictures := 0
	for at := 0; at < len(b); {
		if len(b)-at < 4+2 {
			return fmt.Errorf("%d bytes where a unit should begin", len(b)-at)
		}
		n := int64(binary.BigEndian.Uint32(b[at:]))
		if n < 2 || n > int64(len(b)-at-4) {
			return fmt.Errorf("a unit of %d bytes, and %d are there", n, len(b)-at-4)
		}
		if kind := b[at+4] >> 1 & 0x3f; kind >= 16 && kind <= 21 { // pictures that need no other
			pictures++
		}
		at += 4 + int(n)
	}
	if pictures == 0 {
		return errors.New("no picture")
	}
	return nil
}

// checkOBUs steps through the units of AV1, each with its length, and wants one with a picture.
func checkOBUs(b []byte) error {
	const (
		frameHeader = 3
		frame       = 6
	)
	pictures := 0
	for at := 0; at < len(b); {
		first := b[at]
		at++
		if first&0x80 != 0 || first&0x02 == 0 {
			return fmt.Errorf("0x%02x where a unit should begin", first)
		}
		if first&0x04 != 0 {
			at++
		}
		n, size, ok := leb128(b[min(at, len(b)):])
		if !ok || n > int64(len(b)-at-size) {
			return fmt.Errorf("a unit of %d bytes, and %d are there", n, len(b)-at-size)
		}
		if kind := first >> 3 & 0x0f; kind == frame || kind == frameHeader {
			pictures++
		}
		at += size + int(n)
	}
	if pictures == 0 {
		return errors.New("no picture")
	}
	return nil
}

// leb128 reads a number of at most 32 bits, and how many bytes it takes.
func leb128(b []byte) (n int64, size int, ok bool) {
	for i := range min(len(b), 5) {
		n |= int64(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			return n, i + 1, n < 1<<32
		}
	}
	return 0, 0, false
}
