package demo

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"testing"
)

// stillWebP is a lossy WebP of one pixel.
func stillWebP(t testing.TB) []byte {
	b, err := base64.StdEncoding.DecodeString("UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAwA0JaQAA3AA/vuUAAA=")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// animatedWebP has the structure of an animation of two frames.
func animatedWebP() []byte {
	var chunks []byte
	for _, c := range []struct {
		name string
		size int
	}{{"VP8X", 10}, {"ANIM", 6}, {"ANMF", 31}, {"ANMF", 16}} {
		chunks = append(chunks, c.name...)
		chunks = binary.LittleEndian.AppendUint32(chunks, uint32(c.size))
		chunks = append(chunks, make([]byte, c.size+c.size%2)...)
	}
	out := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(chunks)+4))
	return append(append(out, "WEBP"...), chunks...)
}

func boxes(names ...string) []byte {
	var out []byte
	for _, name := range names {
		out = binary.BigEndian.AppendUint32(out, 16)
		out = append(append(out, name...), "avif\x00\x00\x00\x00"...)
	}
	return out
}

func TestWholeImages(t *testing.T) {
	t.Parallel() // the samples take their time
	images := map[string][]byte{
		"webp": stillWebP(t), "animated webp": animatedWebP(), "avif": boxes("ftyp", "meta", "mdat"),
	}
	for _, f := range samples().Files() {
		images[f.Path] = f.Body
	}
	for name, body := range images {
		if err := whole(body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Cut anywhere, it is no whole image any more.
		for _, n := range []int{0, 1, 11, len(body) / 3, len(body) / 2, len(body) - len(body)/4} {
			if n < len(body) && whole(body[:n]) == nil {
				t.Errorf("%s: %d of %d bytes count as whole", name, n, len(body))
			}
		}
	}
}

func TestWhatIsNoImage(t *testing.T) {
	for name, body := range map[string][]byte{
		"nothing": nil, "a page": []byte("<!doctype html><p>sorry"), "AVIF without pixels": boxes("ftyp", "meta"),
		"a WebP that is longer than it says": append(animatedWebP(), 0, 0), "a box of no size": {0, 0, 0, 4, 'f', 't', 'y', 'p', 'a', 'v', 'i', 'f'},
	} {
		if whole(body) == nil {
			t.Errorf("%s counts as a whole image", name)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel() // the samples take their time
	files := samples().Files()
	photo, logo := files[0], files[1]
	j := &judge{originals: map[string][]byte{photo.Path: photo.Body, logo.Path: logo.Body}}
	other := slices.Clone(photo.Body)
	other[len(other)/2] ^= 1
	for _, tt := range []struct {
		name, path string
		body       []byte
		good       bool
	}{
		{"the original", photo.Path, photo.Body, true},
		{"the original again", photo.Path, photo.Body, true},
		{"one bit of the original changed", photo.Path, other, false},
		{"a lighter format", photo.Path, stillWebP(t), true},
		{"a lighter format, cut", photo.Path, animatedWebP()[:40], false},
		{"another image's original in its own format", photo.Path, logo.Body, true}, // a whole PNG: not ours to tell apart
		{"a page", photo.Path, []byte("<p>"), false},
		{"the image of a site that nothing is known of", "/unknown.jpg", other[:100], true},
		{"the variant of such an image, cut", "/unknown.jpg", stillWebP(t)[:30], false},
	} {
		if err := j.fault(tt.path, tt.body); (err == nil) != tt.good {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestJudgeForgets(t *testing.T) {
	j := &judge{}
	for i := range judgeMemory + 10 {
		body := bytes.Clone(animatedWebP())
		binary.LittleEndian.PutUint32(body[20:], uint32(i)) // within the first chunk
		if err := j.fault("/a.gif", body); err != nil {
			t.Fatal(err)
		}
	}
	if len(j.good) > judgeMemory {
		t.Errorf("%d bodies are remembered", len(j.good))
	}
}

func FuzzWhole(f *testing.F) {
	f.Add(stillWebP(f))
	f.Add(animatedWebP())
	f.Add(boxes("ftyp", "meta", "mdat"))
	f.Add([]byte("\x00\x00\x00\x01ftypavif\x00\x00\x00\x00\x00\x00\x00\x10"))
	f.Fuzz(func(_ *testing.T, body []byte) {
		if format := formatOf(body); format == "webp" || format == "avif" {
			_ = whole(body) // must not panic or hang
		}
	})
}
