package convert

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"testing"

	"karui/convert/header"
	"karui/internal/sample"
)

// noisy is a JPEG with detail everywhere.
func noisy(t testing.TB, width, height int, gray bool) []byte {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not a secret
	var picture image.Image
	if gray {
		g := image.NewGray(image.Rect(0, 0, width, height))
		for i := range g.Pix {
			g.Pix[i] = byte(i/width/2 + random.IntN(64))
		}
		picture = g
	} else {
		c := image.NewRGBA(image.Rect(0, 0, width, height))
		for y := range height {
			for x := range width {
				c.Set(x, y, color.RGBA{byte(x + random.IntN(40)), byte(y + random.IntN(40)), byte(x + y), 255})
			}
		}
		picture = c
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture, &jpeg.Options{Quality: 85}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestScanOfWholeFilesIsReadToItsEnd(t *testing.T) {
	for name, b := range map[string][]byte{
		"photo": sample.Photo(), "gray": noisy(t, 203, 117, true), "color": noisy(t, 333, 211, false), "tiny": noisy(t, 1, 1, false),
	} {
		s, ok := findScan(b)
		if !ok {
			t.Errorf("%s: no scan found", name)
			continue
		}
		if unread, ok := s.walk(); !ok || unread != 0 {
			t.Errorf("%s: %d bytes unread, %v", name, unread, ok)
		}
		if err := checkScan(append(b[:len(b)-2:len(b)-2], 0, 0, 0, 0, 0xff, 0xd9)); err != nil {
			t.Errorf("%s: filled up to a word: %v", name, err)
		}
	}
}

// filled replaces the end of the entropy-coded data by zeros, as a write that never came to its end leaves it.
func filled(b []byte, share float64) []byte {
	scan := bytes.Index(b, []byte{0xff, 0xda})
	from := scan + 14 + int(float64(len(b)-scan-14)*share)
	return append(append(bytes.Clone(b[:from]), make([]byte, len(b)-from-2)...), 0xff, 0xd9)
}

// lost takes n bytes out of the middle.
func lost(b []byte, n int) []byte {
	middle := len(b) / 2
	return append(bytes.Clone(b[:middle]), b[middle+n:]...)
}

func TestFilesThatEndInZerosAreKept(t *testing.T) {
	pool := newPool(t, nil)
	opt := Options{Formats: []header.Format{header.WebP}, Quality: 80}
	sources := map[string][]byte{"photo": sample.Photo(), "color": noisy(t, 640, 480, false), "gray": noisy(t, 640, 480, true)}
	for _, path := range []string{"photos/kodim13_q85_2x1.jpg", "photos/imaging__branches.jpg"} {
		if b, err := os.ReadFile(corpusDir + "/" + path); err == nil {
			sources[path] = b
		} else {
			t.Logf("without %s: %v", path, err)
		}
	}
	for name, b := range sources {
		if r, err := pool.Convert(t.Context(), b, opt); err != nil || r.Decision.Code != Converted {
			t.Errorf("%s as it is: %v %v", name, r.Decision, err)
		}
		for _, share := range []float64{0.3, 0.5, 0.7, 0.95} {
			broken := filled(b, share)
			for _, whole := range [][]byte{broken, broken[:len(broken)-2]} {
				r, err := pool.Convert(t.Context(), whole, opt)
				if err != nil || r.Body != nil || r.Decision.Code != Broken && r.Decision.Code != Truncated || !r.Decision.Settled {
					t.Errorf("%s, zeros from %.0f %% on: %v %v", name, 100*share, r.Decision, err)
				}
			}
		}
	}
}

func TestLostBytesAreSeenWhereDataIsLeft(t *testing.T) {
	b := noisy(t, 640, 480, false)
	seen := 0
	for n := 1000; n < 4000; n += 100 {
		err := checkScan(lost(b, n))
		if err != nil && !errors.Is(err, errDamage) {
			t.Errorf("%d bytes lost: %v", n, err)
		}
		if err != nil {
			seen++
		}
	}
	// What runs out early, or meets a code that does not exist, the decoder sees.
	t.Logf("%d of 30 end before their data does", seen)
}

// The codes are found several at a time; one at a time, without the tables for that, they must be the same.
func TestScanIsWalkedAsCodeByCode(t *testing.T) {
	photo := sample.Photo()
	for i, b := range [][]byte{
		photo, noisy(t, 333, 211, false), noisy(t, 203, 117, true), photo[:len(photo)/2], filled(photo, 0.5), lost(photo, 500), lost(photo, 3000),
	} {
		quick, ok := findScan(b)
		slow, _ := findScan(b)
		if !ok {
			t.Fatalf("%d: no scan found", i)
		}
		for _, block := range slow.blocks {
			clear(block.dc.look[:])
			clear(block.ac.look[:])
		}
		unread, whole := quick.walk()
		wantUnread, wantWhole := slow.walk()
		if unread != wantUnread || whole != wantWhole {
			t.Errorf("%d: %d bytes unread, %t; code by code %d, %t", i, unread, whole, wantUnread, wantWhole)
		}
	}
}

func FuzzCheckScan(f *testing.F) {
	f.Add(noisy(f, 40, 24, false))
	f.Add(noisy(f, 17, 9, true))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := checkScan(b); err != nil && !errors.Is(err, errDamage) {
			t.Error(err)
		}
	})
}

func BenchmarkCheckScan(b *testing.B) {
	photo := sample.Photo()
	b.SetBytes(int64(len(photo)))
	for b.Loop() {
		if err := checkScan(photo); err != nil {
			b.Fatal(err)
		}
	}
}
