package header

import (
	"encoding/binary"
	"testing"
)

// A photograph of 1 MP: metadata as a camera writes it, and the first 32 KiB of pixels.
func BenchmarkParseJPEGPrefix(b *testing.B) {
	be := binary.BigEndian
	photo := encodeJPEG(b, noise(1024, 1024), 85)
	meta := join(
		exifSegment(append(tiff(be, short(be, tagOrientation, 6), ascii(tagCopyright, "somebody")), make([]byte, 8000)...)),
		xmpSegment(string(make([]byte, 3000))),
		iccSegment(1, 1, append(srgbProfile(), make([]byte, 2500)...)),
	)
	file := join(soi, meta, photo[2:])
	prefix := file[:32<<10]
	b.ReportAllocs()
	for b.Loop() {
		if info, err := Parse(prefix); err != nil || info.Orientation != 6 {
			b.Fatal(info, err)
		}
	}
}

func BenchmarkParseJPEGWhole(b *testing.B) {
	photo := encodeJPEG(b, noise(1024, 1024), 85)
	b.SetBytes(int64(len(photo)))
	b.ReportAllocs()
	for b.Loop() {
		if info, err := Parse(photo); err != nil || !info.Whole {
			b.Fatal(info, err)
		}
	}
}

// The worst GIF: 8 MiB of sub-blocks of one byte.
func BenchmarkParseGIFTinyBlocks(b *testing.B) {
	file := join(gifScreen(10, 8), []byte("!\xfe"))
	for range 4 << 20 {
		file = append(file, 1, 'x')
	}
	file = join(file, []byte{0}, gifFrame(0, 0, 10, 8), gifEnd)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if info, err := Parse(file); err != nil || !info.Whole {
			b.Fatal(info, err)
		}
	}
}

func BenchmarkSniff(b *testing.B) {
	page := []byte("<!DOCTYPE html><html><head><title>404</title></head></html>")
	b.ReportAllocs()
	for b.Loop() {
		if Sniff(page) != Unknown {
			b.Fatal("taken for an image")
		}
	}
}
