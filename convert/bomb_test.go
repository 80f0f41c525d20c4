package convert

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"karui/convert/header"
)

// bombPNG is a PNG of one colour, of 1 bit a pixel: as many pixels as one likes in next to no bytes. Extra chunks come
// behind the header.
func bombPNG(t *testing.T, width, height int, extra ...[]byte) []byte {
	t.Helper()
	ihdr := binary.BigEndian.AppendUint32(nil, uint32(width))  //nolint:gosec // small
	ihdr = binary.BigEndian.AppendUint32(ihdr, uint32(height)) //nolint:gosec // small
	out := appendChunk([]byte("\x89PNG\r\n\x1a\n"), "IHDR", append(ihdr, 1, 0, 0, 0, 0))
	for _, chunk := range extra {
		out = append(out, chunk...)
	}
	out = appendChunk(out, "IDAT", zipped(t, height*(1+(width+7)/8)))
	return appendChunk(out, "IEND", nil)
}

// zipped is so many zeros, compressed.
func zipped(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, zeros{}, int64(n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// framesGIF is an animation of tiny frames on a canvas.
func framesGIF(t *testing.T, width, height, frames int) []byte {
	t.Helper()
	dot := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.Black, color.White})
	g := &gif.GIF{Config: image.Config{ColorModel: dot.Palette, Width: width, Height: height}}
	for range frames {
		g.Image, g.Delay = append(g.Image, dot), append(g.Delay, 4)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Files that would unpack to far more than they are end at their header: in no time, in no memory, and in no worker,
// of which there is none here.
func TestBombsEndAtTheirHeader(t *testing.T) {
	photo := samplePhoto()
	frame := bytes.Index(photo, []byte{0xff, 0xc0})
	if frame < 0 {
		t.Fatal("the photo is not a baseline JPEG")
	}
	huge := bytes.Clone(photo)
	copy(huge[frame+5:], []byte{0xff, 0xdc, 0xff, 0xdc}) // height and width 65500
	canvas := framesGIF(t, 65000, 65000, 1)
	zip := zipped(t, 256<<20)
	for _, c := range []struct {
		name   string
		source []byte
		code   Code
	}{
		{"PNG of 256 MP", bombPNG(t, 16000, 16000), TooManyPixels},
		{"PNG just over 64 MP", bombPNG(t, 8001, 8000), TooManyPixels},
		{"PNG as wide as can be", bombPNG(t, 1<<30, 1), ""},
		{"PNG with a profile of 256 MB", bombPNG(t, 8001, 8000, appendChunk(nil, "iCCP", append([]byte("x\x00\x00"), zip...))), ""},
		{"PNG with a text of 256 MB", bombPNG(t, 8001, 8000, appendChunk(nil, "zTXt", append([]byte("Copyright\x00\x00"), zip...))), TooManyPixels},
		{"JPEG of 4,290 MP", huge, TooManyPixels},
		{"GIF of 4,225 MP", canvas, TooManyPixels},
		{"GIF of 4,000 frames of 0.04 MP", framesGIF(t, 200, 200, 4000), TooManyPixels},
		{"GIF of 60,000 frames", framesGIF(t, 1, 1, 60_000), TooManyFrames},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPool(t, func(c *Config) { c.Workers = 1 }, WithCommand("/nowhere/karui"))
			for _, f := range []header.Format{header.WebP, header.AVIF, header.HEIC} {
				opt := webpOptions(80)
				opt.Formats = []header.Format{f}
				r := convertOne(t, p, c.source, opt)
				if code := r.Decision.Code; c.code != "" && code != c.code || code == Unavailable || !r.Decision.Settled || r.Body != nil {
					t.Errorf("%s: %+v", f, r.Decision)
				}
			}
			cpu, allocated := costOf(func() { PlanWhole(c.source, webpOptions(80), DefaultConfig()) })
			t.Logf("%d bytes: %s of CPU time, %d KiB allocated", len(c.source), cpu, allocated>>10)
			most := 50 * time.Millisecond
			if raceDetector {
				most *= 20
			}
			if cpu > most || allocated > 50<<20 {
				t.Errorf("%s of CPU time and %d MiB", cpu, allocated>>20)
			}
		})
	}
}

// costOf is the least CPU time of some calls, and what one allocates in all.
func costOf(f func()) (time.Duration, uint64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least := time.Duration(1<<63 - 1)
	for range 5 {
		before := threadCPUUsed()
		f()
		least = min(least, threadCPUUsed()-before)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return least, after.TotalAlloc - before.TotalAlloc
}

func threadCPUUsed() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Decisions are for people too: they name the numbers.
func TestBombsAreNamed(t *testing.T) {
	_, plan := PlanWhole(bombPNG(t, 16000, 16000), webpOptions(80), DefaultConfig())
	if want := fmt.Sprint(16000); !strings.Contains(plan.Decision.Reason, want) || !strings.Contains(plan.Decision.Reason, "256") {
		t.Errorf("%q", plan.Decision.Reason)
	}
}
