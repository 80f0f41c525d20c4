package convert

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"karui/convert/header"
)

// heifSamples are files as libheif 1.15 writes them: a picture of 40 x 24 px, and one of 33 x 21 px with an alpha plane.
var heifSamples = []struct {
	name          string
	format        header.Format
	width, height int
	alpha         bool
}{
	{"plain.avif", header.AVIF, 40, 24, false},
	{"alpha.avif", header.AVIF, 33, 21, true},
	{"plain.heic", header.HEIC, 40, 24, false},
	{"alpha.heic", header.HEIC, 33, 21, true}, // odd sides: a grid of one cell
}

func parseEncoded(t testing.TB, name string, format header.Format) (heifFile, []byte) {
	t.Helper()
	b := read(t, filepath.Join("testdata", "heif", name))
	f, err := parseHEIF(b, format)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return f, b
}

func TestHEIFIsTidied(t *testing.T) {
	for _, c := range heifSamples {
		f, raw := parseEncoded(t, c.name, c.format)
		if f.width != c.width || f.height != c.height || (f.alpha >= 0) != c.alpha {
			t.Errorf("%s: %d x %d px, alpha %d", c.name, f.width, f.height, f.alpha)
		}
		if len(f.exif) == 0 || !bytes.Contains(raw, []byte("Exif")) {
			t.Errorf("%s: libvips made no Exif up, so that this tests nothing", c.name)
		}
		f.icc, f.exif = nil, nil
		plain := f.bytes()
		if bytes.Contains(plain, []byte("Exif")) || bytes.Contains(plain, []byte("prof")) || len(plain) >= len(raw) {
			t.Errorf("%s: %d of %d bytes, with something that was to be dropped", c.name, len(plain), len(raw))
		}
		// sRGB, the matrix that the encoder used, full range.
		if !bytes.Contains(plain, []byte("colrnclx\x00\x01\x00\x0d\x00\x06\x80")) {
			t.Errorf("%s: not sRGB", c.name)
		}
		f.icc, f.exif = []byte("a profile"), copyrightEXIF([]byte("Ann"), []byte("by Ann"))
		full := f.bytes()
		got, err := parseHEIF(full, c.format)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if string(got.icc) != "a profile" || !bytes.Equal(got.exif, f.exif) {
			t.Errorf("%s: profile %q, Exif %q", c.name, got.icc, got.exif)
		}
		if !bytes.Contains(full, []byte("colrnclx\x00\x02\x00\x02\x00\x06\x80")) {
			t.Errorf("%s: a profile, and colours besides it", c.name)
		}
		if len(got.items) != len(f.items) || got.width != f.width || got.height != f.height {
			t.Fatalf("%s: %+v", c.name, got)
		}
		for i := range f.items {
			if !bytes.Equal(got.items[i].data, f.items[i].data) || got.items[i].kind != f.items[i].kind {
				t.Errorf("%s: item %d is another one", c.name, i)
			}
		}
	}
}

// Whatever is cut off or hangs on, the file is not whole.
func TestTornHEIF(t *testing.T) {
	for _, c := range heifSamples {
		f, raw := parseEncoded(t, c.name, c.format)
		for _, b := range [][]byte{raw, f.bytes()} {
			for n := range b {
				if _, err := inspect(c.format, b[:n]); err == nil {
					t.Fatalf("%s: the first %d of %d bytes pass", c.name, n, len(b))
				}
			}
			if _, err := inspect(c.format, append(bytes.Clone(b), 0)); err == nil {
				t.Errorf("%s: passes with a byte more", c.name)
			}
			if _, err := inspect(c.format, b); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

func TestForeignHEIF(t *testing.T) {
	f, _ := parseEncoded(t, "plain.avif", header.AVIF)
	whole := f.bytes()
	change := func(old, with string) []byte {
		b := bytes.Replace(whole, []byte(old), []byte(with), 1)
		if bytes.Equal(b, whole) {
			t.Fatalf("no %q in there", old)
		}
		return b
	}
	first := f.items[0]
	with := func(set func(*heifItem)) []byte {
		it := first
		it.properties = append([]heifProperty(nil), first.properties...)
		set(&it)
		g := f
		g.items = []heifItem{it}
		return g.bytes()
	}
	alpha, _ := parseEncoded(t, "alpha.avif", header.AVIF)
	size := func(w, h uint32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(make([]byte, 4), w), h)
	}
	setSize := func(it *heifItem, w, h uint32) {
		for i := range it.properties {
			if it.properties[i].kind == "ispe" {
				it.properties[i].content = size(w, h)
			}
		}
	}
	other := alpha
	other.items = append([]heifItem(nil), alpha.items...)
	plane := &other.items[alpha.alpha]
	plane.properties = append([]heifProperty(nil), plane.properties...)
	setSize(plane, 8, 8)

	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"nothing":                  {nil, "no ftyp"},
		"a JPEG":                   {[]byte("\xff\xd8\xff\xe0aaaaaaaa"), "a box"},
		"another brand":            {change("ftypavif", "ftypheic"), "the brand"},
		"a sequence":               {change("ftypavif", "ftypavis"), "the brand"},
		"a film":                   {append(bytes.Clone(whole), "\x00\x00\x00\x08moov"...), "film"},
		"two meta boxes":           {append(bytes.Clone(whole), "\x00\x00\x00\x0cmeta\x00\x00\x00\x00"...), ""},
		"no pictures":              {change("pict", "soun"), "not of pictures"},
		"no primary item":          {change("pitm", "free"), "no pitm"},
		"no places":                {change("iloc", "free"), "no iloc"},
		"no properties":            {change("iprp", "free"), "no iprp"},
		"no items":                 {change("iinf", "free"), "no iinf"},
		"data under another name":  {change("mdat", "free"), "outside of the data"},
		"another codec":            {change("av01", "hvc1"), "of the kind"},
		"no configuration":         {change("av1C", "xv1C"), "says nothing about its code"},
		"no size":                  {change("ispe", "xspe"), "has no size"},
		"a size of nothing":        {with(func(it *heifItem) { setSize(it, 0, 24) }), "0 x 24"},
		"a size out of all reason": {with(func(it *heifItem) { setSize(it, 1<<31, 24) }), "2147483648 x 24"},
		"cut-off code": {with(func(it *heifItem) {
			it.data = it.data[:len(it.data)-1]
		}), "a unit of"},
		"code behind the code": {with(func(it *heifItem) {
			it.data = append(bytes.Clone(it.data), 0)
		}), "where a unit should begin"},
		"no code":                        {with(func(it *heifItem) { it.data = []byte{0x12, 0x00} }), "no picture"},
		"an alpha plane of another size": {other.bytes(), "an alpha plane of 8 x 8 px"},
	} {
		_, err := parseHEIF(c.b, header.AVIF)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// What is to be turned by the viewer would be seen turned twice.
	for _, kind := range []string{"irot", "imir"} {
		g := f
		it := first
		it.properties = append([]heifProperty{{kind, true, []byte{1}}}, first.properties...)
		g.items = []heifItem{it}
		if err := g.check(); err == nil || !strings.Contains(err.Error(), "turned") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestClap(t *testing.T) {
	box := func(n ...int32) []byte {
		var b []byte
		for _, v := range n {
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		w, h int
		ok   bool
	}{
		{"right and lower edge", box(33, 1, 21, 1, -1, 2, -1, 2), 33, 21, true},
		{"three and nothing", box(31, 1, 22, 1, -3, 2, 0, 1), 31, 22, true},
		{"left edge", box(33, 1, 21, 1, 1, 2, -1, 2), 0, 0, false},
		{"more than is there", box(35, 1, 21, 1, 1, 2, -1, 2), 0, 0, false},
		{"nothing", box(0, 1, 21, 1, -17, 1, -1, 2), 0, 0, false},
		{"a fraction", box(67, 2, 21, 1, -1, 2, -1, 2), 0, 0, false},
		{"by zero", box(33, 1, 21, 1, 0, 0, 0, 0), 0, 0, false},
		{"cut off", box(33, 1, 21, 1, -1, 2, -1), 0, 0, false},
	} {
		w, h, err := clapped(c.b, 34, 22)
		if w != c.w || h != c.h || (err == nil) != c.ok {
			t.Errorf("%s: %d x %d, %v", c.name, w, h, err)
		}
	}
}

// Nothing that is read ends the process or is put together to something else.
func FuzzHEIF(f *testing.F) {
	for _, c := range heifSamples {
		file, raw := parseEncoded(f, c.name, c.format)
		f.Add(raw, c.format == header.AVIF)
		file.icc = []byte("profile")
		f.Add(file.bytes(), c.format == header.AVIF)
	}
	f.Fuzz(func(t *testing.T, b []byte, avif bool) {
		format := header.HEIC
		if avif {
			format = header.AVIF
		}
		file, err := parseHEIF(b, format)
		if err != nil {
			return
		}
		again, err := parseHEIF(file.bytes(), format)
		if err != nil {
			t.Fatalf("read, written, and then: %v", err)
		}
		if again.width != file.width || again.height != file.height || len(again.items) != len(file.items) ||
			!bytes.Equal(again.icc, file.icc) || !bytes.Equal(again.exif, file.exif) {
			t.Fatalf("read as %+v, written and read as %+v", file, again)
		}
	})
}
