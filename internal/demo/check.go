package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"sync"

	"golang.org/x/image/webp"
)

// formatOf tells an image's format by its first bytes, as viewers do.
func formatOf(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		return "jpeg"
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return "png"
	case bytes.HasPrefix(b, []byte("GIF8")):
		return "gif"
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return "webp"
	case len(b) >= 12 && string(b[4:8]) == "ftyp" && (string(b[8:12]) == "avif" || string(b[8:12]) == "avis"):
		return "avif"
	}
	return "other"
}

// whole tells what is wrong with an image; nil for nothing. JPEG, PNG, GIF and
// still WebP are decoded to the last pixel; of AVIF and animated WebP, for which Go
// has no decoder, the structure is followed to the last byte.
func whole(b []byte) error {
	switch format := formatOf(b); format {
	case "jpeg":
		return decoded(jpeg.Decode(bytes.NewReader(b)))
	case "png":
		return decoded(png.Decode(bytes.NewReader(b)))
	case "gif":
		g, err := gif.DecodeAll(bytes.NewReader(b))
		if err == nil && len(g.Image) == 0 {
			err = errors.New("no frame")
		}
		return err
	case "webp":
		frames, err := framesOf(b)
		if err != nil || frames > 0 {
			return err
		}
		return decoded(webp.Decode(bytes.NewReader(b)))
	case "avif":
		return boxesOf(b)
	default:
		return errors.New("no image of a known format")
	}
}

func decoded(img image.Image, err error) error {
	if err == nil && img.Bounds().Empty() {
		err = errors.New("no pixel")
	}
	return err
}

// framesOf counts the frames of an animated WebP; 0 for a still one. Every chunk
// has to end within the file, and the file with the last.
func framesOf(b []byte) (int, error) {
	if size := int64(binary.LittleEndian.Uint32(b[4:])) + 8; size != int64(len(b)) {
		return 0, fmt.Errorf("WebP of %d bytes says it has %d", len(b), size)
	}
	frames := 0
	for rest := b[12:]; len(rest) > 0; {
		if len(rest) < 8 {
			return 0, errors.New("WebP ends within a chunk")
		}
		size := int64(binary.LittleEndian.Uint32(rest[4:]))
		size += size & 1
		if size+8 > int64(len(rest)) {
			return 0, errors.New("WebP ends within a chunk")
		}
		if string(rest[:4]) == "ANMF" {
			frames++
		}
		rest = rest[8+size:]
	}
	return frames, nil
}

// boxesOf follows the boxes of an AVIF to the end of the file.
func boxesOf(b []byte) error {
	var have []string
	for rest := b; len(rest) > 0; {
		if len(rest) < 8 {
			return errors.New("AVIF ends within a box")
		}
		size, name := int64(binary.BigEndian.Uint32(rest)), string(rest[4:8])
		switch {
		case size == 0:
			size = int64(len(rest))
		case size == 1 && len(rest) >= 16:
			size = int64(binary.BigEndian.Uint64(rest[8:]) & (1<<62 - 1))
		}
		if size < 8 || size > int64(len(rest)) {
			return errors.New("AVIF ends within a box")
		}
		have = append(have, name)
		rest = rest[size:]
	}
	for _, name := range []string{"ftyp", "meta", "mdat"} {
		if !strings.Contains(strings.Join(have, " "), name) {
			return fmt.Errorf("AVIF without %s", name)
		}
	}
	return nil
}

// judgeMemory is how many bodies are remembered as good.
const judgeMemory = 512

// seen is a body under a path.
type seen struct {
	path string
	sum  [sha256.Size]byte
}

// judge looks at bodies, each of them once.
type judge struct {
	mu   sync.Mutex
	good map[seen]bool
	// originals are the files of the sample site by path; what comes in their
	// format has to be the same, byte for byte. Of a real site nothing is known.
	originals map[string][]byte
}

// fault says what is wrong with a body that was asked for under a path; nil for
// nothing.
func (j *judge) fault(path string, body []byte) error {
	key := seen{path, sha256.Sum256(body)}
	j.mu.Lock()
	good := j.good[key]
	j.mu.Unlock()
	if good {
		return nil
	}
	format := formatOf(body)
	original, known := j.originals[path]
	switch {
	case known && formatOf(original) == format:
		if !bytes.Equal(original, body) {
			return errors.New("it is neither the original nor a lighter format")
		}
	case !known && format != "webp" && format != "avif":
		return nil // as the site has it; it is not ours to judge
	default:
		if err := whole(body); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.good == nil || len(j.good) >= judgeMemory {
		j.good = make(map[seen]bool)
	}
	j.good[key] = true
	return nil
}
