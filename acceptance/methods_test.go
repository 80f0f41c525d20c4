package acceptance

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"karui/internal/origintest"
)

// sameHead compares what a HEAD says with what a GET says.
func sameHead(head, get *reply) []string {
	var found []string
	if head.status != get.status {
		found = append(found, fmt.Sprintf("status %d, GET has %d", head.status, get.status))
	}
	for name := range get.header {
		if name == "Date" || name == "Cache-Control" || name == "Transfer-Encoding" {
			continue
		}
		if !slices.Equal(head.header.Values(name), get.header.Values(name)) {
			found = append(found, fmt.Sprintf("%s: %q, GET has %q", name, head.header.Values(name), get.header.Values(name)))
		}
	}
	if d := head.maxAge() - get.maxAge(); d < -3 || d > 3 {
		found = append(found, fmt.Sprintf("Cache-Control %q, GET has %q", head.header.Get("Cache-Control"), get.header.Get("Cache-Control")))
	}
	if len(head.body) != 0 {
		found = append(found, fmt.Sprintf("%d bytes of body", len(head.body)))
	}
	return found
}

func TestHeadAnswersWhatGetWould(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.Set("/hit.jpg", origintest.Image("image/jpeg", photo(t, 1)))
	origin.Set("/kept.jpg", origintest.Image("image/jpeg", stubborn(t)))
	origin.Set("/html.jpg", origintest.Text(200, "text/html", "<html>oops</html>"))
	origin.Set("/moved.jpg", origintest.Text(301, "text/plain", "gone there", origintest.Field{Name: "Location", Value: "/else.jpg"}))
	origin.Set("/forbidden.jpg", origintest.Text(403, "text/plain", "no"))
	origin.Set("/sick.jpg", origintest.Text(500, "text/plain", "boom"))
	origin.Set("/busy.jpg", origintest.Text(429, "text/plain", "slow down"))
	origin.Set("/style.css", origintest.Text(200, "text/css", "a{}"))
	k := serve(t, origin)
	k.settle("/hit.jpg", takesWebP)
	k.settle("/kept.jpg", takesWebP)
	for _, target := range []string{"/hit.jpg", "/kept.jpg", "/html.jpg", "/moved.jpg", "/forbidden.jpg", "/sick.jpg", "/busy.jpg", "/missing.jpg", "/style.css", "/missing.css"} {
		for _, accept := range []string{takesWebP, takesAny} {
			get := k.get(target, accept)
			head := k.do(request{method: http.MethodHead, target: target, fields: []string{accept}})
			for _, problem := range sameHead(head, get) {
				t.Errorf("%s (%s): %s", target, accept, problem)
			}
		}
	}
}

func TestHeadOfAColdImageAnswersWhatGetWould(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	for _, target := range []string{"/head.jpg", "/get.jpg", "/head2.jpg", "/get2.jpg"} {
		origin.Set(target, origintest.Image("image/jpeg", body))
	}
	k := serve(t, origin)
	for _, c := range []struct{ head, get, accept string }{
		{"/head.jpg", "/get.jpg", takesAny},
		{"/head2.jpg", "/get2.jpg", takesWebP},
		{"/none.jpg", "/none2.jpg", takesWebP},
	} {
		head := k.do(request{method: http.MethodHead, target: c.head, fields: []string{c.accept}})
		get := k.get(c.get, c.accept)
		// A conversion of equal bytes may be over by then.
		if head.status != get.status || get.karui() == "miss" && head.header.Get("Content-Type") != get.header.Get("Content-Type") ||
			get.karui() == "miss" && head.karui() == "miss" && head.length != get.length || len(head.body) != 0 {
			t.Errorf("HEAD %v\nGET %v", head, get)
		}
	}
	// A HEAD leaves nothing half done behind: the next GET is whole.
	if a := k.get("/head.jpg", takesAny); !bytes.Equal(a.body, body) {
		t.Errorf("GET after HEAD: %v", a)
	}
}

func TestKeepAliveSurvivesHeadAnd304(t *testing.T) {
	t.Parallel()
	k, _ := serveFiles(t, map[string][]byte{"/a.jpg": photo(t, 1)})
	variant, _ := settledPair(t, k, "/a.jpg")
	want := k.get("/a.jpg", takesWebP).body
	c := k.dial()
	for range 5 {
		for _, q := range []request{
			{method: http.MethodHead, target: "/a.jpg", host: "www.example.com", fields: []string{takesWebP}},
			{target: "/a.jpg", host: "www.example.com", fields: []string{takesWebP, "If-None-Match: " + variant}},
			{target: "/missing.jpg", host: "www.example.com"},
		} {
			if a := c.do(q); a.err != nil || a.status == 0 {
				t.Fatalf("%+v: %v", q, a)
			}
		}
		if a := c.do(request{target: "/a.jpg", host: "www.example.com", fields: []string{takesWebP}}); a.err != nil || !bytes.Equal(a.body, want) {
			t.Fatalf("GET on the same connection: %v", a)
		}
	}
}

func TestOtherMethodsAreRefusedWithAllow(t *testing.T) {
	t.Parallel()
	k, origin := serveFiles(t, map[string][]byte{"/a.jpg": photo(t, 1)})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "PURGE", "get", "BREW"} {
		for _, target := range []string{"/a.jpg", "/other.html"} {
			a := k.do(request{method: method, target: target, body: "x"})
			if a.status != 405 || !listed(a.header, "Allow", "GET") || !listed(a.header, "Allow", "HEAD") || !listed(a.header, "Allow", "OPTIONS") {
				t.Errorf("%s %s: %v", method, target, a)
			}
		}
	}
	if n := origin.Count(""); n != 0 {
		t.Errorf("%d requests reached the origin", n)
	}
}

func TestOptionsStreamsToTheOrigin(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.SetFunc("/a.jpg", func(r origintest.Request) origintest.Answer {
		if r.Method != http.MethodOptions {
			return origintest.Image("image/jpeg", photo(t, 1))
		}
		return origintest.Answer{Status: 204, Header: []origintest.Field{
			{Name: "Access-Control-Allow-Origin", Value: r.Header.Get("Origin")},
			{Name: "Access-Control-Allow-Methods", Value: r.Header.Get("Access-Control-Request-Method")},
			{Name: "Access-Control-Max-Age", Value: "600"},
		}}
	})
	k := serve(t, origin)
	for _, from := range []string{"https://a.example", "https://b.example"} {
		a := k.do(request{method: http.MethodOptions, target: "/a.jpg?x=%20", fields: []string{"Origin: " + from, "Access-Control-Request-Method: GET"}})
		if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != from || a.header.Get("Access-Control-Max-Age") != "600" {
			t.Errorf("%v", a)
		}
	}
	requests := origin.Requests("/a.jpg")
	if len(requests) != 2 || !strings.HasPrefix(requests[0].Line, "OPTIONS /a.jpg?x=%20 ") {
		t.Errorf("the origin saw %+v", requests)
	}
}
