package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"karui/internal/origintest"
)

// What is not convertible streams through with every end-to-end field, ranges and conditions included.
func TestOtherPathsStreamThroughUntouched(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	page := []byte("body { color: red } /* " + strings.Repeat("x", 5000) + " */")
	origin.SetFunc("/style.css", func(r origintest.Request) origintest.Answer {
		a := origintest.Image("text/css; charset=Shift_JIS", page,
			field{Name: "ETag", Value: `W/"origin"`}, field{Name: "Last-Modified", Value: "Mon, 02 Jan 2006 15:04:05 GMT"}, field{Name: "Cache-Control", Value: "max-age=5, stale-while-revalidate=9"},
			field{Name: "Age", Value: "3"}, field{Name: "X-Custom", Value: "a"}, field{Name: "X-Custom", Value: "b"}, field{Name: "Set-Cookie", Value: "a=1; Path=/"}, field{Name: "Set-Cookie", Value: "b=2"},
			field{Name: "Vary", Value: "Cookie"}, field{Name: "Content-Language", Value: "ja"}, field{Name: "Expires", Value: "0"},
			field{Name: "Connection", Value: "X-Hop"}, field{Name: "X-Hop", Value: "1"}, field{Name: "Keep-Alive", Value: "timeout=5"})
		a.Validate = true
		if from, to, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Range"), "bytes="), "-"); ok {
			i, _ := strconv.Atoi(from)
			j, _ := strconv.Atoi(to)
			a.Status, a.Body = 206, page[i:j+1]
			a = a.With("Content-Range", fmt.Sprintf("bytes %d-%d/%d", i, j, len(page)))
		}
		return a
	})
	k := serve(t, origin)
	a := k.get("/style.css?v=1&x=%20", "Cookie: s=1", "Accept-Language: ja", "Accept-Encoding: br", "User-Agent: me")
	if a.status != 200 || !bytes.Equal(a.body, page) || a.length != int64(len(page)) {
		t.Fatalf("%v", a)
	}
	for name, want := range map[string][]string{
		"Content-Type": {"text/css; charset=Shift_JIS"}, "Etag": {`W/"origin"`}, "Last-Modified": {"Mon, 02 Jan 2006 15:04:05 GMT"}, "Cache-Control": {"max-age=5, stale-while-revalidate=9"},
		"X-Custom": {"a", "b"}, "Set-Cookie": {"a=1; Path=/", "b=2"}, "Content-Language": {"ja"}, "Expires": {"0"}, "X-Hop": nil, "Keep-Alive": nil, "X-Karui": {"bypass"}, "Vary": {"Cookie"}, "Age": {"3"},
	} {
		if got := a.header.Values(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	r := firstRequest(t, origin, "/style.css")
	if r.Line != "GET /style.css?v=1&x=%20 HTTP/1.1" || r.Header.Get("Cookie") != "s=1" || r.Header.Get("Accept-Language") != "ja" || r.Header.Get("Accept-Encoding") != "br" {
		t.Errorf("the origin saw\n%s", r.Head)
	}
	if a := k.get("/style.css", "Range: bytes=10-19"); a.status != 206 || !bytes.Equal(a.body, page[10:20]) || a.header.Get("Content-Range") != fmt.Sprintf("bytes 10-19/%d", len(page)) {
		t.Errorf("range: %v", a)
	}
	if a := k.get("/style.css", `If-None-Match: "origin"`); a.status != 304 || len(a.body) != 0 || a.header.Get("Etag") != `W/"origin"` {
		t.Errorf("condition: %v", a)
	}
	if a := k.get("/missing.html"); a.status != 404 || string(a.body) != "no such file\n" {
		t.Errorf("missing: %v", a)
	}
	if n := origin.Count("/style.css"); n != 3 {
		t.Errorf("%d requests to the origin for 3", n)
	}
}

func TestPassthroughInEveryFraming(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	for name, framing := range map[string]origintest.Framing{"length": origintest.Length, "chunked": origintest.Chunked, "close": origintest.Close} {
		for _, ext := range []string{".bin", ".jpg"} {
			a := origintest.Image("application/octet-stream", body)
			a.Framing = framing
			origin.Set("/"+name+ext, a)
		}
	}
	k := serve(t, origin)
	for _, name := range []string{"length", "chunked", "close"} {
		for _, ext := range []string{".bin", ".jpg"} {
			a := k.get("/"+name+ext, takesWebP)
			if a.status != 200 || !bytes.Equal(a.body, body) || a.err != nil {
				t.Errorf("%s%s: %v", name, ext, a)
			}
		}
	}
}

func TestIncludeAndExcludeChooseThePaths(t *testing.T) {
	t.Parallel()
	body := photo(t, 1)
	origin := origintest.New(t)
	origin.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Image("image/jpeg", body) })
	k := serve(t, origin, withSite("include", []string{"/img/*"}), withSite("exclude", []string{"/img/raw/*"}))
	for target, want := range map[string]bool{"/img/a.jpg": true, "/img/deep/b.jpg": true, "/img/raw/c.jpg": false, "/other/d.jpg": false} {
		a := k.do(request{target: target, fields: []string{takesWebP}, loose: !want})
		if want != (a.karui() != "bypass") || !want && !bytes.Equal(a.body, body) {
			t.Errorf("%s: %v", target, a)
		}
	}
}

func TestPathsWithoutExtensionConvertByTypeWhereTheSiteSaysSo(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.Set("/image/1", origintest.Image("image/jpeg", body))
	origin.Set("/page", origintest.Text(200, "text/html", "<html></html>"))
	k := serve(t, origin, withSite("extensionless", true))
	a := k.settle("/image/1", takesWebP)
	if a.karui() != "hit" || !a.webp() || !listed(a.header, "Vary", "Accept") {
		t.Errorf("%v", a)
	}
	if a := k.get("/page", takesWebP); string(a.body) != "<html></html>" || a.header.Get("Content-Type") != "text/html" {
		t.Errorf("%v", a)
	}
	off := serve(t, origin)
	if a := off.get("/image/1", takesWebP); a.karui() != "bypass" || !bytes.Equal(a.body, body) {
		t.Errorf("without extensionless: %v", a)
	}
}

// A body far larger than convert.max_bytes streams through under a convertible name, too.
func TestBigFilesStreamThrough(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	head := photo(t, 1)
	size := int64(60 << 20)
	if testing.Short() {
		size = 36 << 20
	}
	for name, framing := range map[string]origintest.Framing{"/length.jpg": origintest.Length, "/chunked.jpg": origintest.Chunked, "/length.bin": origintest.Length} {
		a := origintest.Image("image/jpeg", head)
		a.Size, a.Framing = size, framing
		origin.Set(name, a)
	}
	k := serve(t, origin)
	for _, target := range []string{"/length.jpg", "/chunked.jpg", "/length.bin"} {
		c := k.dial()
		q := request{target: target, host: "www.example.com", fields: []string{takesWebP}}
		if _, err := c.Write(q.bytes()); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(c.r, nil)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		if n != size || err != nil || response.StatusCode != 200 {
			t.Errorf("%s: %d, %d of %d bytes, %v", target, response.StatusCode, n, size, err)
		}
		_ = c.Close()
	}
}
