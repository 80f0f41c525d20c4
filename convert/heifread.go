package convert

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"karui/convert/header"
)

// heifBox is one box; content is what follows its length and kind.
type heifBox struct {
	kind    string
	content []byte
	at      int // where content begins in the file
}

// splitBoxes takes apart a run of boxes that begins at a place in the file. Every byte must belong to one.
func splitBoxes(b []byte, at int) ([]heifBox, error) {
	var boxes []heifBox
	for len(b) > 0 {
		if len(b) < 8 {
			return nil, fmt.Errorf("%w: %d bytes where a box should begin", errHEIF, len(b))
		}
		// 0 (to the end) and 1 (a length of 64 bits) are not used by the encoder.
		n := int64(binary.BigEndian.Uint32(b))
		if n < 8 || n > int64(len(b)) {
			return nil, fmt.Errorf("%w: a box %q of %d bytes, and %d are there", errHEIF, b[4:8], n, len(b))
		}
		if len(boxes) == 4*heifPropertiesMost {
			return nil, fmt.Errorf("%w: over %d boxes in a row", errHEIF, len(boxes))
		}
		boxes = append(boxes, heifBox{string(b[4:8]), b[8:n], at + 8})
		b, at = b[n:], at+int(n)
	}
	return boxes, nil
}

// boxReader reads numbers; at the end, short is set and zeros come back.
type boxReader struct {
	b     []byte
	short bool
}

func (r *boxReader) take(n int) []byte {
	if r.short || n > len(r.b) {
		r.short = true
		return make([]byte, min(n, 8))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// number reads one of 0, 1, 2, 4 or 8 bytes.
func (r *boxReader) number(size int) uint64 {
	var n uint64
	for _, b := range r.take(size) {
		n = n<<8 | uint64(b)
	}
	return n
}

func (r *boxReader) id(version uint64) uint32 {
	if version == 0 {
		return uint32(r.number(2))
	}
	return uint32(r.number(4))
}

// text reads up to a zero byte.
func (r *boxReader) text() string {
	i := bytes.IndexByte(r.b, 0)
	if i < 0 {
		r.short = true
		return ""
	}
	s := string(r.b[:i])
	r.b = r.b[i+1:]
	return s
}

// heifReader collects what the boxes say.
type heifReader struct {
	file   []byte
	idat   heifBox
	data   [][2]int // where the contents of mdat boxes lie
	f      heifFile
	places map[uint32]heifPlace
	exifOf map[uint32]bool // items that describe the primary one
}

// heifPlace says where the bytes of an item lie.
type heifPlace struct {
	inline     bool
	start, end uint64
}

// parseHEIF takes a whole file apart, keeps the picture, its alpha plane, profile and Exif, and checks that sizes,
// places and contents agree. It does not decode. Format is AVIF or HEIC.
func parseHEIF(b []byte, format header.Format) (heifFile, error) {
	r := &heifReader{file: b, places: map[uint32]heifPlace{}, exifOf: map[uint32]bool{}}
	r.f.format, r.f.primary, r.f.alpha = format, -1, -1
	boxes, err := splitBoxes(b, 0)
	if err != nil {
		return heifFile{}, err
	}
	if len(boxes) == 0 || boxes[0].kind != "ftyp" {
		return heifFile{}, fmt.Errorf("%w: no ftyp box", errHEIF)
	}
	if err := r.brands(boxes[0].content); err != nil {
		return heifFile{}, err
	}
	metas := 0
	for _, box := range boxes[1:] {
		switch box.kind {
		case "mdat":
			r.data = append(r.data, [2]int{box.at, box.at + len(box.content)})
		case "meta":
			metas++
			err = r.meta(box)
		case "ftyp", "moov":
			err = fmt.Errorf("%w: a second ftyp, or a film", errHEIF)
		}
		if err != nil {
			return heifFile{}, err
		}
	}
	if metas != 1 {
		return heifFile{}, fmt.Errorf("%w: %d meta boxes", errHEIF, metas)
	}
	if err := r.fetch(); err != nil {
		return heifFile{}, err
	}
	return r.f, r.f.check()
}

func (r *heifReader) brands(b []byte) error {
	want := map[header.Format]string{header.AVIF: "avif", header.HEIC: "heic"}[r.f.format]
	if len(b) < 8 || len(b)%4 != 0 || len(b) > 128 || string(b[:4]) != want {
		return fmt.Errorf("%w: the brand is not %q", errHEIF, want)
	}
	r.f.brand = want
	for at := 8; at < len(b); at += 4 {
		r.f.compatible = append(r.f.compatible, string(b[at:at+4]))
	}
	if !slices.Contains(r.f.compatible, want) || !slices.Contains(r.f.compatible, "mif1") {
		return fmt.Errorf("%w: made for %s", errHEIF, strings.Join(r.f.compatible, ", "))
	}
	return nil
}

// meta reads the boxes about items, each at most once, in an order that lets later ones refer to earlier ones.
func (r *heifReader) meta(box heifBox) error {
	if len(box.content) < 4 {
		return fmt.Errorf("%w: a meta box of %d bytes", errHEIF, len(box.content))
	}
	inside, err := splitBoxes(box.content[4:], box.at+4)
	if err != nil {
		return err
	}
	by := map[string]heifBox{}
	for _, b := range inside {
		if _, twice := by[b.kind]; twice {
			return fmt.Errorf("%w: two boxes %q", errHEIF, b.kind)
		}
		by[b.kind] = b
	}
	r.idat = by["idat"]
	if h := by["hdlr"].content; len(h) < 12 || string(h[8:12]) != "pict" {
		return fmt.Errorf("%w: not of pictures", errHEIF)
	}
	for _, step := range []struct {
		kind string
		must bool
		read func([]byte) error
	}{
		{"iinf", true, r.itemInfo},
		{"pitm", true, r.primaryItem},
		{"iloc", true, r.locations},
		{"iprp", true, r.properties},
		{"iref", false, r.references},
	} {
		b, there := by[step.kind]
		if !there {
			if step.must {
				return fmt.Errorf("%w: no %s box", errHEIF, step.kind)
			}
			continue
		}
		if err := step.read(b.content); err != nil {
			return err
		}
	}
	return nil
}

func (r *heifReader) itemInfo(b []byte) error {
	rd := &boxReader{b: b}
	version := rd.number(1)
	rd.take(3)
	n := rd.id(version)
	boxes, err := splitBoxes(rd.b, 0)
	if err != nil {
		return err
	}
	if rd.short || len(boxes) != int(n) || n > heifItemsMost {
		return fmt.Errorf("%w: %d items announced, %d there, at most %d", errHEIF, n, len(boxes), heifItemsMost)
	}
	for _, box := range boxes {
		rd := &boxReader{b: box.content}
		version, flags := rd.number(1), rd.number(3)
		if box.kind != "infe" || version < 2 || version > 3 {
			return fmt.Errorf("%w: an item in a box %q of version %d", errHEIF, box.kind, version)
		}
		it := heifItem{hidden: flags&1 != 0}
		it.id = rd.id(version - 2)
		rd.take(2) // protection
		it.kind = string(rd.take(4))
		if rd.short || r.f.item(it.id) >= 0 {
			return fmt.Errorf("%w: item %d is cut off or there twice", errHEIF, it.id)
		}
		r.f.items = append(r.f.items, it)
	}
	return nil
}

func (r *heifReader) primaryItem(b []byte) error {
	rd := &boxReader{b: b}
	version := rd.number(1)
	rd.take(3)
	id := rd.id(version)
	if id == 0 && !rd.short && r.f.item(id) < 0 { // the numbers of items begin with 1
		return fmt.Errorf("%w: %w", errHEIF, errNoItems)
	}
	if r.f.primary = r.f.item(id); rd.short || r.f.primary < 0 {
		return fmt.Errorf("%w: the primary item %d is missing", errHEIF, id)
	}
	return nil
}

func (r *heifReader) locations(b []byte) error {
	rd := &boxReader{b: b}
	version := rd.number(1)
	rd.take(3)
	sizes, more := int(rd.number(1)), int(rd.number(1))
	offsetSize, lengthSize, baseSize, indexSize := sizes>>4, sizes&15, more>>4, more&15
	if version == 0 {
		indexSize = 0
	}
	for _, n := range []int{offsetSize, lengthSize, baseSize, indexSize} {
		if n != 0 && n != 4 && n != 8 || version > 2 {
			return fmt.Errorf("%w: places of %d bytes, version %d", errHEIF, n, version)
		}
	}
	items := rd.id(version / 2)
	if items > heifItemsMost {
		return fmt.Errorf("%w: places of %d items", errHEIF, items)
	}
	for range items {
		id := rd.id(version / 2)
		method := uint64(0)
		if version > 0 {
			method = rd.number(2) & 15
		}
		source, base, extents := rd.number(2), rd.number(baseSize), rd.number(2)
		if rd.short || method > 1 || source != 0 || extents != 1 {
			return fmt.Errorf("%w: item %d lies in %d parts, found by method %d in file %d", errHEIF, id, extents, method, source)
		}
		rd.take(indexSize)
		start := base + rd.number(offsetSize)
		length := rd.number(lengthSize)
		end := start + length
		if _, twice := r.places[id]; rd.short || twice || start < base || end <= start || end > 1<<40 {
			return fmt.Errorf("%w: item %d lies at %d, %d bytes", errHEIF, id, start, length)
		}
		r.places[id] = heifPlace{method == 1, start, end}
	}
	if rd.short {
		return fmt.Errorf("%w: iloc is cut off", errHEIF)
	}
	return nil
}

func (r *heifReader) properties(b []byte) error {
	boxes, err := splitBoxes(b, 0)
	if err != nil {
		return err
	}
	if len(boxes) < 2 || boxes[0].kind != "ipco" {
		return fmt.Errorf("%w: iprp without properties", errHEIF)
	}
	all, err := splitBoxes(boxes[0].content, 0)
	if err != nil {
		return err
	}
	if len(all) > heifPropertiesMost {
		return fmt.Errorf("%w: %d properties", errHEIF, len(all))
	}
	for _, box := range boxes[1:] {
		if box.kind != "ipma" {
			return fmt.Errorf("%w: a box %q among properties", errHEIF, box.kind)
		}
		if err := r.associations(box.content, all); err != nil {
			return err
		}
	}
	return nil
}

func (r *heifReader) associations(b []byte, all []heifBox) error {
	rd := &boxReader{b: b}
	version, flags := rd.number(1), rd.number(3)
	n := rd.number(4)
	if n > heifItemsMost {
		return fmt.Errorf("%w: properties of %d items", errHEIF, n)
	}
	for range n {
		id := rd.id(version)
		item := r.f.item(id)
		for range rd.number(1) {
			var index, essential uint64
			if flags&1 != 0 {
				index = rd.number(2)
				essential, index = index>>15, index&0x7fff
			} else {
				index = rd.number(1)
				essential, index = index>>7, index&0x7f
			}
			if rd.short || item < 0 || index > uint64(len(all)) {
				return fmt.Errorf("%w: property %d of item %d", errHEIF, index, id)
			}
			if index == 0 { // none
				continue
			}
			p := heifProperty{all[index-1].kind, essential != 0, all[index-1].content}
			if len(r.f.items[item].properties) == heifPropertiesMost {
				return fmt.Errorf("%w: over %d properties of item %d", errHEIF, heifPropertiesMost, id)
			}
			r.f.items[item].properties = append(r.f.items[item].properties, p)
		}
	}
	if rd.short {
		return fmt.Errorf("%w: ipma is cut off", errHEIF)
	}
	return nil
}

func (r *heifReader) references(b []byte) error {
	if len(b) < 4 {
		return fmt.Errorf("%w: iref of %d bytes", errHEIF, len(b))
	}
	version := uint64(b[0])
	boxes, err := splitBoxes(b[4:], 0)
	if err != nil {
		return err
	}
	for _, box := range boxes {
		rd := &boxReader{b: box.content}
		from := rd.id(version)
		item := r.f.item(from)
		n := rd.number(2)
		if rd.short || item < 0 || n > heifItemsMost {
			return fmt.Errorf("%w: item %d refers to %d others", errHEIF, from, n)
		}
		for range n {
			to := rd.id(version)
			if rd.short || r.f.item(to) < 0 {
				return fmt.Errorf("%w: item %d refers to item %d", errHEIF, from, to)
			}
			switch box.kind {
			case "dimg":
				r.f.items[item].cells = append(r.f.items[item].cells, to)
			case "auxl":
				r.f.items[item].of = to
			case "cdsc":
				r.exifOf[from] = true
			}
		}
	}
	return nil
}

// fetch finds the bytes of the items, and drops the items that are not shown.
func (r *heifReader) fetch() error {
	f := &r.f
	primary := f.items[f.primary].id
	var needed, metadata []heifItem
	need := func(it heifItem) {
		needed = append(needed, it)
		for _, c := range it.cells {
			if i := f.item(c); len(needed) < heifItemsMost && len(f.items[i].cells) == 0 {
				needed = append(needed, f.items[i])
			}
		}
	}
	need(f.items[f.primary])
	alpha := uint32(0)
	for _, it := range f.items {
		aux, _ := it.property("auxC")
		kind := (&boxReader{b: aux[min(len(aux), 4):]}).text()
		switch {
		case it.of == primary && (kind == alphaCICP || kind == alphaHEVC):
			if alpha != 0 {
				return fmt.Errorf("%w: two alpha planes", errHEIF)
			}
			alpha = it.id
			need(it)
		case it.kind == "Exif" && r.exifOf[it.id]:
			metadata = append(metadata, it)
		}
	}
	if len(metadata) > 1 {
		return fmt.Errorf("%w: %d Exif items", errHEIF, len(metadata))
	}
	f.items = needed
	f.primary, f.alpha = f.item(primary), -1
	if alpha != 0 {
		f.alpha = f.item(alpha)
	}
	for i := range f.items {
		var err error
		if f.items[i].data, f.items[i].inline, err = r.bytesOf(f.items[i].id); err != nil {
			return err
		}
	}
	for _, it := range metadata {
		data, _, err := r.bytesOf(it.id)
		if err != nil {
			return err
		}
		if len(data) < 4 || uint64(binary.BigEndian.Uint32(data)) > uint64(len(data)-4) {
			return fmt.Errorf("%w: an Exif item of %d bytes", errHEIF, len(data))
		}
		f.exif = data[4+binary.BigEndian.Uint32(data):]
	}
	for _, p := range f.items[f.primary].properties {
		if p.kind == "colr" && len(p.content) > 4 && (string(p.content[:4]) == "prof" || string(p.content[:4]) == "rICC") {
			f.icc = p.content[4:]
		}
	}
	return nil
}

func (r *heifReader) bytesOf(id uint32) (data []byte, inline bool, err error) {
	p, ok := r.places[id]
	if !ok {
		return nil, false, fmt.Errorf("%w: item %d is nowhere", errHEIF, id)
	}
	if p.inline {
		if p.end > uint64(len(r.idat.content)) {
			return nil, false, fmt.Errorf("%w: item %d lies behind the end of idat", errHEIF, id)
		}
		return r.idat.content[p.start:p.end], true, nil
	}
	for _, d := range r.data {
		if p.start >= uint64(d[0]) && p.end <= uint64(d[1]) {
			return r.file[p.start:p.end], false, nil
		}
	}
	return nil, false, fmt.Errorf("%w: item %d lies at %d to %d, outside of the data", errHEIF, id, p.start, p.end)
}
