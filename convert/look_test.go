package convert

import (
	"bytes"
	"context"
	"errors"
	"image"
	"path/filepath"
	"testing"
	"time"

	"karui/convert/header"
	"karui/internal/picture"
	"karui/internal/sample"
)

// lookPool has time enough for AVIF and HEIC on a busy machine.
func lookPool(t *testing.T) *Pool {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Workers, cfg.QueueWait, cfg.Timeout = 1, 5*time.Minute, time.Minute
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func (v View) image() *image.NRGBA {
	return &image.NRGBA{Pix: v.Pix, Stride: 4 * v.Width, Rect: image.Rect(0, 0, v.Width, v.Height)}
}

// Originals and variants look as independent decoders show them.
func TestLookShowsWhatOthersSee(t *testing.T) {
	p := lookPool(t)
	judge := picture.New("")
	for name, original := range map[string][]byte{"photo": sample.Photo(), "logo": sample.Logo(), "animation": sample.Animation()} {
		want, err := judge.Render(original)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []header.Format{header.Unknown, header.WebP, header.AVIF, header.HEIC} {
			shown := original
			if f != header.Unknown {
				r, err := p.Convert(t.Context(), original, Options{Formats: []header.Format{f}, Quality: 90, PNG: PNGLossy})
				if err != nil {
					t.Fatal(err)
				}
				if shown = r.Body; shown == nil {
					continue // this machine may lack an encoder, and an animation has one format only
				}
			}
			v, err := p.Look(t.Context(), shown, LookPixelsMost)
			if err != nil {
				t.Errorf("%s as %s: %v", name, f, err)
				continue
			}
			if v.Shrunk || v.image().Rect.Size() != want.Size() {
				t.Errorf("%s as %s: %d x %d, %t", name, f, v.Width, v.Height, v.Shrunk)
				continue
			}
			if mean, worst := picture.Difference(want.Frames[0].Image, v.image()); mean > 3 || worst > 30 {
				t.Errorf("%s as %s: differs by %.1f, at most %.1f", name, f, mean, worst)
			}
		}
	}
}

func TestLookIsBounded(t *testing.T) {
	p := lookPool(t)
	v, err := p.Look(t.Context(), sample.Photo(), 10_000)
	if err != nil || !v.Shrunk || v.Width*v.Height > 10_000 || v.Width*v.Height < 9_000 || len(v.Pix) != 4*v.Width*v.Height {
		t.Errorf("%d x %d %t %v", v.Width, v.Height, v.Shrunk, err)
	}
	for _, n := range []int{0, -1, LookPixelsMost + 1} {
		if _, err := p.Look(t.Context(), sample.Photo(), n); err == nil {
			t.Errorf("%d pixels", n)
		}
	}
}

func TestLookRefuses(t *testing.T) {
	p := lookPool(t)
	photo := sample.Photo()
	for name, b := range map[string][]byte{
		"nothing": nil, "a page": []byte("<!doctype html>"), "a drawing": []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`),
		"half a header": photo[:30], "no WebP": []byte("RIFF\x10\x00\x00\x00WEBPVP8 broken!!"),
		"no AVIF": append([]byte("\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1"), bytes.Repeat([]byte{1}, 99)...),
	} {
		if v, err := p.Look(t.Context(), b, 1000); !errors.Is(err, ErrNoView) {
			t.Errorf("%s: %d x %d, %v", name, v.Width, v.Height, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Look(ctx, photo, 1000); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if q := p.Quarantine(); len(q) > 0 {
		t.Errorf("%v", q)
	}
	p.Close()
	if _, err := p.Look(t.Context(), photo, 1000); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// Whatever is hard about an original, its variant and it look alike, colours and all.
func TestLookAtTheCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes a hundred pictures")
	}
	p := lookPool(t)
	compared := 0
	for _, path := range corpus(t, "hard", false) {
		original := read(t, path)
		r, err := p.Convert(t.Context(), original, Options{Formats: []header.Format{header.WebP}, Quality: 80})
		if err != nil {
			t.Fatal(err)
		}
		if r.Body == nil {
			continue
		}
		a, errA := p.Look(t.Context(), original, 200_000)
		b, errB := p.Look(t.Context(), r.Body, 200_000)
		if errA != nil || errB != nil {
			t.Errorf("%s: %v, %v", filepath.Base(path), errA, errB)
			continue
		}
		if a.Width != b.Width || a.Height != b.Height || a.Shrunk != b.Shrunk {
			t.Errorf("%s: %d x %d and %d x %d", filepath.Base(path), a.Width, a.Height, b.Width, b.Height)
			continue
		}
		if mean, _ := picture.Difference(a.image(), b.image()); mean > 8 { // some are of a quality at which a variant shows
			t.Errorf("%s: differs by %.1f", filepath.Base(path), mean)
		}
		compared++
	}
	if compared < 20 {
		t.Errorf("only %d were compared", compared)
	}
}
