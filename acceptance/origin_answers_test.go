package acceptance

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"
	"time"

	"karui/internal/origintest"
)

func TestMissingStaysMissingAndIsRememberedForShort(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	for _, status := range []int{404, 410} {
		target := fmt.Sprintf("/%d.jpg", status)
		origin.Set(target, origintest.Text(status, "text/html", "<h1>not here</h1>"))
	}
	k := serve(t, origin, with("ttl.short", "2s"))
	for _, status := range []int{404, 410} {
		target := fmt.Sprintf("/%d.jpg", status)
		for range 3 {
			for _, accept := range []string{takesWebP, takesAny} {
				a := k.get(target, accept)
				if a.status != status || string(a.body) != "<h1>not here</h1>" || a.header.Get("Content-Type") != "text/html" || a.maxAge() > 2 || a.maxAge() < 1 {
					t.Errorf("%d: %v", status, a)
				}
			}
		}
		if n := origin.Count(target); n > 2 {
			t.Errorf("%d was asked for %d times within its lifetime", status, n)
		}
		origin.Set(target, origintest.Image("image/jpeg", body))
		eventually(t, 10*time.Second, "the file that came into being", func() bool {
			return bytes.Equal(k.get(target, takesAny).body, body)
		})
	}
}

func TestOriginTroubleIs503WithoutStoring(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	for _, status := range []int{408, 425, 429, 500, 501, 502, 503, 504, 520, 599} {
		for _, ext := range []string{".jpg", ".css"} {
			target := "/" + strconv.Itoa(status) + ext
			origin.Set(target, origintest.Text(status, "text/html", "<h1>trouble</h1>", origintest.Field{Name: "Cache-Control", Value: "public, max-age=3600"}))
		}
	}
	k := serve(t, origin)
	for _, status := range []int{408, 425, 429, 500, 501, 502, 503, 504, 520, 599} {
		for _, ext := range []string{".jpg", ".css"} {
			target := "/" + strconv.Itoa(status) + ext
			for _, accept := range []string{takesWebP, takesAny} {
				if a := k.get(target, accept); a.status != 503 {
					t.Errorf("%s: %v", target, a)
				}
			}
			// Nothing of it is kept, beyond the fetch that is just ending.
			origin.Set(target, origintest.Image("image/jpeg", body))
			var a *reply
			if !became(2*time.Second, func() bool { a = k.get(target, takesAny); return a.status == 200 }) || !bytes.Equal(a.body, body) {
				t.Errorf("%s after the trouble: %v", target, a)
			}
		}
	}
}

func TestUnreachableOriginIs503WithinTheDeadline(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	hold := origintest.NewGate()
	defer hold.Open()
	body := photo(t, 1)
	origin.Set("/hangs.jpg", origintest.Answer{Hold: hold})
	origin.Set("/hangs.css", origintest.Answer{Hold: hold})
	origin.Set("/cut-head.jpg", origintest.Answer{Raw: []byte("HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-")})
	origin.Set("/nothing.jpg", origintest.Answer{Raw: []byte{}})
	origin.Set("/ssh.jpg", origintest.Answer{Raw: []byte("SSH-2.0-OpenSSH_9.2\r\n")})
	origin.Set("/no-body.jpg", origintest.Image("image/jpeg", body).CutAt(0, false))
	origin.Set("/reset.jpg", origintest.Image("image/jpeg", body).CutAt(0, true))
	origin.Set("/status.jpg", origintest.Answer{Raw: []byte("HTTP/1.1 999999 What\r\n\r\n")})
	origin.Set("/big-head.jpg", origintest.Image("image/jpeg", body, origintest.Field{Name: "X-Big", Value: string(bytes.Repeat([]byte("x"), 5<<20))}))
	k := serve(t, origin, with("origin.deadline", "2s"), with("origin.connect", "1s"))
	for _, target := range []string{"/hangs.jpg", "/hangs.css", "/cut-head.jpg", "/nothing.jpg", "/ssh.jpg", "/no-body.jpg", "/reset.jpg", "/status.jpg", "/big-head.jpg"} {
		started := time.Now()
		a := k.get(target, takesWebP)
		if a.status != 503 {
			t.Errorf("%s: %v", target, a)
		}
		if took := time.Since(started); took > 6*time.Second {
			t.Errorf("%s took %v with a deadline of 2 s", target, took)
		}
	}
	closed := prepare(t, "http://"+origintest.ClosedAddr())
	closed.start()
	for _, target := range []string{"/a.jpg", "/a.css"} {
		if a := closed.get(target, takesWebP); a.status != 503 {
			t.Errorf("refused: %v", a)
		}
	}
}

func TestRedirectsAndOtherRefusalsPassAsTheyAre(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	statuses := []int{301, 302, 303, 307, 308, 400, 401, 403, 405, 406, 416, 418, 451}
	for _, status := range statuses {
		origin.Set("/"+strconv.Itoa(status)+".jpg", origintest.Text(status, "text/html", "<p>see there</p>",
			origintest.Field{Name: "Location", Value: "https://elsewhere.example/x.jpg"},
			origintest.Field{Name: "Cache-Control", Value: "private, max-age=7"},
			origintest.Field{Name: "WWW-Authenticate", Value: `Basic realm="x"`}))
	}
	k := serve(t, origin)
	for _, status := range statuses {
		target := "/" + strconv.Itoa(status) + ".jpg"
		a := k.get(target, takesWebP)
		if a.status != status || string(a.body) != "<p>see there</p>" || a.header.Get("Location") != "https://elsewhere.example/x.jpg" ||
			a.header.Get("Cache-Control") != "private, max-age=7" || a.header.Get("WWW-Authenticate") != `Basic realm="x"` {
			t.Errorf("%d: %v", status, a)
		}
	}
}

func TestOriginThatAnswers304UnaskedMakesNoBrokenImage(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.Set("/a.jpg", origintest.Answer{Status: 304, Header: []origintest.Field{{Name: "ETag", Value: `"x"`}}})
	origin.Set("/204.jpg", origintest.Answer{Status: 204})
	origin.Set("/206.jpg", origintest.Answer{Status: 206, Header: []origintest.Field{{Name: "Content-Type", Value: "image/jpeg"}, {Name: "Content-Range", Value: "bytes 0-3/100"}}, Body: []byte("\xff\xd8\xff\xe0")})
	origin.Set("/empty.jpg", origintest.Image("image/jpeg", nil))
	k := serve(t, origin)
	for target, wanted := range map[string][]int{"/a.jpg": {304, 503}, "/204.jpg": {204, 503}, "/206.jpg": {206, 503}, "/empty.jpg": {200}} {
		for range 2 {
			a := k.get(target, takesWebP)
			found := false
			for _, status := range wanted {
				found = found || a.status == status
			}
			if !found || a.status == 200 && a.maxAge() > 10 || a.webp() {
				t.Errorf("%s: %v", target, a)
			}
		}
	}
}

func TestWhatIsNoImageKeepsItsTypeAndGetsTheShortLifetime(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	page := "<!DOCTYPE html><html><body>Service is being maintained</body></html>"
	cases := []struct{ target, said, body, want string }{
		{"/html-as-image.jpg", "image/jpeg", page, "text/html"},
		{"/html.png", "text/html; charset=utf-8", page, "text/html; charset=utf-8"},
		{"/json.gif", "application/json", `{"error":"quota"}`, "application/json"},
		{"/json-as-image.jpg", "image/jpeg", `{"error":"quota"}`, ""},
		{"/xml-as-image.jpg", "image/jpeg", `<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>`, ""},
		{"/text.jpg", "text/plain", "nothing to see", "text/plain"},
	}
	for _, c := range cases {
		origin.Set(c.target, origintest.Text(200, c.said, c.body, origintest.Field{Name: "Cache-Control", Value: "max-age=86400"}))
	}
	k := serve(t, origin)
	for _, c := range cases {
		for i := range 3 {
			for _, accept := range []string{takesWebP, takesAny} {
				a := k.get(c.target, accept)
				kind := a.header.Get("Content-Type")
				if a.status != 200 || string(a.body) != c.body || a.maxAge() > 10 || a.maxAge() < 1 {
					t.Errorf("%s, %d: %v", c.target, i, a)
				}
				if c.want != "" && kind != c.want && kind != c.want+"; charset=utf-8" || kind == "image/jpeg" {
					t.Errorf("%s: type %q, want %q", c.target, kind, c.want)
				}
			}
		}
	}
}

func TestSVGPassesThrough(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	svg := `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><rect/></svg>`
	origin.Set("/a.svg", origintest.Text(200, "image/svg+xml", svg))
	origin.Set("/named.png", origintest.Text(200, "image/svg+xml", svg))
	origin.Set("/typed.png", origintest.Text(200, "image/png", `<?xml version="1.0"?>`+svg))
	k := serve(t, origin)
	for target, want := range map[string]string{"/a.svg": svg, "/named.png": svg, "/typed.png": `<?xml version="1.0"?>` + svg} {
		for range 2 {
			a := k.get(target, takesWebP)
			if a.status != 200 || string(a.body) != want || a.header.Get("Content-Type") != "image/svg+xml" {
				t.Errorf("%s: %v", target, a)
			}
		}
	}
}
