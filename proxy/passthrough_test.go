package proxy

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"testing"

	"karui/internal/origintest"
)

func TestPassThrough(t *testing.T) {
	r := newRig(t)
	css := bytes.Repeat([]byte("a{color:red}\n"), 5000)
	r.origin.SetFunc("/a.css", func(q origintest.Request) origintest.Answer {
		switch {
		case q.Header.Get("Range") == "bytes=0-9":
			return origintest.Text(206, "text/css", string(css[:10]), field("Content-Range", "bytes 0-9/65000"), field("ETag", `"c"`))
		case q.Header.Get("If-None-Match") == `"c"`:
			return origintest.Answer{Status: 304, Header: []origintest.Field{field("ETag", `"c"`), field("Cache-Control", "max-age=5")}}
		}
		return origintest.Image("text/css", css, field("ETag", `"c"`), field("Last-Modified", "Tue, 03 Nov 2026 11:59:00 GMT"),
			field("Cache-Control", "private, max-age=5"), field("Set-Cookie", "a=b"), field("Age", "7"), field("X-Own", "1"))
	})
	whole := map[string]string{
		"X-Karui": "bypass", "ETag": `"c"`, "Last-Modified": "*", "Cache-Control": "private, max-age=5", "Set-Cookie": "a=b",
		"Age": "7", "X-Own": "1", "Content-Type": "text/css", "Vary": "",
	}
	r.want(r.get("/a.css", takesWebP, "X-Mine: 1"), 200, css, whole)
	r.want(r.do(http.MethodHead, "/a.css"), 200, []byte{}, whole)
	r.want(r.get("/a.css", "Range: bytes=0-9"), 206, css[:10], map[string]string{"Content-Range": "bytes 0-9/65000"})
	r.want(r.get("/a.css", `If-None-Match: "c"`), 304, []byte{}, map[string]string{"ETag": `"c"`, "Cache-Control": "max-age=5"})
	sent := r.origin.Requests("/a.css")
	if sent[0].Header.Get("X-Mine") != "1" || sent[0].Header.Get("Accept") == "" {
		t.Errorf("end-to-end headers were lost: %v", sent[0].Header)
	}
	if sent[1].Method != http.MethodHead {
		t.Errorf("HEAD reached the origin as %s", sent[1].Method)
	}
	r.origin.Set("/missing.css", origintest.Text(404, "text/plain", "no", field("Cache-Control", "max-age=9")))
	r.want(r.get("/missing.css"), 404, []byte("no"), map[string]string{"Cache-Control": "max-age=9", "Vary": ""})
	for _, status := range []int{408, 425, 429, 500, 503} {
		r.origin.Set("/a.txt", origintest.Text(status, "text/plain", "oops"))
		r.want(r.get("/a.txt"), 503, nil, unavailable("origin"))
	}
}

func TestBigFilesStreamThrough(t *testing.T) {
	r := newRig(t)
	const size = 64 << 20
	answer := origintest.Answer{Body: bytes.Repeat([]byte("0123456789abcdef"), 4096), Size: size}
	r.origin.Set("/big.zip", answer.With("Content-Type", "application/zip"))
	resp, err := r.client.Get(r.server.URL + "/big.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
		t.Errorf("%d bytes came, %v", n, err)
	}
}

func TestExcludedPathsStreamThrough(t *testing.T) {
	r := newRig(t, withSite(func(s *SiteConfig) { s.Include, s.Exclude = []string{"/img/*"}, []string{"*/raw/*"} }))
	jpg := photo(t, 64, 1)
	r.origin.SetDefault(func(origintest.Request) origintest.Answer { return jpegAnswer(jpg) })
	for target, did := range map[string]string{"/img/a.jpg": "miss", "/img/raw/a.jpg": "bypass", "/a.jpg": "bypass"} {
		a := r.get(target, takesWebP)
		r.want(a, 200, jpg, map[string]string{"X-Karui": did})
		if negotiated := a.Header.Get("Vary") == "Accept"; negotiated != (did == "miss") {
			t.Errorf("%s: Vary %q", target, a.Header.Get("Vary"))
		}
	}
}

func TestExtensionless(t *testing.T) {
	r := newRig(t, withSite(func(s *SiteConfig) { s.Extensionless = true }))
	jpg := photo(t, 64, 1)
	r.origin.Set("/photo/1", validated(jpg, `"v1"`))
	page := origintest.Text(200, "text/html", "<p>page</p>", field("ETag", `"p"`), field("Last-Modified", "Tue, 03 Nov 2026 11:59:00 GMT"), field("Cache-Control", "max-age=60"))
	page.Validate = true
	r.origin.Set("/page", page)

	r.want(r.get("/photo/1", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss", "Vary": "Accept", "Cache-Control": "public, max-age=10"})
	r.idle()
	r.want(r.get("/photo/1", takesWebP), 200, webp(jpg), map[string]string{
		"X-Karui": "hit", "Vary": "Accept", "Content-Disposition": `inline; filename="1.webp"`,
	})
	r.want(r.get("/photo/1", takesJPEG), 200, jpg, map[string]string{"X-Karui": "original", "Vary": "Accept"})
	for range 2 {
		r.want(r.get("/page", takesWebP), 200, []byte("<p>page</p>"), map[string]string{
			"X-Karui": "bypass", "Vary": "", "Cache-Control": "max-age=60", "Last-Modified": "*", "ETag": `"p"`,
		})
		r.idle()
	}
	r.want(r.get("/page", `If-None-Match: "p"`), 304, []byte{}, map[string]string{"Vary": ""})
	if got := r.origin.Requests("/page")[2].Header.Get("If-None-Match"); got != `"p"` {
		t.Errorf("a page's condition reached the origin as %q", got)
	}
	r.want(r.get("/missing"), 404, nil, map[string]string{"Vary": "", "X-Karui": "bypass"})
}

func TestMethods(t *testing.T) {
	r := newRig(t)
	r.origin.SetFunc("/a.jpg", func(q origintest.Request) origintest.Answer {
		return origintest.Answer{Status: 204, Header: []origintest.Field{
			field("Access-Control-Allow-Origin", q.Header.Get("Origin")), field("X-Method", q.Method),
		}}
	})
	r.want(r.do(http.MethodOptions, "/a.jpg", "Origin: https://a.example", "Access-Control-Request-Method: GET"), 204, []byte{}, map[string]string{
		"Access-Control-Allow-Origin": "https://a.example", "X-Method": "OPTIONS",
	})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "PURGE", "TRACE"} {
		for _, path := range []string{"/a.jpg", "/a.css"} {
			r.want(r.do(method, path), 405, nil, map[string]string{"Allow": "GET, HEAD, OPTIONS"})
		}
	}
	if n := r.origin.Count(""); n != 1 {
		t.Errorf("the origin was asked %d times, want for the OPTIONS alone", n)
	}
}

// A body that is announced and never comes keeps no answer back.
func TestBodyThatNeverComes(t *testing.T) {
	r := newRig(t)
	r.origin.Set("/a.jpg", jpegAnswer(photo(t, 64, 1)))
	for line, status := range map[string]int{
		"GET /a.jpg": 200, "HEAD /a.jpg": 200, "GET /.karui/ping.jpg": 200, "POST /a.jpg": 405, "GET /missing": 404, "OPTIONS /a.jpg": 200, "GET /a.css": 404,
	} {
		for !r.proxy.Well() {
			runtime.Gosched()
		}
		for _, framing := range []string{"Content-Length: 5\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"} {
			resp, body, _ := r.raw(line + " HTTP/1.1\r\nHost: a\r\n" + framing)
			if resp.StatusCode != status {
				t.Errorf("%s, %q: status %d, want %d", line, framing, resp.StatusCode, status)
			}
			if _, err := io.Copy(io.Discard, body); err != nil {
				t.Errorf("%s, %q: the connection did not end: %v", line, framing, err)
			}
		}
	}
}

func TestRouteAndSecretOnTheWire(t *testing.T) {
	r := newRig(t, withSettings(func(s *Settings) {
		s.Edge.Secrets = []string{"old", "new"}
		s.Sites[0].Config.Default = false
	}))
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	key := "X-Karui-Key: new"
	r.want(r.get("/a.jpg", key, "Host: www.example.com:8080"), 200, jpg, nil)
	r.want(r.get("/a.jpg", key, "X-Routing: shop"), 200, jpg, nil)
	r.want(r.get("/a.jpg", key, "Host: other.example.com"), 503, nil, unavailable("route"))
	r.want(r.get("/a.jpg", key, "X-Routing: nobody", "Host: www.example.com"), 503, nil, unavailable("route"))
	r.want(r.get("/a.jpg", "Host: www.example.com"), 503, nil, unavailable("secret"))
	r.want(r.get("/a.jpg", "X-Karui-Key: wrong", "X-Routing: shop"), 503, nil, unavailable("secret"))
	for _, q := range r.origin.Requests("") {
		if q.Header.Get(KeyHeader) != "" || q.Header.Get("X-Routing") != "" {
			t.Error("the edge's headers reached the origin")
		}
	}
}

func TestWrongSecretNeverReachesOrigin(t *testing.T) {
	r := newRig(t, withSettings(func(s *Settings) { s.Edge.Secrets = []string{"s"} }))
	r.get("/a.css")
	r.do(http.MethodOptions, "/a.jpg")
	r.do(http.MethodPost, "/a.jpg")
	if n := r.origin.Count(""); n != 0 {
		t.Errorf("%d requests without the secret reached the origin", n)
	}
}
