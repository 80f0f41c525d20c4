package demo

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

const sitePage = `<!doctype html><title>x</title><img src="/a.jpg" alt="  An
 apple "><IMG SRC='b.PNG?v=2'><img src="https://www.example.com/c.gif"/><img src="https://cdn.example.net/d.jpg">
<img src="/a.jpg"><img src="/e.svg"><img alt="none"><img src="/f%2Fg.jpeg"><!-- <img src="/h.jpg"> --><img src="data:image/png;base64,xx"><img src="//www.example.com/i.jpg">`

func TestImagesOfAPage(t *testing.T) {
	base, _ := url.Parse("https://www.example.com/shop/")
	var got []string
	for _, p := range imagesOf([]byte(sitePage), base, base.Host) {
		got = append(got, p.Path+" "+p.Title)
	}
	want := "/a.jpg An apple, /shop/b.PNG?v=2 b.PNG, /c.gif c.gif, /f%2Fg.jpeg g.jpeg, /i.jpg i.jpg"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
	many := strings.Repeat(`<img src="/x.jpg">`, 3)
	for i := range 30 {
		many += `<img src="/` + strings.Repeat("y", i+1) + `.jpg">`
	}
	if got := imagesOf([]byte(many), base, base.Host); len(got) != maxPictures {
		t.Errorf("%d images of a page with many", len(got))
	}
}

func TestPathsOfImages(t *testing.T) {
	for target, good := range map[string]bool{
		"/a.jpg": true, "/a%20b.JPEG?x=1": true, "/日本.png": true, "a.jpg": false, "": false, "//a.jpg": true,
		"https://other.example/a.jpg": false, "/a.svg": false, "/a": false, "/" + strings.Repeat("a", 2000) + ".jpg": false, "/%zz.jpg": false,
	} {
		if p, err := newPicture(target, ""); (err == nil) != good {
			t.Errorf("%q: %+v, %v", target, p, err)
		}
	}
}

func TestDiscoverAndBreak(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = io.WriteString(w, sitePage)
			return
		}
		w.Header().Set("X-Host", r.Host)
		_, _ = io.WriteString(w, r.RequestURI)
	}))
	t.Cleanup(site.Close)
	u, _ := url.Parse(site.URL)
	transport := siteTransport()
	t.Cleanup(transport.CloseIdleConnections)
	found, err := discover(t.Context(), u, transport)
	if err != nil || len(found) != 3 {
		t.Fatalf("%v: %v", found, err)
	}
	g := &gate{next: siteProxy(u, transport)}
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://karui.example/f%2Fg.jpeg?v=1", nil))
		return w
	}
	if w := ask(); w.Code != http.StatusOK || w.Body.String() != "/f%2Fg.jpeg?v=1" || w.Header().Get("X-Host") != u.Host {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
	g.broken.Store(true)
	if w := ask(); w.Code != http.StatusInternalServerError || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("broken: %d %v", w.Code, w.Header())
	}
	g.broken.Store(false)
	site.Close()
	if w := ask(); w.Code != http.StatusBadGateway {
		t.Errorf("gone: %d", w.Code)
	}
	if _, err := discover(t.Context(), u, transport); err == nil {
		t.Error("a site that is gone was discovered")
	}
}

func FuzzImagesOf(f *testing.F) {
	f.Add([]byte(sitePage))
	f.Fuzz(func(t *testing.T, page []byte) {
		base, _ := url.Parse("https://www.example.com/")
		for _, p := range imagesOf(page, base, base.Host) {
			if again, err := newPicture(p.Path, p.Title); err != nil || again.Path != p.Path {
				t.Errorf("%+v: %v", p, err)
			}
		}
	})
}
