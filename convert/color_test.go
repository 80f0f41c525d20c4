package convert

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// withProfile puts a profile into a JPEG that has none.
func withProfile(jpeg, profile []byte) []byte {
	out := bytes.Clone(jpeg[:2])
	const most = 65519
	chunks := (len(profile) + most - 1) / most
	for i := range chunks {
		part := profile[i*most : min((i+1)*most, len(profile))]
		out = append(out, 0xff, 0xe2)
		out = binary.BigEndian.AppendUint16(out, uint16(2+12+2+len(part)))
		out = append(append(out, "ICC_PROFILE\x00"...), byte(i+1), byte(chunks))
		out = append(out, part...)
	}
	return append(out, jpeg[2:]...)
}

// Profiles of Debian's package libgs-common.
const (
	printersProfile = "/usr/share/color/icc/ghostscript/default_cmyk.icc"
	grayProfile     = "/usr/share/color/icc/ghostscript/ps_gray.icc"
	proPhoto        = "/usr/share/color/icc/ghostscript/rommrgb.icc"
)

// The mean colour error against a colour-managed rendering of the original stays under 1 at quality 100, in every
// format.
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
		give    string // a profile, where the file itself has none
		profile bool   // the variant carries one
	}{
		{path: "photos/kodim03_q92_1x1_prog.jpg"},                // none
		{path: "photos/ImageMagick__mountains.jpg"},              // sRGB
		{path: "photos/mde__Apple_iPhone_4.jpg"},                 // sRGB
		{path: "photos/imaginary__imaginary.jpg", profile: true}, // Generic RGB
		{path: "hard/scikit-image__rocket.jpg", profile: true},   // Adobe RGB
		{path: "hard/Pillow__icc_profile_big.jpg"},               // look-up tables, 400 kB
		{path: "hard/zune-image__weird_sampling_2.jpeg"},         // XYB
		{path: "hard/thumbor__grayscale-icc.jpg"},                // dot gain 20 %
		{path: "hard/zune-image__cymk.jpg", give: printersProfile},
		{path: "hard/sharp__Channel_digital_image_CMYK_color_no_profile.jpg", give: printersProfile}, // YCCK
		{path: "hard/Pillow__pil_sample_cmyk.jpg", give: printersProfile},                            // YCCK
		{path: "photos/kodim13_q85_2x1.jpg", give: proPhoto, profile: true},
		{path: "hard/libultrahdr__minnie-320x240-y.jpg", give: grayProfile},
		{path: "graphics/sharp__prophoto.png", profile: true},
		{path: "graphics/testdata__P3-sRGB-red.png", profile: true},
		{path: "graphics/testdata__P3-sRGB-green.png", profile: true},
		{path: "graphics/testdata__P3-sRGB-blue.png", profile: true},
		{path: "graphics/saleor__placeholder1024.png", profile: true},
		{path: "graphics/testdata__u76c0g_bliznaca_srgb8.png"},
		{path: "graphics/testdata__tmshre_riaphotographs_alpha.png"},
		{path: "graphics/testdata__cvo9xd_keong_macan_grayscale.png"},
		{path: "graphics/imgproxy__original.png"}, // 16 bit
		{path: "graphics/images__trim-16bit-rgba.png"},
	} {
		for _, format := range []header.Format{header.WebP, header.AVIF, header.HEIC} {
			t.Run(format.String()+"/"+filepath.Base(c.path), func(t *testing.T) {
				path := realPath(t, c.path)
				source := read(t, path)
				info, err := header.Parse(source)
				if err != nil {
					t.Fatal(err)
				}
				if _, flat := flatByHeader(info); flat && info.Format == header.PNG && format != header.WebP {
					t.Skip("too small to be made lossy")
				}
				if info.Pixels() > 700_000 && format == header.HEIC && !long() {
					t.Skip("takes seconds")
				}
				if c.give != "" {
					source = withProfile(source, read(t, c.give))
					path = filepath.Join(dir, "with_profile.jpg")
					if err := os.WriteFile(path, source, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				opt := Options{Formats: []header.Format{format}, Quality: 100}
				if format != header.WebP {
					opt.PNG = PNGLossy
				}
				got, profile := renderVariant(t, format, convertForColor(t, p, source, opt), srgb)
				if profile != c.profile {
					t.Errorf("has a profile: %v", profile)
				}
				if info.Color == header.Gray {
					if n := tint(got); n > 2 {
						t.Errorf("grey has become coloured, by %d levels", n)
					}
				}
				want := managed(t, path, srgb)
				coarse, fine := distance(averaged(want), averaged(got), 100_000), distance(want, got, 100_000)
				t.Logf("mean colour error %.3f, pixel by pixel %.3f", coarse, fine)
				// With half the resolution for colours, as WebP and HEIC have, noisy pictures cannot be better than 2.5 pixel
				// by pixel even at quality 100, and small ones full of colour not even that: no more than cwebp's result.
				if coarse >= 1 || fine >= 2.5 && fine >= 1.1*lossOfColor(t, want) {
					t.Errorf("mean colour error %.2f, pixel by pixel %.2f", coarse, fine)
				}
			})
		}
	}
}

// tint is the largest difference between the samples of one pixel.
func tint(img *image.NRGBA) int {
	most := 0
	for i := 0; i < len(img.Pix); i += 4 {
		p := img.Pix[i : i+3]
		most = max(most, int(slices.Max(p))-int(slices.Min(p)))
	}
	return most
}

// renderVariant shows a variant in sRGB, and says whether it carries a profile.
func renderVariant(t *testing.T, format header.Format, b []byte, srgb string) (*image.NRGBA, bool) {
	t.Helper()
	if format == header.WebP {
		f, err := parseWebP(b)
		if err != nil {
			t.Fatal(err)
		}
		return renderWebP(t, b, srgb), f.icc != nil
	}
	f, err := parseHEIF(b, format)
	if err != nil {
		t.Fatal(err)
	}
	profile := f.icc
	f.icc = nil // which libpng may refuse to write; its pixels are the same
	path, err := renderHEIF(t, format, f.bytes())
	if err != nil {
		t.Fatal(err)
	}
	return underProfile(t, path, profile, srgb), profile != nil
}

// underProfile shows the samples of a PNG in sRGB; without a profile they are sRGB.
func underProfile(t *testing.T, path string, profile []byte, srgb string) *image.NRGBA {
	t.Helper()
	b := read(t, path)
	if profile != nil {
		own := filepath.Join(t.TempDir(), "own.icc")
		if err := os.WriteFile(own, profile, 0o600); err != nil {
			t.Fatal(err)
		}
		b = magick(t, path, "-profile", own, "-intent", "Perceptual", "-profile", srgb, "-depth", "8", "-strip", "PNG32:-")
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return toNRGBA(img)
}

// lossOfColor is the mean colour error, pixel by pixel, of what cwebp makes of a picture at its best lossy quality.
func lossOfColor(t *testing.T, img *image.NRGBA) float64 {
	t.Helper()
	cwebp, err := exec.LookPath("cwebp")
	if err != nil {
		t.Skip("cwebp is not installed")
	}
	dir := t.TempDir()
	plain, variant := filepath.Join(dir, "plain.png"), filepath.Join(dir, "v.webp")
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), cwebp, "-q", "100", plain, "-o", variant).CombinedOutput(); err != nil {
		t.Fatalf("cwebp: %v: %s", err, out)
	}
	return distance(img, renderWebP(t, read(t, variant), ""), 100_000)
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
	variant, plain := filepath.Join(dir, "v.webp"), filepath.Join(dir, "plain.png")
	if err := os.WriteFile(variant, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), dwebp, variant, "-o", plain).CombinedOutput(); err != nil {
		t.Fatalf("dwebp: %v: %s", err, out)
	}
	return underProfile(t, plain, f.icc, srgb)
}

// averaged is a picture of at most 64 px a side, each of them the mean of a block of at least 8 px a side: what is left
// is colour.
func averaged(img *image.NRGBA) *image.NRGBA {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	block := max((max(w, h)+63)/64, 8)
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
