package convert

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"karui/convert/header"
)

func encoded(t testing.TB, format header.Format, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = byte(i * i >> 7)
	}
	var err error
	if format == header.PNG {
		err = png.Encode(&b, img)
	} else {
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 90})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPrefixDecidesEarly(t *testing.T) {
	cfg := DefaultConfig()
	wide, huge := encoded(t, header.JPEG, 17_000, 8), encoded(t, header.PNG, 9, 8)
	copy(huge[16:], "\x00\x01\x00\x00\x00\x01\x00\x00") // 65,536 px a side; a checksum is for the decoder
	frames := []byte("GIF89a\xe8\x03\xe8\x03\x00\x00\x00")
	for range 70 { // 1000 x 1000 px each
		frames = append(frames, ",\x00\x00\x00\x00\xe8\x03\xe8\x03\x00\x02\x02\x44\x01\x00"...)
	}
	for _, c := range []struct {
		name   string
		body   []byte
		size   int64
		opt    Options
		within int // bytes
		code   Code
	}{
		{"html", []byte("<!DOCTYPE html><html><body>no such file"), -1, webpOnly, 22, NotConvertible},
		{"webp", []byte("RIFF\x10\x00\x00\x00WEBPVP8 ...."), -1, webpOnly, 12, NotConvertible},
		{"size known to be too large", wide, 64 << 20, webpOnly, 3, TooLarge},
		{"viewer takes nothing", wide, -1, Options{Quality: 80}, 3, NotAccepted},
		{"too wide", wide, -1, webpOnly, 200, TooWide},
		{"too many pixels", huge, int64(len(huge)), webpOnly, 33, TooManyPixels},
		{"too many frames for the pixels", frames, -1, webpOnly, 13 + 64*15 + 12, TooManyPixels},
	} {
		p := NewPrefix(c.size, c.opt, cfg)
		decidedAt := -1
		for n := range len(c.body) {
			plan, decided := p.Decide(c.body[:n])
			if once, same := PlanPrefix(c.body[:n], c.size, c.opt, cfg); !reflect.DeepEqual(once, plan) || same != decided {
				t.Fatalf("%s: %d bytes: at once %+v %v, growing %+v %v", c.name, n, once, same, plan, decided)
			}
			if !decided {
				continue
			}
			decidedAt = n
			if !plan.Keep || plan.Decision.Code != c.code {
				t.Errorf("%s: %+v, want %s", c.name, plan, c.code)
			}
			break
		}
		if decidedAt < 0 || decidedAt > c.within {
			t.Errorf("%s: decided after %d bytes, want %d", c.name, decidedAt, c.within)
		}
	}
}

// A body that is still arriving is never cut off; once all of it has arrived, it may be.
func TestPrefixIsNotTruncated(t *testing.T) {
	cfg := DefaultConfig()
	body := encoded(t, header.PNG, 100, 80)
	for n := range len(body) {
		if plan, decided := PlanPrefix(body[:n], int64(len(body)), webpOnly, cfg); plan.Keep {
			t.Fatalf("after %d bytes: %+v %v", n, plan, decided)
		}
	}
	if plan, decided := PlanPrefix(body[:20], 20, webpOnly, cfg); !decided || plan.Decision.Code != Truncated {
		t.Errorf("whole: %+v %v", plan, decided)
	}
	if plan, decided := PlanPrefix(body, int64(len(body)), webpOnly, cfg); !decided || plan.Target != header.WebP {
		t.Errorf("whole: %+v %v", plan, decided)
	}
	if plan, decided := PlanPrefix(nil, -1, webpOnly, cfg); decided || plan.Keep {
		t.Errorf("nothing: %+v %v", plan, decided)
	}
}

// On every file of the corpus: what a prefix decides, the whole decides too; and each reason has words.
func TestPrefixAgreesWithWhole(t *testing.T) {
	root := corpusRoot(t)
	files, err := filepath.Glob(filepath.Join(root, "*", "*"))
	if err != nil || len(files) < 500 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	codes := map[Code]int{}
	for _, opt := range []Options{webpOnly, {Formats: []header.Format{header.AVIF, header.HEIC, header.WebP}, Quality: 100}} {
		prefixesAgree(t, files, opt, codes)
	}
	for _, code := range []Code{"", NotConvertible, AnimatedPNG, GainMap, OddColor, UnsupportedJPEG, TooWide, TooManyPixels, Empty, Broken, Truncated, OddCanvas} {
		if codes[code] == 0 {
			t.Errorf("no file of the corpus is decided as %q", code)
		}
	}
	t.Logf("decisions: %v", codes)
}

func prefixesAgree(t *testing.T, files []string, opt Options, codes map[Code]int) {
	t.Helper()
	cfg := DefaultConfig()
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		info, whole := PlanWhole(body, opt, cfg)
		codes[whole.Decision.Code]++
		if whole.Keep != (whole.Decision.Reason != "") || whole.Keep != (whole.Target == header.Unknown) {
			t.Errorf("%s: %+v", file, whole)
		}
		p := NewPrefix(-1, opt, cfg)
		for n := 0; n < len(body); n += max(1, len(body)/97) {
			plan, decided := p.Decide(body[:n])
			if !decided {
				continue
			}
			// A reason found early may be one of several; that the original is kept is the same.
			if plan.Keep != whole.Keep && whole.Decision.Code != Truncated && whole.Decision.Code != Broken {
				t.Errorf("%s: after %d of %d bytes %+v, whole %+v (%+v)", file, n, len(body), plan, whole, info)
			}
			if plan.Keep && !whole.Keep || !plan.Keep && !whole.Keep && !reflect.DeepEqual(plan, whole) {
				t.Errorf("%s: after %d of %d bytes %+v, whole %+v", file, n, len(body), plan, whole)
			}
		}
	}
}

// corpusRoot is beside the repository: <somewhere>/shared/corpus.
func corpusRoot(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", "shared", "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "MANIFEST.tsv")); err != nil {
		t.Skipf("no corpus at %s", root)
	}
	return root
}

func BenchmarkPlanPrefix(b *testing.B) {
	body := encoded(b, header.JPEG, 1000, 1000)[:32<<10]
	cfg := DefaultConfig()
	b.ReportAllocs()
	for b.Loop() {
		if plan, decided := PlanPrefix(body, -1, webpOnly, cfg); !decided || plan.Keep {
			b.Fatal(plan)
		}
	}
}
