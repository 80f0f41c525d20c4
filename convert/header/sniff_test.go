package header

import (
	"strings"
	"testing"
)

func ftyp(brands ...string) string {
	box := "ftyp" + brands[0] + "\x00\x00\x00\x00" + strings.Join(brands[1:], "")
	return string([]byte{0, 0, 0, byte(len(box) + 4)}) + box
}

var sniffCases = []struct {
	name, bytes string
	want        Format
}{
	{"jpeg", "\xff\xd8\xff\xe0\x00\x10JFIF", JPEG},
	{"jpeg that starts with tables", "\xff\xd8\xff\xdb", JPEG},
	{"jpeg mark without a marker behind", "\xff\xd8\x00\x00", Unknown},
	{"png", pngSignature + "\x00\x00\x00\rIHDR", PNG},
	{"png with its line ends changed", "\x89PNG\n\n\x1a\n", Unknown},
	{"gif 87a", "GIF87a\x01\x00", GIF},
	{"gif 89a", "GIF89a\x01\x00", GIF},
	{"gif of another version", "GIF88a\x01\x00", Unknown},
	{"webp", "RIFF\x10\x00\x00\x00WEBPVP8 ", WebP},
	{"wave", "RIFF\x10\x00\x00\x00WAVEfmt ", Unknown},
	{"avif", ftyp("avif", "mif1", "miaf"), AVIF},
	{"avif sequence", ftyp("avis", "msf1"), AVIF},
	{"avif behind mif1", ftyp("mif1", "avif"), AVIF},
	{"heic", ftyp("heic", "mif1"), HEIC},
	{"heic behind mif1", ftyp("mif1", "mif1", "heic"), HEIC},
	{"heic ten bits", ftyp("heix"), HEIC},
	{"heic sequence", ftyp("hevc", "msf1"), HEIC},
	{"structural brand alone", ftyp("mif1", "miaf"), HEIC},
	{"mp4", ftyp("isom", "mp42"), Unknown},
	{"brand behind the box", ftyp("isom") + "avif", Unknown},
	{"jxl codestream", "\xff\x0a\x00\x00", JXL},
	{"jxl container", "\x00\x00\x00\x0cJXL \x0d\x0a\x87\x0a", JXL},
	{"tiff little", "II*\x00\x08\x00\x00\x00", TIFF},
	{"tiff big", "MM\x00*\x00\x00\x00\x08", TIFF},
	{"bigtiff", "II+\x00\x08\x00\x00\x00", TIFF},
	{"bmp", "BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00", BMP},
	{"a text that begins with BM", "BM is short for bitmap, mostly", Unknown},
	{"pdf", "%PDF-1.7\n", PDF},
	{"svg", "<svg xmlns='http://www.w3.org/2000/svg'/>", SVG},
	{"svg behind everything", "\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <html> -->\n<!DOCTYPE svg PUBLIC \"a>b\" [<!ENTITY x '>'>]>\n<svg>", SVG},
	{"svg with a namespace prefix", "<s:svg xmlns:s='http://www.w3.org/2000/svg'>", SVG},
	{"html", "<!DOCTYPE html><html><svg/></html>", Unknown},
	{"other xml", "<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", Unknown},
	{"element that only begins so", "<svgfoo>", Unknown},
	{"svg in a comment", "<!-- <svg> --><p>", Unknown},
	{"json", "{\"error\":404}", Unknown},
	{"empty", "", Unknown},
}

func TestSniff(t *testing.T) {
	for _, c := range sniffCases {
		if got := Sniff([]byte(c.bytes)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A prefix is never taken for another format, and asks for more until it is known.
func TestSniffPrefixes(t *testing.T) {
	for _, c := range sniffCases {
		if c.want == Unknown {
			continue
		}
		for n := range len(c.bytes) {
			got, more := Sniff([]byte(c.bytes[:n])), SniffMore([]byte(c.bytes[:n]))
			if got != Unknown && got != c.want && !strings.Contains(c.name, "behind mif1") {
				t.Errorf("%s: %d bytes are taken for %v", c.name, n, got)
			}
			if got == Unknown && !more {
				t.Errorf("%s: gives up after %d bytes", c.name, n)
			}
			if got != Unknown && more {
				t.Errorf("%s: known as %v after %d bytes, and wants more", c.name, got, n)
			}
		}
	}
}

func TestSniffGivesUp(t *testing.T) {
	for _, text := range []string{
		"{\"error\": 404, \"message\": \"nothing\"}",
		"<html><head><title>404</title></head></html>",
		strings.Repeat("x", SniffLen),
		"<!--" + strings.Repeat("x", SniffLen),
		"GIF88a and so on, well beyond any header",
	} {
		if SniffMore([]byte(text)) {
			t.Errorf("%.20q...: still wants more", text)
		}
	}
}

func TestFormatNames(t *testing.T) {
	for f := JPEG; int(f) < len(names); f++ {
		if got, ok := ParseFormat(f.String()); !ok || got != f {
			t.Errorf("%v does not read back", f)
		}
		if !strings.Contains(f.ContentType(), "/") || f.Extension() == "" {
			t.Errorf("%v has type %q and extension %q", f, f.ContentType(), f.Extension())
		}
	}
	if _, ok := ParseFormat("unknown"); ok {
		t.Error("unknown is taken for a format")
	}
	if got := Format(200).String(); got != "unknown" {
		t.Errorf("Format(200) is %q", got)
	}
}

func TestHasTrailer(t *testing.T) {
	png := string(chunk("IEND"))
	for _, c := range []struct {
		name   string
		format Format
		tail   string
		want   bool
	}{
		{"jpeg", JPEG, "data\xff\xd9", true},
		{"jpeg with padding", JPEG, "data\xff\xd9\x00\x00\r\n", true},
		{"jpeg cut off", JPEG, "data\xff", false},
		{"jpeg with another file behind", JPEG, "\xff\xd9MotionPhoto", false},
		{"png", PNG, "x" + png, true},
		{"png cut in its checksum", PNG, png[:len(png)-1], false},
		{"gif", GIF, "x\x00;", true},
		{"gif cut off at a byte like its trailer", GIF, "x\x07;", false},
		{"svg", SVG, "</svg>\n", true},
		{"svg cut off", SVG, "</svg", false},
		{"webp has none", WebP, "\x00\x00", false},
		{"nothing", JPEG, "", false},
	} {
		if got := HasTrailer(c.format, []byte(c.tail)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
