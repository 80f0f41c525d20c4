package header

import (
	"bytes"
	"testing"
)

// Files that would cost the square of their size, if each call began again: here one call per byte is made.
func TestScannerIsLinear(t *testing.T) {
	const many = 20_000
	manyScans := [][]byte{soi, sof(0xC2, 8, 8, 6, 1)}
	for range 3000 {
		manyScans = append(manyScans, sos(1))
	}
	segments := bytes.Repeat(seg(mAPP0+13), many)
	second := join(soi, segments, sof(0xC0, 8, 8, 6, 1), sos(1), eoi)
	for name, b := range map[string][]byte{
		"jpeg of 3000 scans":        join(append(manyScans, eoi)...),
		"jpeg of tiny segments":     smallJPEG(segments),
		"jpeg of fill bytes":        join(soi, bytes.Repeat([]byte{0xFF}, many), sof(0xC0, 8, 8, 6, 1), sos(1), bytes.Repeat([]byte{0xFF}, many), eoi),
		"jpeg of stuffed bytes":     join(soi, sof(0xC0, 8, 8, 6, 1), sos(1), bytes.Repeat([]byte{0xFF, 0}, many), eoi),
		"jpeg with a long second":   withPictures(second),
		"png of tiny chunks":        smallPNG(bytes.Repeat(chunk("tEXt", 'a', 0), many)),
		"png of tiny pixel chunks":  join([]byte(pngSignature), ihdr(5, 4, 8, 2, 0), bytes.Repeat(chunk("IDAT", 1), many), chunk("IEND")),
		"png of bad packed texts":   smallPNG(bytes.Repeat(chunk("zTXt", []byte("Author\x00\x00\x78\x9c")...), many)),
		"gif of tiny blocks":        join(gifScreen(10, 8), []byte("!\xfe"), bytes.Repeat([]byte{1, 'x'}, many), []byte{0}, gifFrame(0, 0, 10, 8), gifEnd),
		"gif of empty extensions":   join(gifScreen(10, 8), bytes.Repeat([]byte("!\xfe\x00"), many), gifFrame(0, 0, 10, 8), gifEnd),
		"gif of many frames":        join(gifScreen(10, 8), bytes.Repeat(gifFrame(0, 0, 10, 8), many), gifEnd),
		"gif of one-pixel sequence": join(gifScreen(10, 8), bytes.Repeat(join(gifControl(0, true, 1), gifFrame(0, 0, 1, 1)), many/2), gifEnd),
	} {
		want, wantErr := Parse(b)
		if wantErr != nil || !want.Whole {
			t.Errorf("%s: %+v (%v)", name, want, wantErr)
		}
		var s Scanner
		var got Info
		for n := range len(b) + 1 {
			got, _ = s.Scan(b[:n])
		}
		if got != want {
			t.Errorf("%s: byte by byte\n got %+v\nwant %+v", name, got, want)
		}
	}
}

// The answer of a Scanner holds nothing of the bytes it was given.
func TestScannerKeepsNothing(t *testing.T) {
	b := smallPNG(chunk("tEXt", []byte("Copyright\x00mine")...))
	info, err := Parse(b)
	clear(b)
	if err != nil || info.Copyright != "mine" {
		t.Errorf("%q (%v)", info.Copyright, err)
	}
}

func TestInfoSizes(t *testing.T) {
	for _, c := range []struct {
		info Info
		want int64
	}{
		{Info{Width: 10, Height: 20, Frames: 1}, 200},
		{Info{Width: 10, Height: 20}, 200},
		{Info{Width: 10, Height: 20, Frames: 7}, 1400},
		{Info{Width: 10, Height: 20, ExtentWidth: 30, Frames: 2}, 1200},
		{Info{Width: 0, Height: 20, Frames: 1}, 0},
		{Info{Width: 1<<31 - 1, Height: 1<<31 - 1, Frames: 1<<32 - 1}, 1 << 62},
	} {
		if got := c.info.Pixels(); got != c.want {
			t.Errorf("%+v: %d pixels, want %d", c.info, got, c.want)
		}
	}
}
