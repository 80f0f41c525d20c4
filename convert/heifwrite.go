package convert

import (
	"encoding/binary"
	"slices"
	"strings"
)

// essentialProperties are those without which a picture cannot be shown as it is meant.
var essentialProperties = []string{"av1C", "hvcC", "clap"}

// keptProperties are those that say something about pixels, in the order in which they are written. What else an
// encoder adds is left out.
var keptProperties = []string{"ispe", "pixi", "av1C", "hvcC", "colr", "auxC", "clap"}

// nclx says what the samples of a picture mean, as in ITU-T H.273.
type nclx struct {
	primaries, transfer, matrix uint16
	full                        bool
}

// The numbers of H.273 that matter here.
const (
	cicpUnspecified = 2
	cicpBT709       = 1  // primaries of sRGB
	cicpSRGB        = 13 // transfer
	cicpBT601       = 6  // matrix of JPEG, and the one that libheif uses
)

// samples reads how an encoder has turned RGB into what it codes. Where it says nothing, the meaning is that of JPEG.
func (it heifItem) samples() nclx {
	for _, p := range it.properties {
		if p.kind == "colr" && len(p.content) >= 11 && string(p.content[:4]) == "nclx" {
			r := boxReader{b: p.content[4:]}
			return nclx{uint16(r.number(2)), uint16(r.number(2)), uint16(r.number(2)), r.number(1)&0x80 != 0} //nolint:gosec // two bytes
		}
	}
	return nclx{cicpUnspecified, cicpUnspecified, cicpBT601, true}
}

func (n nclx) property() heifProperty {
	b := []byte("nclx")
	for _, v := range []uint16{n.primaries, n.transfer, n.matrix} {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	full := byte(0)
	if n.full {
		full = 0x80
	}
	return heifProperty{kind: "colr", content: append(b, full)}
}

// colors are the properties that say what colours the picture has: those of its profile, or sRGB.
func (f heifFile) colors(it heifItem) []heifProperty {
	n := it.samples()
	if len(f.icc) > 0 {
		n.primaries, n.transfer = cicpUnspecified, cicpUnspecified
		return []heifProperty{{kind: "colr", content: append([]byte("prof"), f.icc...)}, n.property()}
	}
	n.primaries, n.transfer = cicpBT709, cicpSRGB
	return []heifProperty{n.property()}
}

// isAlpha reports whether an item is the alpha plane, or the cell that it is made of.
func (f heifFile) isAlpha(id uint32) bool {
	return f.alpha >= 0 && (f.items[f.alpha].id == id || slices.Contains(f.items[f.alpha].cells, id))
}

// tidied are the properties of an item that are written.
func (f heifFile) tidied(it heifItem) []heifProperty {
	var out []heifProperty
	transparency := f.isAlpha(it.id)
	for _, kind := range keptProperties {
		if kind == "colr" {
			if !transparency {
				out = append(out, f.colors(it)...)
			}
			continue
		}
		for _, p := range it.properties {
			if p.kind == kind {
				p.essential = slices.Contains(essentialProperties, kind)
				out = append(out, p)
			}
		}
	}
	return out
}

// appendBox writes a box around its parts; full boxes begin with version and flags among them.
func appendBox(out []byte, kind string, parts ...[]byte) []byte {
	n := 8
	for _, p := range parts {
		n += len(p)
	}
	out = binary.BigEndian.AppendUint32(out, uint32(n))
	out = append(out, kind...)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// full is the version and the flags of a box.
func full(version byte, flags uint32) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(version)<<24|flags)
}

func be16(n ...int) []byte {
	var b []byte
	for _, v := range n {
		b = binary.BigEndian.AppendUint16(b, uint16(v)) //nolint:gosec // counts and ids of at most heifItemsMost items
	}
	return b
}

// bytes puts the file together: ftyp, meta with everything that is known, mdat with the coded pixels.
func (f heifFile) bytes() []byte {
	w := heifWriter{f: f}
	out := appendBox(nil, "ftyp", []byte(f.brand), make([]byte, 4), []byte(strings.Join(f.compatible, "")))
	// The places are known once the length of meta is, which does not depend on them.
	head := len(out) + len(w.meta(0)) + 8
	out = append(out, w.meta(head)...)
	var parts [][]byte
	for _, it := range w.written() {
		if !it.inline {
			parts = append(parts, it.data)
		}
	}
	return appendBox(out, "mdat", parts...)
}

type heifWriter struct {
	f heifFile
}

// written are the items with their numbers, the Exif item behind all others.
func (w heifWriter) written() []heifItem {
	items := slices.Clone(w.f.items)
	if len(w.f.exif) > 0 {
		items = append(items, heifItem{kind: "Exif", hidden: true, data: append(make([]byte, 4), w.f.exif...)})
	}
	return items
}

// number is what the item at an index is called in the file.
func number(index int) int { return index + 1 }

// meta writes the box for coded pixels that begin at a place in the file.
func (w heifWriter) meta(at int) []byte {
	items := w.written()
	inline := slices.ContainsFunc(items, func(it heifItem) bool { return it.inline })
	version := byte(0)
	if inline {
		version = 1
	}
	iloc := append(full(version, 0), 0x44, 0x00) // offsets and lengths of 4 bytes
	iloc = append(iloc, be16(len(items))...)
	var idat []byte
	infos := append(full(0, 0), be16(len(items))...)
	for i, it := range items {
		start, method := at, 0
		if it.inline {
			start, method = len(idat), 1
			idat = append(idat, it.data...)
		} else {
			at += len(it.data)
		}
		iloc = append(iloc, be16(number(i))...)
		if inline {
			iloc = append(iloc, be16(method)...)
		}
		iloc = append(iloc, be16(0, 1)...)
		iloc = binary.BigEndian.AppendUint32(iloc, uint32(start))        //nolint:gosec // below 4 GiB, as all originals
		iloc = binary.BigEndian.AppendUint32(iloc, uint32(len(it.data))) //nolint:gosec // the same
		flags := uint32(0)
		if it.hidden {
			flags = 1
		}
		infos = appendBox(infos, "infe", full(2, flags), be16(number(i), 0), []byte(it.kind), []byte{0})
	}
	handler := append(full(0, 0), "\x00\x00\x00\x00pict\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	body := appendBox(full(0, 0), "hdlr", handler)
	body = appendBox(body, "pitm", full(0, 0), be16(number(w.f.primary)))
	if inline {
		body = appendBox(body, "idat", idat)
	}
	body = appendBox(body, "iloc", iloc)
	body = appendBox(body, "iinf", infos)
	body = appendBox(body, "iprp", w.properties())
	if refs := w.references(items); len(refs) > 4 {
		body = appendBox(body, "iref", refs)
	}
	return appendBox(nil, "meta", body)
}

// properties writes each property once, and which items have it.
func (w heifWriter) properties() []byte {
	var all []heifProperty
	ipma := binary.BigEndian.AppendUint32(full(0, 0), uint32(len(w.f.items))) //nolint:gosec // at most heifItemsMost
	for i, it := range w.f.items {
		properties := w.f.tidied(it)
		ipma = append(append(ipma, be16(number(i))...), byte(len(properties)))
		for _, p := range properties {
			at := slices.IndexFunc(all, func(q heifProperty) bool {
				return q.kind == p.kind && string(q.content) == string(p.content)
			})
			if at < 0 {
				at = len(all)
				all = append(all, p)
			}
			index := byte(at + 1) //nolint:gosec // 4 items have far fewer than 128
			if p.essential {
				index |= 0x80
			}
			ipma = append(ipma, index)
		}
	}
	var ipco []byte
	for _, p := range all {
		ipco = appendBox(ipco, p.kind, p.content)
	}
	return appendBox(appendBox(nil, "ipco", ipco), "ipma", ipma)
}

func (w heifWriter) references(items []heifItem) []byte {
	out := full(0, 0)
	for i, it := range items {
		switch {
		case it.kind == "Exif":
			out = appendBox(out, "cdsc", be16(number(i), 1, number(w.f.primary)))
		case len(it.cells) > 0:
			out = appendBox(out, "dimg", be16(number(i), 1, number(w.f.item(it.cells[0]))))
		}
		if i == w.f.alpha {
			out = appendBox(out, "auxl", be16(number(i), 1, number(w.f.primary)))
		}
	}
	return out
}
