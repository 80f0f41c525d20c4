package edge

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestHeadIsAnsweredFromTheWholeObject(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.want("/img/a", "karui", Miss)
		s := l.do(l.request(http.MethodHead, "/img/a"))
		if s.status != 200 || s.cache() != Hit || s.header.Get("Content-Length") != "5" || s.body != "" {
			t.Errorf("%d %s %v", s.status, s.cache(), s.header)
		}
		l.asked(1, 0)
	})
}

func TestAHeadWithoutAnObjectGoesToTheOriginAndDoesNotAnswerGet(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(200, "", "Cache-Control: max-age=60", "Content-Length: 5")
		for _, want := range []string{Miss, Hit} {
			if s := l.do(l.request(http.MethodHead, "/img/a")); s.cache() != want || s.header.Get("Content-Length") != "5" {
				t.Errorf("%s %v, want %s", s.cache(), s.header, want)
			}
		}
		if got := l.karui.last(t).Method; got != http.MethodHead {
			t.Errorf("%s arrived", got)
		}
		l.karui.says(200, "karui", "Cache-Control: max-age=60")
		l.want("/img/a", "karui", Miss)
	})
}

func TestHeadOfAMissingFileSaysSo(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(404, "no")
		if s := l.do(l.request(http.MethodHead, "/img/a")); s.status != 404 || s.cache() != Error {
			t.Errorf("%d %s", s.status, s.cache())
		}
	})
}

func TestRangesAreCutFromAnObjectThatIsThere(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(200, "0123456789", "Cache-Control: max-age=60", `Etag: "k-1"`)
		l.get("/img/a")
		for _, c := range []struct {
			lines  string
			status int
			body   string
		}{
			{"Range: bytes=2-4", 206, "234"},
			{"Range: bytes=7-", 206, "789"},
			{"Range: bytes=-3", 206, "789"},
			{"Range: bytes=0-99", 206, "0123456789"},
			{"Range: bytes=3-3", 206, "3"},
			{"Range: bytes=4-2", 200, "0123456789"},
			{"Range: bytes=10-", 200, "0123456789"},
			{"Range: bytes=x-1", 200, "0123456789"},
			{"Range: lines=1-2", 200, "0123456789"},
			{"Range: bytes=1-2,4-5", 200, "0123456789"},
			{`Range: bytes=1-2|If-Range: "k-1"`, 206, "12"},
			{`Range: bytes=1-2|If-Range: "o-1"`, 200, "0123456789"},
			{`Range: bytes=1-2|If-Range: W/"k-1"`, 200, "0123456789"},
		} {
			s := l.get("/img/a", strings.Split(c.lines, "|")...)
			if s.status != c.status || s.body != c.body || s.err != nil || s.cache() != Hit {
				t.Errorf("%s: %d %q %v", c.lines, s.status, s.body, s.err)
			}
		}
		if s := l.get("/img/a", "Range: bytes=2-4"); s.header.Get("Content-Range") != "bytes 2-4/10" || s.header.Get("Content-Length") != "3" {
			t.Errorf("%v", s.header)
		}
		l.asked(1, 0)
	})
}

func TestARangeWithoutAnObjectGoesToTheOrigin(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				tell(w, 206, "234", "Content-Range: bytes 2-4/10", "Cache-Control: max-age=60")
				return
			}
			tell(w, 200, "0123456789", "Cache-Control: max-age=60")
		})
		s := l.get("/img/a", "Range: bytes=2-4")
		if s.status != 206 || s.body != "234" || s.header.Get("Content-Range") != "bytes 2-4/10" {
			t.Errorf("%d %q %v", s.status, s.body, s.header)
		}
		l.want("/img/a", "0123456789", Miss) // a part is never taken for the whole
	})
}

// An origin that ignores Range is fine: the whole goes out, and ranges from then on.
func TestAnOriginThatIgnoresRange(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(200, "0123456789", "Cache-Control: max-age=60")
		if s := l.get("/img/a", "Range: bytes=2-4"); s.status != 200 || s.body != "0123456789" {
			t.Errorf("%d %q", s.status, s.body)
		}
		if s := l.get("/img/a", "Range: bytes=2-4"); s.status != 206 || s.body != "234" || s.cache() != Hit {
			t.Errorf("%d %q", s.status, s.body)
		}
	})
}

func TestAgeGrowsWhileAnObjectIsKept(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(200, "x", "Cache-Control: max-age=60", "Age: 5")
		if s := l.get("/img/a"); s.header.Get("Age") != "5" || s.cache() != Miss {
			t.Errorf("Age %q %s", s.header.Get("Age"), s.cache())
		}
		pass(20 * time.Second)
		if s := l.get("/img/a"); s.header.Get("Age") != "25" || s.cache() != Hit {
			t.Errorf("Age %q %s", s.header.Get("Age"), s.cache())
		}
	})
}

func TestAnAnswerSaysThatItCameThroughTheEdge(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(200, "x", "Via: 1.1 karui", "X-Karui: hit", "Server: karui")
		s := l.get("/img/a")
		if !strings.Contains(s.header.Get("Via"), ".cloudfront.net (CloudFront)") || s.header.Get("X-Amz-Cf-Id") == "" || s.header.Get("X-Amz-Cf-Pop") == "" ||
			s.header.Get("X-Karui") != "hit" || s.header.Get("Server") != "karui" || s.header["Content-Type"] == nil {
			t.Errorf("%v", s.header)
		}
	})
}

func TestNoContentTypeIsMadeUp(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(raw("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"))
		if s := l.get("/img/a"); s.header["Content-Type"] != nil {
			t.Errorf("%q", s.header["Content-Type"])
		}
	})
}

func TestMethodsThatABehaviourDoesNotAllowGet403(t *testing.T) {
	inLab(t, document{methods: "HEAD GET"}, func(l *lab) {
		for _, method := range []string{"OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE"} {
			if s := l.do(l.request(method, "/img/a")); s.status != 403 || s.cache() != Error {
				t.Errorf("%s: %d %s", method, s.status, s.cache())
			}
		}
		l.asked(0, 0)
	})
}

func TestOptionsIsNotKeptUnlessChosen(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		for range 2 {
			if s := l.do(l.request(http.MethodOptions, "/img/a")); s.cache() != Miss || s.body != "karui" {
				t.Errorf("%s %q", s.cache(), s.body)
			}
		}
		l.want("/img/a", "karui", Miss)
	})
}

func TestBodiesOfOtherMethodsGoOn(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.origin.handle(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			tell(w, 201, r.Method+" "+string(body))
		})
		r := l.request(http.MethodPost, "/form")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("a=b")), 3
		if s := l.do(r); s.status != 201 || s.body != "POST a=b" {
			t.Errorf("%d %q", s.status, s.body)
		}
		r = l.request(http.MethodGet, "/form")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("a=b")), 3
		if s := l.do(r); s.status != 403 {
			t.Errorf("GET with a body: %d", s.status)
		}
	})
}

func TestRedirectsArePassedOnAndKept(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(302, "", "Location: /elsewhere", "Cache-Control: max-age=60")
		for _, want := range []string{Miss, Hit} {
			if s := l.get("/img/a"); s.status != 302 || s.header.Get("Location") != "/elsewhere" || s.cache() != want {
				t.Errorf("%d %s %v", s.status, s.cache(), s.header)
			}
		}
		l.asked(1, 0)
	})
}

func TestViewersWithoutTLSAreSentAwayOrRefused(t *testing.T) {
	inLab(t, document{protocol: "redirect-to-https"}, func(l *lab) {
		s := l.get("/img/a?x=1", "Host: www.example.com")
		if s.status != 301 || s.header.Get("Location") != "https://www.example.com/img/a?x=1" || s.cache() != Redirect {
			t.Errorf("%d %v", s.status, s.header)
		}
		if s := l.do(l.request(http.MethodPost, "/x")); s.status != 307 {
			t.Errorf("POST: %d", s.status)
		}
	})
	inLab(t, document{protocol: "https-only"}, func(l *lab) {
		if s := l.get("/img/a"); s.status != 403 {
			t.Errorf("%d", s.status)
		}
		l.asked(0, 0)
	})
}

func TestLimitsOfRequests(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		for _, c := range []struct {
			path   int
			header int
			status int
		}{{8192, 0, 200}, {8193, 0, 414}, {100, 20000, 200}, {100, 20480, 413}} {
			path := "/img/" + strings.Repeat("a", c.path-len("/img/"))
			s := l.get(path, "X-Long: "+strings.Repeat("x", c.header))
			if s.status != c.status {
				t.Errorf("a URL of %d and a header of %d bytes: %d, want %d", c.path, c.header, s.status, c.status)
			}
		}
	})
}

func TestDistributionsAreToldApartByHost(t *testing.T) {
	inLabWith(t, document{aliases: []string{"www.example.com"}}, Options{Distribution: "NONE"}, func(l *lab) {
		l.must(l.control.PutDistribution("E2", document{aliases: []string{"*.example.org", "other.example.org"}, order: "origin karui"}.xml()))
		snapshot, _ := l.control.Distribution("E2")
		for host, body := range map[string]string{
			"www.example.com": "karui", "WWW.example.com:8080": "karui", "a.example.org": "origin", "other.example.org": "origin", snapshot.Domain: "origin",
		} {
			if s := l.get("/img/a", "Host: "+host); s.body != body {
				t.Errorf("%s: %d %q, want %q", host, s.status, s.body, body)
			}
		}
		for _, host := range []string{"example.org", "a.b.example.org", "www.example.net", "x.cloudfront.net"} {
			if s := l.get("/img/a", "Host: "+host); s.status != 403 || s.cache() != Error {
				t.Errorf("%s: %d", host, s.status)
			}
		}
	})
}

func TestDistributionsDoNotShareObjects(t *testing.T) {
	inLabWith(t, document{aliases: []string{"a.example.com"}}, Options{}, func(l *lab) {
		l.must(l.control.PutDistribution("E2", document{aliases: []string{"b.example.com"}}.xml()))
		l.want("/img/a", "karui", Miss, "Host: a.example.com")
		l.want("/img/a", "karui", Miss, "Host: b.example.com")
		l.asked(2, 0)
	})
}
