package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"karui/internal/sample"
)

// The tests' own WebP decoder is held against dwebp, so that a fault of the
// tests is not taken for one of karui.
func TestDecodesWebPAsDwebpDoes(t *testing.T) {
	for _, tool := range []string{"cwebp", "dwebp"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	dir := t.TempDir()
	in, out, back := filepath.Join(dir, "in.png"), filepath.Join(dir, "out.webp"), filepath.Join(dir, "back.png")
	for name, args := range map[string][]string{"lossy": {"-q", "80"}, "lossless": {"-lossless"}} {
		if err := os.WriteFile(in, sample.Logo(), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, cmd := range []*exec.Cmd{
			exec.Command("cwebp", append(args, "-quiet", in, "-o", out)...),
			exec.Command("dwebp", "-quiet", "-nofancy", out, "-o", back),
		} {
			if b, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", cmd.Args, err, b)
			}
		}
		file, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := DecodeWebP(file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		theirs := decodeFile(t, back)
		worst := 0
		for i := 0; i < len(theirs.Pix); i += 4 {
			if theirs.Pix[i+3] == 0 && ours.Frames[0].Image.Pix[i+3] == 0 {
				continue
			}
			for j := range 4 {
				worst = max(worst, abs(int(theirs.Pix[i+j])-int(ours.Frames[0].Image.Pix[i+j])))
			}
		}
		if worst > 2 {
			t.Errorf("%s: a sample differs by %d", name, worst)
		}
	}
}

func abs(n int) int { return max(n, -n) }

func decodeFile(t *testing.T, name string) *image.NRGBA {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	img, _, err := image.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	out := image.NewNRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			out.SetNRGBA(x, y, color.NRGBAModel.Convert(img.At(x+img.Bounds().Min.X, y+img.Bounds().Min.Y)).(color.NRGBA))
		}
	}
	return out
}

// The comparison itself is held against pictures that differ on purpose.
func TestTellsPicturesApart(t *testing.T) {
	small := detail(t)
	photo, err := New("").Render(small)
	if err != nil {
		t.Fatal(err)
	}
	img := photo.Frames[0].Image
	if mean, worst := Difference(img, ToNRGBA(img)); mean != 0 || worst != 0 {
		t.Errorf("equal pictures differ by %v, %v", mean, worst)
	}
	for o := 2; o <= 4; o++ {
		if mean, _ := Difference(img, Upright(img, o)); mean < 12 {
			t.Errorf("orientation %d differs by %v only", o, mean)
		}
	}
	negative := ToNRGBA(img)
	for i := range negative.Pix {
		if i%4 != 3 {
			negative.Pix[i] = 255 - negative.Pix[i]
		}
	}
	if r := Likeness(img, negative); r > -0.9 || Likeness(img, img) < 0.999 {
		t.Errorf("a negative correlates by %v", r)
	}
	half := ToNRGBA(img)
	for i := len(half.Pix) / 2; i < len(half.Pix); i++ {
		half.Pix[i] = 128
	}
	if mean, _ := Difference(img, half); mean < 12 {
		t.Errorf("a half-grey picture differs by %v only", mean)
	}
	for o := uint16(1); o <= 8; o++ {
		turned, err := New("").Render(oriented(small, o))
		if err != nil {
			t.Fatal(err)
		}
		// Turning back by the inverse must give the first picture again.
		inverse := []int{0, 1, 2, 3, 4, 5, 8, 7, 6}[o]
		if mean, _ := Difference(img, Upright(turned.Frames[0].Image, inverse)); mean != 0 {
			t.Errorf("orientation %d and back differ by %v", o, mean)
		}
	}
}

// detail is a part of the sample photo, as a JPEG.
func detail(t *testing.T) []byte {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(sample.Photo()))
	if err != nil {
		t.Fatal(err)
	}
	part := img.(*image.YCbCr).SubImage(image.Rect(0, 0, 320, 240).Add(image.Pt(16, 160)))
	var b bytes.Buffer
	if err := jpeg.Encode(&b, part, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// oriented puts an EXIF orientation into a JPEG.
func oriented(jpegFile []byte, orientation uint16) []byte {
	tiff := []byte{'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0}
	for _, n := range []uint16{0x0112, 3, 1, 0, orientation, 0, 0, 0} {
		tiff = binary.LittleEndian.AppendUint16(tiff, n)
	}
	body := append([]byte("Exif\x00\x00"), tiff...)
	out := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe1}, uint16(len(body)+2))
	out = append(out, body...)
	return append(out, jpegFile[2:]...)
}

// Every kind of damage that the proof has to notice is noticed.
func TestProblemsOfDamagedVariants(t *testing.T) {
	if _, err := exec.LookPath("cwebp"); err != nil {
		t.Skip("cwebp is not installed")
	}
	made := func(file []byte, extension string) []byte {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"+extension), filepath.Join(dir, "out.webp")
		if err := os.WriteFile(in, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := exec.Command("cwebp", "-quiet", "-q", "80", in, "-o", out).CombinedOutput(); err != nil {
			t.Fatalf("cwebp: %v: %s", err, b)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	j := New("")
	photo, screenshot := made(sample.Photo(), ".jpg"), made(sample.Screenshot(), ".png")
	if found := j.Problems(sample.Photo(), photo); len(found) > 0 {
		t.Errorf("a good variant: %v", found)
	}
	for name, variant := range map[string][]byte{
		"half of it": photo[:len(photo)/2], "another picture": screenshot, "nothing": nil, "the original": sample.Photo(),
		"a longer file": append(bytes.Clone(photo), 0),
	} {
		if found := j.Problems(sample.Photo(), variant); len(found) == 0 {
			t.Errorf("%s has no problems", name)
		}
	}
	if found := j.Problems(oriented(sample.Photo(), 3), photo); len(found) == 0 {
		t.Error("a picture on its head has no problems")
	}
}

// The profile of sRGB changes nothing in sRGB, and Adobe's colours become stronger.
func TestSRGBIsWhatLittleCMSTakesForIt(t *testing.T) {
	if _, err := os.Stat(imageMagick); err != nil {
		t.Skip("ImageMagick is not installed")
	}
	name := filepath.Join(t.TempDir(), "srgb.icc")
	if err := os.WriteFile(name, SRGB(), 0o600); err != nil {
		t.Fatal(err)
	}
	img := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for i := range img.Pix {
		img.Pix[i] = uint8(i * 37)
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	same, err := New(name).managed(img, SRGB())
	if err != nil {
		t.Fatal(err)
	}
	for i := range img.Pix {
		if d := abs(int(img.Pix[i]) - int(same.Pix[i])); d > 1 {
			t.Fatalf("sample %d: %d became %d", i, img.Pix[i], same.Pix[i])
		}
	}
	// The same profile with the green of Adobe RGB: what it calls a green is a stronger one.
	wide := bytes.Replace(SRGB(), fixedGreen(0.38515, 0.71687, 0.09708), fixedGreen(0.20528, 0.62567, 0.06087), 1)
	green := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for i := 0; i < len(green.Pix); i += 4 {
		copy(green.Pix[i:], []byte{100, 200, 100, 255})
	}
	shown, err := New(name).managed(green, wide)
	if err != nil {
		t.Fatal(err)
	}
	if p := shown.NRGBAAt(4, 4); p.R >= 95 {
		t.Errorf("a green of a wide space became %v", p)
	}
}

// fixedGreen is a colour as an ICC profile writes it.
func fixedGreen(values ...float64) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, uint32(v*65536+0.5))
	}
	return b
}
