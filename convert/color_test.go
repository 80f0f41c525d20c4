package convert

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"karui/convert/header"
)

// magick runs ImageMagick, whose colours come from littleCMS, and skips the test where it is not installed.
func magick(t *testing.T, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("convert")
	if err != nil {
		t.Skip("ImageMagick is not installed")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("convert %v: %v: %s", args, err, errs.String())
	}
	return out.Bytes()
}

// managed renders a file to sRGB, through its profile when it has one, turned upright.
func managed(t *testing.T, file, srgb string) *image.NRGBA {
	t.Helper()
	out := magick(t, file+"[0]", "-intent", "Perceptual", "-profile", srgb, "-auto-orient", "-depth", "8", "-strip", "PNG32:-")
	img, err := png.Decode(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	return toNRGBA(img)
}

// The mean colour error against a colour-managed rendering of the original stays under 1 at quality 100.
func TestColors(t *testing.T) {
	if raceDetector {
		t.Skip("colours are measured without the race detector")
	}
	dir := t.TempDir()
	srgb := filepath.Join(dir, "srgb.icc")
	magick(t, realPath(t, "photos/ImageMagick__mountains.jpg"), srgb)
	p := newPool(t, nil)
	for _, c := range []struct {
		path    string
		profile bool // the variant carries one
	}{
		{"photos/kodim03_q92_1x1_prog.jpg", false},        // none
		{"photos/ImageMagick__mountains.jpg", false},      // sRGB
		{"photos/mde__Apple_iPhone_4.jpg", false},         // sRGB
		{"photos/imaginary__imaginary.jpg", true},         // Generic RGB
		{"hard/scikit-image__rocket.jpg", true},           // Adobe RGB
		{"hard/Pillow__icc_profile_big.jpg", false},       // look-up tables, 400 kB
		{"hard/zune-image__weird_sampling_2.jpeg", false}, // XYB
		{"hard/thumbor__grayscale-icc.jpg", false},        // dot gain 20 %
		{"graphics/sharp__prophoto.png", true},
		{"graphics/testdata__P3-sRGB-red.png", true},
		{"graphics/testdata__P3-sRGB-green.png", true},
		{"graphics/testdata__P3-sRGB-blue.png", true},
		{"graphics/saleor__placeholder1024.png", true},
		{"graphics/testdata__u76c0g_bliznaca_srgb8.png", false},
		{"graphics/testdata__tmshre_riaphotographs_alpha.png", false},
		{"graphics/testdata__cvo9xd_keong_macan_grayscale.png", false},
		{"graphics/imgproxy__original.png", false}, // 16 bit
		{"graphics/images__trim-16bit-rgba.png", false},
	} {
		t.Run(filepath.Base(c.path), func(t *testing.T) {
			path := realPath(t, c.path)
			source := read(t, path)
			opt := webpOptions(100)
			r := convertForColor(t, p, source, opt)
			variant := filepath.Join(dir, filepath.Base(c.path)+".webp")
			if err := os.WriteFile(variant, r, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := parseWebP(r)
			if err != nil {
				t.Fatal(err)
			}
			if (f.icc != nil) != c.profile {
				t.Errorf("a profile of %d bytes", len(f.icc))
			}
			want, got := managed(t, path, srgb), renderWebP(t, r, srgb)
			coarse, fine := distance(averaged(want), averaged(got), 100_000), distance(want, got, 100_000)
			t.Logf("mean colour error %.3f, pixel by pixel %.3f", coarse, fine)
			// Lossy WebP has half the resolution for colours: pixel by pixel, noisy pictures cannot be better than 2.5
			// even at quality 100, whatever encoder makes them.
			if coarse >= 1 || fine >= 2.5 {
				t.Errorf("mean colour error %.2f, pixel by pixel %.2f", coarse, fine)
			}
		})
	}
}

// convertForColor converts at the very quality that is asked for, and also when that is not worth it.
func convertForColor(t *testing.T, p *Pool, source []byte, opt Options) []byte {
	t.Helper()
	info, err := header.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	info.JPEGQuality = 0
	plan := MakePlan(info, int64(len(source)), opt, p.cfg)
	if plan.Keep {
		t.Fatalf("kept: %+v", plan.Decision)
	}
	padded := append(bytes.Clone(source), make([]byte, 1<<20)...) // behind the end: so that nothing is too large
	req := &request{job: newJob(p.lastID.Add(1), info, plan, p.cfg.Timeout), source: padded, done: make(chan verdict, 1)}
	if d, ok := p.queue(req); !ok {
		t.Fatalf("%+v", d)
	}
	v := <-req.done
	if v.result.Code != Converted {
		t.Fatalf("%s: %s", v.result.Code, v.result.Reason)
	}
	return v.body
}

// renderWebP shows a variant in sRGB: its pixels by libwebp's own decoder, its profile by littleCMS.
func renderWebP(t *testing.T, b []byte, srgb string) *image.NRGBA {
	t.Helper()
	f, err := parseWebP(b)
	if err != nil {
		t.Fatal(err)
	}
	dwebp, err := exec.LookPath("dwebp")
	if err != nil {
		t.Skip("dwebp is not installed")
	}
	dir := t.TempDir()
	variant, plain, profile := filepath.Join(dir, "v.webp"), filepath.Join(dir, "plain.png"), filepath.Join(dir, "own.icc")
	if err := os.WriteFile(variant, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), dwebp, variant, "-o", plain).CombinedOutput(); err != nil {
		t.Fatalf("dwebp: %v: %s", err, out)
	}
	if f.icc == nil {
		img, err := png.Decode(bytes.NewReader(read(t, plain)))
		if err != nil {
			t.Fatal(err)
		}
		return toNRGBA(img)
	}
	if err := os.WriteFile(profile, f.icc, 0o600); err != nil {
		t.Fatal(err)
	}
	png32 := magick(t, plain, "-profile", profile, "-intent", "Perceptual", "-profile", srgb, "-depth", "8", "-strip", "PNG32:-")
	img, err := png.Decode(bytes.NewReader(png32))
	if err != nil {
		t.Fatal(err)
	}
	return toNRGBA(img)
}

// averaged is a picture of at most 64 px a side, each of them the mean of a block: what is left is colour.
func averaged(img *image.NRGBA) *image.NRGBA {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	block := max((max(w, h)+63)/64, 1)
	out := image.NewNRGBA(image.Rect(0, 0, (w+block-1)/block, (h+block-1)/block))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			var sum [4]int
			n := 0
			for by := y * block; by < min((y+1)*block, h); by++ {
				for bx := x * block; bx < min((x+1)*block, w); bx++ {
					c := img.NRGBAAt(bx, by)
					a := int(c.A)
					sum[0] += int(c.R) * a
					sum[1] += int(c.G) * a
					sum[2] += int(c.B) * a
					sum[3] += a
					n++
				}
			}
			a := max(sum[3], 1)
			out.SetNRGBA(x, y, color.NRGBA{uint8(sum[0] / a), uint8(sum[1] / a), uint8(sum[2] / a), uint8(sum[3] / n)})
		}
	}
	return out
}

func realPath(t *testing.T, path string) string {
	t.Helper()
	path = filepath.Join(corpusDir, path)
	read(t, path) // skips
	return path
}
