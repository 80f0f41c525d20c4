package sample_test

import (
	"bytes"
	"image"
	"image/gif"
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"

	"karui/internal/sample"
)

// origin is drawn once for all tests.
var origin = sync.OnceValue(sample.New)

func TestImagesAreWhatTheySay(t *testing.T) {
	want := map[string]struct {
		format        string
		width, height int
	}{
		sample.PhotoPath:      {"jpeg", 1200, 868},
		sample.LogoPath:       {"png", 512, 512},
		sample.ScreenshotPath: {"png", 1280, 800},
		sample.AnimationPath:  {"gif", 320, 200},
	}
	for _, f := range origin().Files() {
		img, format, err := image.Decode(bytes.NewReader(f.Body))
		if err != nil {
			t.Fatalf("%s: %s", f.Path, err)
		}
		w := want[f.Path]
		if size := img.Bounds().Size(); format != w.format || size.X != w.width || size.Y != w.height {
			t.Errorf("%s is a %s of %v, want %+v", f.Path, format, size, w)
		}
		if dir := os.Getenv("KARUI_SAMPLE_DIR"); dir != "" {
			if err := os.WriteFile(dir+f.Path, f.Body, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		delete(want, f.Path)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func TestImagesAreTheSameEveryTime(t *testing.T) {
	again := map[string][]byte{
		sample.PhotoPath: sample.Photo(), sample.LogoPath: sample.Logo(),
		sample.ScreenshotPath: sample.Screenshot(), sample.AnimationPath: sample.Animation(),
	}
	for _, f := range origin().Files() {
		if !bytes.Equal(f.Body, again[f.Path]) {
			t.Errorf("%s was drawn differently", f.Path)
		}
	}
}

func TestLogoIsTransparentAtItsCorners(t *testing.T) {
	img, _, err := image.Decode(bytes.NewReader(sample.Logo()))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, a := img.At(0, 0).RGBA(); a != 0 {
		t.Errorf("alpha of the corner is %d", a)
	}
	if _, _, _, a := img.At(256, 256).RGBA(); a != 0xffff {
		t.Errorf("alpha of the middle is %d", a)
	}
}

func TestAnimationMovesAndLoops(t *testing.T) {
	anim, err := gif.DecodeAll(bytes.NewReader(sample.Animation()))
	if err != nil {
		t.Fatal(err)
	}
	if len(anim.Image) != 20 || anim.LoopCount != 0 {
		t.Errorf("%d frames, loop count %d", len(anim.Image), anim.LoopCount)
	}
	for i := 1; i < len(anim.Image); i++ {
		if bytes.Equal(anim.Image[i].Pix, anim.Image[i-1].Pix) {
			t.Errorf("frame %d is the same as the one before", i)
		}
	}
}

func TestOriginAnswersLikeAServer(t *testing.T) {
	origin := origin()
	get := func(method, path string, header ...string) *http.Response {
		r := httptest.NewRequest(method, path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		origin.ServeHTTP(w, r)
		return w.Result()
	}
	for _, f := range origin.Files() {
		res := get(http.MethodGet, f.Path)
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != f.ContentType ||
			res.Header.Get("Content-Length") != strconv.Itoa(len(f.Body)) ||
			res.Header.Get("Etag") == "" || res.Header.Get("Last-Modified") == "" {
			t.Errorf("%s: %d %v", f.Path, res.StatusCode, res.Header)
		}
		if res := get(http.MethodGet, f.Path, "If-None-Match", res.Header.Get("Etag")); res.StatusCode != http.StatusNotModified {
			t.Errorf("%s with its own tag: %d", f.Path, res.StatusCode)
		}
		if res := get(http.MethodHead, f.Path); res.StatusCode != http.StatusOK || res.ContentLength != int64(len(f.Body)) {
			t.Errorf("HEAD %s: %d, length %d", f.Path, res.StatusCode, res.ContentLength)
		}
	}
	for path, status := range map[string]int{"/": 200, "/none.jpg": 404, "/photo.jpg/": 404} {
		if res := get(http.MethodGet, path); res.StatusCode != status {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, status)
		}
	}
	if res := get(http.MethodPost, "/photo.jpg"); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", res.StatusCode)
	}
}
