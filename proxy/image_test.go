package proxy

import (
	"net/http"
	"testing"
	"time"

	"karui/internal/origintest"
)

func TestFirstViewerGetsTheOriginalThenTheVariant(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", origintest.Image("image/jpeg", jpg, origintest.Field{Name: "ETag", Value: `"v1"`}))

	first := r.get("/a.jpg", takesWebP)
	r.want(first, 200, jpg, map[string]string{
		"Content-Type": "image/jpeg", "Cache-Control": "public, max-age=10", "X-Karui": "miss", "Vary": "Accept", "ETag": `"v1"`,
		"Last-Modified": "", "Age": "",
	})
	r.idle()
	second := r.get("/a.jpg", takesWebP)
	r.want(second, 200, webp(jpg), map[string]string{
		"Content-Type": "image/webp", "X-Karui": "hit", "Vary": "Accept", "ETag": "*", "X-Karui-Saved": "*",
		"Content-Disposition": `inline; filename="a.webp"`, "X-Content-Type-Options": "nosniff", "Content-Length": "*",
	})
	r.want(r.get("/a.jpg", takesJPEG), 200, jpg, map[string]string{"X-Karui": "original", "Vary": "Accept", "ETag": `"v1"`})
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
	if n := r.fake.calls.Load(); n != 1 {
		t.Errorf("%d conversions, want one", n)
	}
}

func TestViewerWaitsForTheVariant(t *testing.T) {
	r := newRig(t, waiting(limit))
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", origintest.Image("image/jpeg", jpg))
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "wait", "Cache-Control": "public, max-age=86400"})
}

var _ = http.MethodGet
var _ = time.Second
