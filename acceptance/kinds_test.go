package acceptance

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"karui/internal/origintest"
	"karui/internal/picture"
)

// serveFiles starts an origin with these files, each with an ETag, and karui in front of it.
func serveFiles(t *testing.T, files map[string][]byte, changes ...change) (*instance, *origintest.Origin) {
	t.Helper()
	origin := origintest.New(t)
	for target, body := range files {
		answer := origintest.Image(typeByName(target), body, field{Name: "ETag", Value: fmt.Sprintf(`"%x"`, sha256.Sum256(body))})
		answer.Validate = true
		origin.Set(target, answer)
	}
	return serve(t, origin, changes...), origin
}

// firstRequest is the first that arrived for a path.
func firstRequest(t *testing.T, origin *origintest.Origin, path string) origintest.Request {
	t.Helper()
	requests := origin.Requests(path)
	if len(requests) == 0 {
		t.Fatalf("no request for %s reached the origin", path)
	}
	return requests[0]
}

func TestEightOrientationsComeUpright(t *testing.T) {
	t.Parallel()
	// Another picture for each, since karui may take equal bytes for the same source.
	files := map[string][]byte{}
	for o := uint16(1); o <= 8; o++ {
		files[fmt.Sprintf("/o%d.jpg", o)] = oriented(encodeJPEG(t, scene(uint64(o), 320, 200), 93), o)
	}
	k, _ := serveFiles(t, files)
	for target, body := range files {
		a := k.settle(target, takesWebP)
		if !a.webp() {
			t.Errorf("%s: %v", target, a)
			continue
		}
		for _, problem := range samePicture(body, a.body) {
			t.Errorf("%s: %s", target, problem)
		}
	}
}

func TestAnimationsKeepFramesDelaysAndLoop(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{
		"/forever.gif": animation(t, 7, 0),
		"/once.gif":    animation(t, 5, -1),
		"/thrice.gif":  animation(t, 6, 2),
	}
	k, _ := serveFiles(t, files)
	for target, body := range files {
		a := k.settle(target, takesWebP)
		if !a.webp() {
			t.Errorf("%s was not converted: %v", target, a)
			continue
		}
		for _, problem := range samePicture(body, a.body) {
			t.Errorf("%s: %s", target, problem)
		}
		got, err := picture.DecodeWebP(a.body)
		if err != nil {
			t.Fatal(err)
		}
		want, err := pictures().Render(body)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Frames) != len(want.Frames) {
			t.Errorf("%s: %d frames, want %d", target, len(got.Frames), len(want.Frames))
			continue
		}
		for i := range want.Frames {
			if got.Frames[i].Milliseconds != want.Frames[i].Milliseconds {
				t.Errorf("%s: frame %d shows %d ms, want %d", target, i, got.Frames[i].Milliseconds, want.Frames[i].Milliseconds)
			}
		}
	}
}

// A file that ends early goes out as it came and is never converted, so that no
// grey half of it is kept.
func TestCutOffFilesGoOutAsTheyCame(t *testing.T) {
	t.Parallel()
	progressive, err := os.ReadFile(filepath.Join(corpus, "photos", "testdata__flower_cropped.jpg"))
	if err != nil {
		progressive = photo(t, 9)
	}
	whole := map[string][]byte{".jpg": photo(t, 1), ".png": logo(t, 2), ".gif": animation(t, 5, 0), "-2.jpg": progressive}
	files := map[string][]byte{}
	for ext, body := range whole {
		for percent := 10; percent <= 90; percent += 20 {
			files[fmt.Sprintf("/cut%d%s", percent, ext)] = body[:len(body)*percent/100]
		}
	}
	k, _ := serveFiles(t, files)
	for target, body := range files {
		for range 2 {
			if a := k.settle(target, takesWebP); a.karui() != "original" || !bytes.Equal(a.body, body) {
				t.Errorf("%s: %v", target, a)
			}
		}
	}
}

func TestJPEGWithoutItsEndMarkerIsWholeOrOriginal(t *testing.T) {
	t.Parallel()
	body := photo(t, 1)
	body = body[:len(body)-2]
	k, _ := serveFiles(t, map[string][]byte{"/a.jpg": body})
	a := k.settle("/a.jpg", takesWebP)
	if bytes.Equal(a.body, body) {
		return
	}
	for _, problem := range samePicture(body, a.body) {
		t.Error(problem)
	}
}

// What is too large is decided from the header: nothing of it is ever decoded.
func TestOverSizedFilesAreOriginalsFromTheHeader(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{
		"/wide.png":   pngClaiming(t, 16384, 10),
		"/tall.png":   pngClaiming(t, 10, 16384),
		"/pixels.png": pngClaiming(t, 9000, 9000),
		"/bomb.png":   pngClaiming(t, 60000, 60000),
		"/max.png":    pngClaiming(t, 1<<31-1, 1<<31-1),
	}
	k, _ := serveFiles(t, files)
	for target, body := range files {
		first := k.get(target, takesWebP)
		if !bytes.Equal(first.body, body) || first.karui() != "original" && first.karui() != "miss" {
			t.Errorf("%s: first answer %v", target, first)
		}
		a := k.settle(target, takesWebP)
		if a.karui() != "original" || !bytes.Equal(a.body, body) || a.maxAge() < 86000 {
			t.Errorf("%s: settled answer %v", target, a)
		}
	}
	if spent := k.metric("karui_convert_cpu_seconds_total"); spent != 0 {
		t.Errorf("workers spent %v s on them", spent)
	}
}

func TestLimitsOfTheConfigurationHold(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{
		"/pixels.jpg": encodeJPEG(t, scene(1, 400, 300), 93), // 120 kP
		"/frames.gif": animation(t, 12, 0),                   // 12 x 10.8 kP
		"/bytes.png":  encodePNG(t, scene(2, 200, 200)),      // 40 kP, over 40 kB
		"/small.jpg":  encodeJPEG(t, scene(3, 200, 150), 93), // within all
	}
	if len(files["/bytes.png"]) < 41_000 || len(files["/small.jpg"]) > 40_000 || len(files["/frames.gif"]) > 200_000 {
		t.Fatalf("samples of %d, %d and %d bytes do not fit the limits", len(files["/bytes.png"]), len(files["/small.jpg"]), len(files["/frames.gif"]))
	}
	k, _ := serveFiles(t, files, with("convert.max_pixels", "100kP"), with("convert.max_bytes", "40kB"))
	for target, body := range files {
		a := k.settle(target, takesWebP)
		if target == "/small.jpg" {
			if !a.webp() {
				t.Errorf("%s: %v", target, a)
			}
			continue
		}
		if a.karui() != "original" || !bytes.Equal(a.body, body) {
			t.Errorf("%s: %v", target, a)
		}
	}
}

// Magic bytes count, not names and not types.
func TestKindsUnderWrongNamesAndTypes(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	jpg, png, gif := photo(t, 1), logo(t, 2), animation(t, 4, 0)
	webp := someWebP(t)
	cases := []struct {
		target, said string
		body         []byte
		converted    bool
		real         string
	}{
		{"/jpeg-as.png", "image/png", jpg, true, "image/jpeg"},
		{"/png-as.jpg", "image/jpeg", png, true, "image/png"},
		{"/gif-as.jpg", "image/jpeg", gif, true, "image/gif"},
		{"/untyped.jpg", "application/octet-stream", encodeJPEG(t, scene(11, 300, 200), 93), true, "image/jpeg"},
		{"/text-typed.jpg", "text/plain", encodeJPEG(t, scene(12, 300, 200), 93), true, "image/jpeg"},
		{"/webp-as.jpg", "image/jpeg", webp, false, "image/webp"},
	}
	for _, c := range cases {
		origin.Set(c.target, origintest.Image(c.said, c.body))
	}
	k := serve(t, origin)
	for _, c := range cases {
		q := request{target: c.target, fields: []string{takesAny}, loose: true}
		if plain := k.do(q); !bytes.Equal(plain.body, c.body) || plain.header.Get("Content-Type") != c.real {
			t.Errorf("%s: a plain viewer got %v", c.target, plain)
		}
		a := k.settleOrPass(c.target, takesWebP)
		if a == nil {
			t.Errorf("%s never settled", c.target)
			continue
		}
		if c.converted != (a.karui() == "hit") || !c.converted && !bytes.Equal(a.body, c.body) {
			t.Errorf("%s: %v", c.target, a)
		}
		if plain := k.do(q); !bytes.Equal(plain.body, c.body) || plain.header.Get("Content-Type") != c.real {
			t.Errorf("%s: a plain viewer got %v afterwards", c.target, plain)
		}
	}
}
