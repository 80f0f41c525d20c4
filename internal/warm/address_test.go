package warm

import (
	"net/url"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	base, ok := resolve(address{}, "https://WWW.Example.com:443/shop/page.html?x=1")
	if !ok || base.String() != "https://www.example.com/shop/page.html?x=1" {
		t.Fatalf("%v %v", base, ok)
	}
	for ref, want := range map[string]string{
		"a.jpg":                         "https://www.example.com/shop/a.jpg",
		"/a.jpg":                        "https://www.example.com/a.jpg",
		"../a.jpg":                      "https://www.example.com/a.jpg",
		"../../../a.jpg":                "https://www.example.com/a.jpg",
		"./b/./a.jpg":                   "https://www.example.com/shop/b/a.jpg",
		"%2e%2E/a.jpg":                  "https://www.example.com/a.jpg",
		"//cdn.example.com/a.jpg":       "https://cdn.example.com/a.jpg",
		"http://www.example.com/a.jpg":  "http://www.example.com/a.jpg",
		"HTTP://X@Example.COM:80/a.jpg": "http://example.com/a.jpg",
		"https://example.com:8443":      "https://example.com:8443/",
		"http://[::1]:8080/a.jpg":       "http://[::1]:8080/a.jpg",
		"http://日本.example/a.jpg":       "http://xn--wgv71a.example/a.jpg",
		"a.jpg?v=2&w=%20":               "https://www.example.com/shop/a.jpg?v=2&w=%20",
		"a.jpg?":                        "https://www.example.com/shop/a.jpg?",
		"a.jpg#part":                    "https://www.example.com/shop/a.jpg",
		"?y":                            "https://www.example.com/shop/page.html?y",
		"":                              "https://www.example.com/shop/page.html?x=1",
		// What a browser encodes, and what it leaves.
		" a b.jpg \n":          "https://www.example.com/shop/a%20b.jpg",
		"写真.jpg":               "https://www.example.com/shop/%E5%86%99%E7%9C%9F.jpg",
		"a%2Fb+c;d|e'[].jpg":   "https://www.example.com/shop/a%2Fb+c;d|e'[].jpg",
		"a^{}`\".jpg":          "https://www.example.com/shop/a%5E%7B%7D%60%22.jpg",
		"a.jpg?q='é\"|":        "https://www.example.com/shop/a.jpg?q=%27%C3%A9%22|",
		"%8e%CA.jpg":           "https://www.example.com/shop/%8e%CA.jpg",
		"//www.example.com//a": "https://www.example.com//a",
		"/x//y//a.jpg":         "https://www.example.com/x//y//a.jpg",
		`\img\a.jpg`:           "https://www.example.com/img/a.jpg",
		"a:b.jpg/c":            "",
		"data:image/png;,x":    "",
		"ftp://example.com/a":  "",
		"mailto:a@b":           "",
		"javascript:x()":       "",
		"http:a.jpg":           "",
		"http:///a.jpg":        "",
		"http://a%62/a.jpg":    "",
		"http://a:b/a.jpg":     "",
		"http://a b/a.jpg":     "",
		"http://[::1/a.jpg":    "",
		"https://" + strings.Repeat("a", maxAddress): "",
	} {
		got, ok := resolve(base, ref)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%q: %v %v, want %q", ref, got, ok, want)
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"a.jpg", "../%2e%2e/a", "//x@y:80/", `\\a\b`, "http://[::1]/", "?", "#", "http://%/", "日本/é", "a:b"} {
		f.Add(seed)
	}
	base, _ := resolve(address{}, "https://www.example.com/shop/page.html")
	f.Fuzz(func(t *testing.T, ref string) {
		a, ok := resolve(base, ref)
		if !ok {
			return
		}
		if !strings.HasPrefix(a.path, "/") || strings.ContainsAny(a.target()+a.host, " \r\n\t\x00\x7f#") || a.host == "" {
			t.Errorf("%q: %+v", ref, a)
		}
		for i := range len(a.target()) {
			if c := a.target()[i]; c <= ' ' || c >= 0x7f {
				t.Errorf("%q: byte %#x in %q", ref, c, a.target())
			}
		}
		for _, s := range strings.Split(a.path, "/") {
			if s == "." || s == ".." {
				t.Errorf("%q: %q", ref, a.path)
			}
		}
		again, ok := resolve(address{}, a.String())
		if !ok && len(a.String()) <= maxAddress || ok && again != a {
			t.Errorf("%q: %v, and read again %v", ref, a, again)
		}
		// Whoever asks with net/http asks that host.
		if u, err := url.Parse(a.scheme + "://" + a.host); err != nil || u.Host != a.host {
			t.Errorf("%q: host %q: %v", ref, a.host, err)
		}
	})
}

func TestScope(t *testing.T) {
	s := Scope{Hosts: []string{"www.example.com"}, Exclude: []string{"/private/*"}}
	s.name("staging.example.com:8080")
	for url, want := range map[string]kind{
		"https://www.example.com/a.jpg":             ownImage,
		"http://www.example.com:8081/a.PNG":         ownImage,
		"http://staging.example.com:8080/a.gif":     ownImage,
		"http://staging.example.com/a.gif":          foreign,
		"https://example.com/a.jpg":                 foreign,
		"https://www.example.com.evil.test/a.jpg":   foreign,
		"https://www.example.com/a.svg":             leftOut,
		"https://www.example.com/a":                 leftOut,
		"https://www.example.com/private/a.jpg":     leftOut,
		"https://www.example.com@evil.test/a.jpg":   foreign,
		"https://evil.test/www.example.com/a.jpg":   foreign,
		"https://evil.test?https://www.example.com": foreign,
	} {
		a, ok := resolve(address{}, url)
		if _, got := s.image(a); !ok || got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
	for url, want := range map[string]bool{
		"https://www.example.com/sitemap.xml":     true,
		"http://www.example.com/sitemap.xml":      true,
		"http://www.example.com:9090/":            false, // another service of that machine
		"http://staging.example.com:8080/x":       true,
		"http://staging.example.com:8081/x":       false,
		"http://169.254.169.254/latest/meta-data": false,
		"http://127.0.0.1/":                       false,
	} {
		if a, ok := resolve(address{}, url); !ok || s.mayFetch(a) != want {
			t.Errorf("%s: want %v", url, want)
		}
	}
}
