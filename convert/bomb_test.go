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

// zipped is so many zeros or up to 1 MiB more, compressed: the same block again and again, since compressing them all
// takes longer than anything that is tested here.
func zipped(t *testing.T, n int) []byte {
	t.Helper()
	const part = 1 << 20
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]int
	for i := range ends {
		if _, err := w.Write(make([]byte, part)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		ends[i] = b.Len()
	}
	parts := (n + part - 1) / part
	out := append(b.Bytes()[:ends[0]:ends[0]], bytes.Repeat(b.Bytes()[ends[0]:ends[1]], max(parts-1, 0))...)
	out = append(out, 1, 0, 0, 0xff, 0xff)          // an empty last block
	sum := uint32(max(parts, 1)*part%65521)<<16 | 1 //nolint:gosec // below 65521
	out = binary.BigEndian.AppendUint32(out, sum)   // Adler-32
	return out
}

// framesGIF is an animation of the same tiny frame on a canvas.
func framesGIF(t *testing.T, width, height, frames int) []byte {
	t.Helper()
	dot := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.Black, color.White})
	encoded := func(n int) []byte {
		g := &gif.GIF{Config: image.Config{ColorModel: dot.Palette, Width: width, Height: height}}
		for range n {
			g.Image, g.Delay = append(g.Image, dot), append(g.Delay, 4)
		}
		var b bytes.Buffer
		if err := gif.EncodeAll(&b, g); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if frames == 1 {
		return encoded(1)
	}
	two, three := encoded(2), encoded(3)
	one := two[len(two)-1-(len(three)-len(two)) : len(two)-1] // the last frame, before the trailer
	return append(append(bytes.Clone(two[:len(two)-1]), bytes.Repeat(one, frames-2)...), two[len(two)-1])
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

func TestZippedZerosAreWhatTheySay(t *testing.T) {
	r, err := zlib.NewReader(bytes.NewReader(zipped(t, 3<<20)))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || len(b) != 3<<20 || len(bytes.Trim(b, "\x00")) != 0 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
