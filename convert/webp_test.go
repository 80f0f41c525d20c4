package convert

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"karui/convert/header"
	"karui/internal/sample"
)

func TestParseWebPCorpus(t *testing.T) {
	for name, want := range map[string]struct {
		w, h, frames int
		alpha        bool
	}{
		"graphics/sharp__4.webp":                {1024, 772, 0, false},
		"graphics/sharp__5_webp_a.webp":         {300, 300, 0, true},
		"animated/image__anim.webp":             {200, 200, 6, true},
		"animated/mde__Animation_Lossless.webp": {320, 240, 101, true},
		"graphics/sharp__animated-loop-3.webp":  {370, 285, 10, true},
	} {
		b := read(t, filepath.Join(corpusDir, name))
		f, err := parseWebP(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f.width != want.w || f.height != want.h || len(f.frames) != want.frames {
			t.Errorf("%s: %d x %d, %d frames", name, f.width, f.height, len(f.frames))
		}
		again, err := parseWebP(f.bytes())
		if err != nil || again.duration() != f.duration() || again.loop != f.loop || again.alpha != f.alpha || again.lossless != f.lossless {
			t.Errorf("%s: put together again: %+v, %v", name, again, err)
		}
	}
}

func TestParseWebPDamaged(t *testing.T) {
	good := stillWebP(t)
	if _, err := parseWebP(good); err != nil {
		t.Fatal(err)
	}
	for n := range len(good) {
		if _, err := parseWebP(good[:n]); err == nil {
			t.Fatalf("%d of %d bytes pass", n, len(good))
		}
	}
	if _, err := parseWebP(append(bytes.Clone(good), 0)); err == nil {
		t.Error("a byte too many passes")
	}
}

// stillWebP is a lossy WebP of the drawn logo, with alpha.
func stillWebP(t testing.TB) []byte {
	t.Helper()
	p := newPool(t, nil)
	opt := webpOptions(60)
	opt.PNG = PNGLossy
	r := convertOne(t, p, sample.Logo(), opt)
	if r.Decision.Code != Converted || r.Lossless {
		t.Fatalf("%+v", r.Decision)
	}
	return r.Body
}

func FuzzParseWebP(f *testing.F) {
	f.Add([]byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"))
	for _, name := range []string{"animated/aws__transparent-2x1.webp", "graphics/sharp__extract.webp", "animated/image__lossy_alpha.webp"} {
		if b, err := os.ReadFile(filepath.Join(corpusDir, name)); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		file, err := parseWebP(in)
		if err != nil {
			return
		}
		again, err := parseWebP(file.bytes())
		if err != nil {
			t.Fatalf("put together again: %v", err)
		}
		if again.width != file.width || again.height != file.height || len(again.frames) != len(file.frames) {
			t.Fatalf("%d x %d, %d frames became %d x %d, %d", file.width, file.height, len(file.frames), again.width, again.height, len(again.frames))
		}
	})
}

// Copyright and artist stay, and nothing else of EXIF, XMP and IPTC.
func TestMetadata(t *testing.T) {
	p := newPool(t, nil)
	source := read(t, filepath.Join(corpusDir, "photos/govips__copyright.jpeg"))
	r := convertOne(t, p, source, webpOptions(80))
	if r.Decision.Code != Converted || r.Info.Copyright == "" {
		t.Fatalf("%+v, copyright %q", r.Decision, r.Info.Copyright)
	}
	f, err := parseWebP(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	tags, more, err := readTIFFTags(f.exif)
	if err != nil || more {
		t.Fatalf("%v, a second directory: %t", err, more)
	}
	for tag, text := range tags {
		if tag != tagArtist && tag != tagCopyright {
			t.Errorf("tag 0x%04x: %q", tag, text)
		}
	}
	if tags[tagCopyright] != r.Info.Copyright || tags[tagArtist] != r.Info.Artist {
		t.Errorf("%v, the original has %q and %q", tags, r.Info.Copyright, r.Info.Artist)
	}
	for _, word := range []string{"photoshop", "adobe", "xap/1.0", "XMP ", "8BIM"} {
		if bytes.Contains(bytes.ToLower(r.Body), []byte(strings.ToLower(word))) {
			t.Errorf("the variant holds %q", word)
		}
	}
	opt := webpOptions(80)
	opt.Keep = nil
	r = convertOne(t, p, source, opt)
	if f, err = parseWebP(r.Body); err != nil || f.exif != nil || f.icc != nil {
		t.Errorf("without keep: EXIF %q, %v", f.exif, err)
	}
	if string(r.Body[12:15]) != "VP8" || r.Body[15] == 'X' {
		t.Errorf("an extended file where the simple form says everything: %q", r.Body[:16])
	}
}

// libwebp's own tool agrees with what is put together here.
func TestWebPInfoAgrees(t *testing.T) {
	webpinfo, err := exec.LookPath("webpinfo")
	if err != nil {
		t.Skip("webpinfo is not installed")
	}
	p := newPool(t, nil)
	for name, source := range map[string][]byte{
		"copyright": read(t, filepath.Join(corpusDir, "photos/govips__copyright.jpeg")),
		"profile":   read(t, filepath.Join(corpusDir, "hard/scikit-image__rocket.jpg")),
		"animation": sample.Animation(),
		"alpha":     sample.Logo(),
		"photo":     samplePhoto(),
	} {
		r := convertOne(t, p, source, webpOptions(80))
		file := filepath.Join(t.TempDir(), "v.webp")
		if err := os.WriteFile(file, r.Body, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), webpinfo, file).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "No error detected") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestCopyrightEXIF(t *testing.T) {
	for _, c := range []struct{ artist, copyright string }{
		{"Jane", "© Jane 2026"}, {"", "(c)"}, {"J", ""}, {"abc", "abcd"}, {"\xff\xfe", strings.Repeat("x", 4096)},
	} {
		b := copyrightEXIF([]byte(c.artist), []byte(c.copyright))
		tags, more, err := readTIFFTags(b)
		if err != nil || more || tags[tagArtist] != c.artist || tags[tagCopyright] != c.copyright {
			t.Errorf("%v: %v, %t, %v", c, tags, more, err)
		}
	}
	if b := copyrightEXIF(nil, nil); b != nil {
		t.Errorf("nothing makes %q", b)
	}
}

func TestRetime(t *testing.T) {
	p := newPool(t, nil)
	r := convertOne(t, p, sample.Animation(), webpOptions(80))
	f, err := parseWebP(r.Body)
	if err != nil || len(f.frames) < 4 {
		t.Fatalf("%d frames, %v", len(f.frames), err)
	}
	f.frames = f.frames[:4]
	for i, n := range []int{1, 2, 1, 3} { // the encoder has merged frames 2 and 3, and 5 to 7
		f.frames[i].setDelay(n * evenDelay)
	}
	got, err := retime(f.bytes(), []int{0, 1, 10, 3, 65535, 0, 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	f, err = parseWebP(got)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 110, 30, 655370} {
		if f.frames[i].delay() != want {
			t.Errorf("frame %d: %d ms, want %d", i+1, f.frames[i].delay(), want)
		}
	}
	if f.loop != 4 {
		t.Errorf("played %d times where it is repeated 3 times", f.loop)
	}
	for name, delays := range map[string][]int{"too few": {1, 2, 3}, "too many": make([]int, 8), "none": nil} {
		f.frames[0].setDelay(evenDelay)
		f.frames[1].setDelay(2 * evenDelay)
		f.frames[2].setDelay(evenDelay)
		f.frames[3].setDelay(3 * evenDelay)
		if _, err := retime(f.bytes(), delays, 0); err == nil {
			t.Errorf("%s delays pass", name)
		}
	}
	f.frames[0].setDelay(evenDelay + 1)
	if _, err := retime(f.bytes(), make([]int, 7), 0); err == nil {
		t.Error("an odd delay passes")
	}
}

func TestWebPLoop(t *testing.T) {
	for again, want := range map[int]uint16{-1: 1, 0: 0, 1: 2, 3: 4, 65534: 65535, 65535: 65535} {
		if got := webpLoop(again); got != want {
			t.Errorf("%d: %d, want %d", again, got, want)
		}
	}
}

func TestDiffers(t *testing.T) {
	info := header.Info{Width: 4, Height: 3, Orientation: 6, Frames: 3, Animated: true, Duration: time.Second}
	good := variantInfo{width: 3, height: 4, frames: 2, duration: time.Second}
	r := result{Frames: 3}
	if why := good.differs(info, r); why != "" {
		t.Errorf("the same: %s", why)
	}
	for name, change := range map[string]func(*variantInfo, *result){
		"not turned":      func(v *variantInfo, _ *result) { v.width, v.height = 4, 3 },
		"frames missing":  func(_ *variantInfo, r *result) { r.Frames = 2 },
		"frames too many": func(v *variantInfo, _ *result) { v.frames = 4 },
		"too fast":        func(v *variantInfo, _ *result) { v.duration = time.Second / 2 },
	} {
		v, r := good, r
		change(&v, &r)
		if v.differs(info, r) == "" {
			t.Errorf("%s: passes", name)
		}
	}
}
