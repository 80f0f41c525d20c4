package origin

import (
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

var targets = []string{
	"/", "/a.jpg", "/a%2Fb.jpg", "/a%20b.jpg", "/a+b.jpg", "/100%25.jpg", "/a%zz.jpg", "/%",
	"/日本.jpg", "/\x93\xfa\x96\x7b.jpg", "/%93%FA.jpg", "//a.jpg", "///a//b.jpg", "//日本//x.jpg", "//\x93\xfa", "//a\"b",
	"/a;b=c/d;e.jpg", "/a\"b<c>d|e^f`g{h}i\\j", "/a/../b/./c/..", "/..", "/a?", "/a??b?c=%2F&d=+&e=日本", "/?x=1;y=2", "//a?",
	"/a?b#c", "/#", "//evil.example/x", "//user:pw@evil.example/x", "/@evil.example/", "/http://evil.example/", "//", "//?", "/a:b@c", "/!$&'()*+,;=:@[]",
	"//a%2F%zz", "//*", "/*",
}

func TestTargetReachesTheOriginByteForByte(t *testing.T) {
	lines := make(chan string, 1)
	raw := rawServer(t, func(head string, c net.Conn) {
		line, _, _ := strings.Cut(head, "\r\n")
		lines <- line
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	paths := make(chan string, 1)
	h2, ca := rawHTTP2(t, func(path string, stream uint32, fr *http2.Framer, fields func(...string) []byte) {
		paths <- path
		head(fr, stream, fields(":status", "200"), true)
	})
	for _, base := range []string{"", "/", "/base", "/ba%2Fse/"} {
		c1 := newClient(t, raw+base, func(o *Options) { o.Place.Host = "www.example.com" })
		c2 := newClient(t, h2+base, trusting(ca), func(o *Options) { o.Place.Host = "example.com" })
		for _, target := range targets {
			want := strings.TrimRight(base, "/") + target
			if _, _, err := get(t, c1, target); err != nil {
				t.Fatalf("%q: %v", target, err)
			}
			// A target that begins with // and holds raw bytes goes in absolute form.
			got := <-lines
			if got != "GET "+want+" HTTP/1.1" && (got != "GET http://www.example.com"+want+" HTTP/1.1" || !strings.HasPrefix(want, "//")) {
				t.Errorf("HTTP/1.1 got the line %q for %q", got, want)
			}
			if _, _, err := get(t, c2, target); err != nil {
				t.Fatalf("%q: %v", target, err)
			}
			if got := <-paths; got != want {
				t.Errorf("HTTP/2 got the path %q for %q", got, want)
			}
		}
	}
}

func TestAbsoluteFormIsTheExceptionForRawBytesAfterTwoSlashes(t *testing.T) {
	e := endpoint{scheme: "http", addr: "o:80", host: "o"}
	for target, want := range map[string]string{
		"//a.jpg": "//a.jpg", "//a%20b?c": "//a%20b?c", "//user:pw@evil/x": "//user:pw@evil/x",
		"//日本": "http://o//日本", "/日本//x": "/日本//x",
	} {
		u, err := e.url("GET", target)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.RequestURI(); got != want {
			t.Errorf("%q is written as %q, want %q", target, got, want)
		}
	}
}

func TestTargetsThatAreNoPathAreRefusedWithoutDialling(t *testing.T) {
	c := newClient(t, "http://127.0.0.1:1")
	for _, target := range []string{
		"", "*", "a.jpg", "http://evil.example/x", "@evil.example/", ".evil.example/", ":80/", "evil.example:80",
		"/a b", "/a\r\nHost: evil.example", "/a\nb", "/a\x00", "/a\x7f", "/a\tb", "\\evil.example", "/" + strings.Repeat("a", 64<<10),
	} {
		_, err := c.Do(t.Context(), Request{Method: "GET", Target: target})
		wantKind(t, err, KindRequest)
	}
	for _, method := range []string{"", "CONNECT", "G T", "GET\r\n"} {
		_, err := c.Do(t.Context(), Request{Method: method, Target: "/"})
		wantKind(t, err, KindRequest)
	}
	for _, h := range []http.Header{{"X-A": {"b\r\nc"}}, {"X A": {"b"}}, {"X-A": {"\x00"}}} {
		_, err := c.Do(t.Context(), Request{Method: "GET", Target: "/", Header: h})
		wantKind(t, err, KindRequest)
	}
}

func TestOptionsForTheWholeServer(t *testing.T) {
	lines := make(chan string, 1)
	url := rawServer(t, func(head string, c net.Conn) {
		line, _, _ := strings.Cut(head, "\r\n")
		lines <- line
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	resp, err := newClient(t, url+"/base").Do(t.Context(), Request{Method: "OPTIONS", Target: "*"})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := <-lines; got != "OPTIONS * HTTP/1.1" {
		t.Errorf("got %q", got)
	}
}

func FuzzTarget(f *testing.F) {
	for _, target := range targets {
		f.Add("/base", target)
		f.Add("", target)
	}
	f.Add("", "/a\r\nX: y")
	f.Add("", "http://evil.example/")
	f.Fuzz(func(t *testing.T, base, target string) {
		e, err := parseEndpoint("http://origin.example:8080"+base, "www.example.com")
		if err != nil || e.addr != "origin.example:8080" {
			return // a base that is none, or that changed the host in the configuration itself
		}
		u, err := e.url("GET", target)
		if err != nil {
			return
		}
		if u.Host != e.addr || u.Scheme != "http" || u.User != nil {
			t.Fatalf("%q goes to %v", target, u)
		}
		line := u.RequestURI()
		full := e.base + target
		if line != full && (line != "http://www.example.com"+full || !strings.HasPrefix(full, "//")) {
			t.Fatalf("%q is written as %q", full, line)
		}
		if strings.ContainsAny(target, "\r\n \x00") {
			t.Fatalf("%q was let through", target)
		}
	})
}

func TestURLsThatCannotBeDialledAreRefused(t *testing.T) {
	for _, url := range []string{
		"", "origin.example.com", "ftp://a", "s3://bucket/prefix", "http://", "http:///x", "https://user:pw@a", "http://a?b", "http://a/?", "http://a#b", "http://a b", "http://a:b", "http://a:65536", "https://a:0", "http://[::1]:99999",
	} {
		_, err := New(Options{Config: testConfig(), Place: PlaceConfig{Name: "p", URLs: []string{url}}})
		if err == nil {
			t.Errorf("%q was taken", url)
		} else if strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: the password is in %q", url, err)
		}
	}
	for _, host := range []string{"a/b", "a b", "a@b", "a\r\nb", ":80"} {
		if _, err := New(Options{Config: testConfig(), Place: PlaceConfig{URLs: []string{"http://a"}, Host: host}}); err == nil {
			t.Errorf("host %q was taken", host)
		}
	}
	if _, err := New(Options{Config: testConfig()}); err == nil {
		t.Error("a place without urls was taken")
	}
}

func TestHostHeader(t *testing.T) {
	for _, c := range []struct{ url, host, header, serverName string }{
		{"https://o.example", "", "o.example", "o.example"},
		{"https://o.example:8443", "", "o.example:8443", "o.example"},
		{"https://o.example:8443", "www.example.com", "www.example.com", "www.example.com"},
		{"https://o.example", "www.example.com:444", "www.example.com:444", "www.example.com"},
		{"https://[::1]:8443", "", "[::1]:8443", "::1"},
		{"https://[::1]", "", "[::1]", "::1"},
		{"https://例え.jp", "", "xn--r8jz45g.jp", "xn--r8jz45g.jp"},
		{"https://my_bucket.example", "", "my_bucket.example", "my_bucket.example"},
		{"https://192.0.2.1", "", "192.0.2.1", "192.0.2.1"},
	} {
		e, err := parseEndpoint(c.url, c.host)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if e.host != c.header || e.serverName() != c.serverName {
			t.Errorf("%s with %q: header %q, name %q; want %q, %q", c.url, c.host, e.host, e.serverName(), c.header, c.serverName)
		}
	}
}
