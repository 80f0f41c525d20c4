package convert

import (
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"karui/convert/header"
)

// decodeVariant returns what a variant shows, and its Exif block.
func decodeVariant(t testing.TB, format header.Format, b []byte) ([]moment, []byte, error) {
	t.Helper()
	if format == header.WebP {
		shown, f, err := decodeWebP(b)
		return shown, f.exif, err
	}
	f, err := parseHEIF(b, format)
	if err != nil {
		return nil, nil, err
	}
	exif := f.exif
	f.icc = nil // libpng refuses to write some profiles, and nobody looks at it here
	path, err := renderHEIF(t, format, f.bytes())
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(path)) }()
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	img, err := png.Decode(file)
	if err != nil {
		return nil, nil, err
	}
	return []moment{{img: toNRGBA(img)}}, exif, nil
}

// renderHEIF writes a variant as PNG, with its profile, by a decoder that shares no line with the one that made it: that
// of libavif (and dav1d), which also checks the file strictly, or that of libheif (and libde265). The file is in a folder of
// its own. Without the programs the test is skipped.
func renderHEIF(t testing.TB, format header.Format, b []byte) (string, error) {
	t.Helper()
	program, extension := "avifdec", ".avif"
	if format == header.HEIC {
		program, extension = "heif-convert", ".heic"
	}
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed", program)
	}
	dir := t.TempDir()
	dir, err = os.MkdirTemp(dir, "")
	if err != nil {
		return "", err
	}
	variant, plain := filepath.Join(dir, "variant"+extension), filepath.Join(dir, "plain.png")
	if err := os.WriteFile(variant, b, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(t.Context(), path, variant, plain).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return plain, nil
}
