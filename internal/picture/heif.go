package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
)

// Decode decodes a variant in any format that karui makes.
func Decode(b []byte) (Clip, error) {
	switch Format(b) {
	case "image/webp":
		return DecodeWebP(b)
	case "image/avif":
		return decodeBy(b, ".avif", "avifdec", "heif-convert")
	case "image/heic":
		return decodeBy(b, ".heic", "heif-convert")
	}
	return Clip{}, fmt.Errorf("no variant begins with %q", b[:min(len(b), 12)])
}

// Format is the media type that the first bytes tell, "" for what is no image of
// a kind that karui takes or makes.
func Format(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xd8, 0xff}):
		return "image/jpeg"
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(b, []byte("GIF8")):
		return "image/gif"
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return "image/webp"
	case len(b) >= 12 && string(b[4:12]) == "ftypavif":
		return "image/avif"
	case len(b) >= 12 && (string(b[4:12]) == "ftypheic" || string(b[4:12]) == "ftypheix"):
		return "image/heic"
	}
	return ""
}

// errNoDecoder says that no program that decodes the format is installed.
var errNoDecoder = errors.New("no decoder is installed")

// decodeBy decodes with the first of the programs that is installed. Both write a
// PNG, and apply what the file says of its orientation.
func decodeBy(b []byte, extension string, programs ...string) (Clip, error) {
	for _, program := range programs {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		dir, err := os.MkdirTemp("", "karui-picture-")
		if err != nil {
			return Clip{}, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		in, out := filepath.Join(dir, "in"+extension), filepath.Join(dir, "out.png")
		if err := os.WriteFile(in, b, 0o600); err != nil {
			return Clip{}, err
		}
		if words, err := exec.Command(path, in, out).CombinedOutput(); err != nil {
			return Clip{}, fmt.Errorf("%s: %w: %s", program, err, words)
		}
		f, err := os.Open(out)
		if err != nil {
			return Clip{}, err
		}
		defer func() { _ = f.Close() }()
		img, err := png.Decode(f)
		if err != nil {
			return Clip{}, fmt.Errorf("read what %s wrote: %w", program, err)
		}
		return Clip{Frames: []Frame{{Image: ToNRGBA(img)}}}, nil
	}
	return Clip{}, fmt.Errorf("%w: one of %v is needed", errNoDecoder, programs)
}
