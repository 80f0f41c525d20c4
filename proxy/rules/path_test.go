package rules

import (
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	tests := []struct {
		uri  string
		want Target
		ok   bool
	}{
		{"/", Target{"/", ""}, true},
		{"/a.jpg", Target{"/a.jpg", ""}, true},
		{"/a.jpg?", Target{"/a.jpg", "?"}, true},
		{"/a.jpg?v=2&w=a?b", Target{"/a.jpg", "?v=2&w=a?b"}, true},
		{"//a/../b%2Fc+d;e=\x83\x5c.jpg", Target{"//a/../b%2Fc+d;e=\x83\x5c.jpg", ""}, true},
		{"http://example.com/a.jpg?v", Target{"/a.jpg", "?v"}, true},
		{"http://example.com", Target{"/", ""}, true},
		{"http://example.com?v", Target{"/", "?v"}, true},
		{"*", Target{}, false},
		{"", Target{}, false},
		{"example.com:443", Target{}, false},
	}
	for _, test := range tests {
		if got, ok := ParseTarget(test.uri); got != test.want || ok != test.ok {
			t.Errorf("ParseTarget(%q) = %q, %v; want %q, %v", test.uri, got, ok, test.want, test.ok)
		}
	}
}

func TestConvertiblePath(t *testing.T) {
	for _, path := range []string{
		"/a.jpg", "/a.JPEG", "/a.Jpe", "/a.jfif", "/a.png", "/b/a.b.gif", "/.png", "/a%2Ejpg", "/a%2ejp%67",
		"/a%2Fb.jpg", "/100%.jpg", "/a;v=1.jpg", "/\x83\x5c.jpg", "//a.jpg", "/%E7%8C%AB.jpg",
	} {
		if !ConvertiblePath(path) {
			t.Errorf("%q is not convertible", path)
		}
	}
	for _, path := range []string{
		"/", "", "/a", "/jpg", "/a.jpg/", "/a.jpg/b", "/a.jpgx", "/a.webp", "/a.svg", "/a.", "/a.jpg;v=1", "/a.jpg%2Fb", "/a.jpg%20",
	} {
		if ConvertiblePath(path) {
			t.Errorf("%q is convertible", path)
		}
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, path string
		want          bool
	}{
		{"/a/*", "/a/b/c.jpg", true},
		{"/a/*", "/a/", true},
		{"/a/*", "/b/a/", false},
		{"*.png", "/a/b.png", true},
		{"*.png", "/a/b.png.jpg", false},
		{"/a", "/a", true},
		{"/a", "/ab", false},
		{"/?.jpg", "/x.jpg", true},
		{"/?.jpg", "/.jpg", false},
		{"*", "", true},
		{"", "", true},
		{"", "/", false},
		{"*a*b*", "xaxbx", true},
		{"*a*b", "xaxbxb", true},
		{"*a*b", "xaxc", false},
		{"/A/*", "/a/b", false},
		{"**", "/a", true},
	}
	for _, test := range tests {
		if got := Match(test.pattern, test.path); got != test.want {
			t.Errorf("Match(%q, %q) = %v", test.pattern, test.path, got)
		}
	}
	if Match(strings.Repeat("*a", 2000)+"b", strings.Repeat("a", 20000)) {
		t.Error("a pattern without its end matches")
	}
}

func TestMatchAny(t *testing.T) {
	if !MatchAny([]string{"/x", "/\u732b/*"}, "/%E7%8C%AB/a.jpg") {
		t.Error("a pattern in plain letters does not match an encoded path")
	}
	if !MatchAny([]string{"/a%2Fb/*"}, "/a%2Fb/c.jpg") {
		t.Error("an encoded pattern does not match the same path")
	}
	if MatchAny(nil, "/") || MatchAny([]string{"/x"}, "/y") {
		t.Error("matches without a matching pattern")
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("/a/*", "/a/b")
	f.Add("*?*", "x")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		got := Match(pattern, s)
		if pattern == s && !strings.ContainsAny(s, "*?") && !got {
			t.Errorf("%q does not match itself", s)
		}
		if got && !Match(pattern+"*", s) {
			t.Errorf("%q matches %q, with a star behind it it does not", pattern, s)
		}
	})
}

func TestDigest(t *testing.T) {
	a, b := DigestOf([]byte("a")), DigestOf([]byte("b"))
	if a == b || a.ETag() == b.ETag() {
		t.Error("different bytes have one name")
	}
	if tag := a.ETag(); tag != `"k-ca978112ca1bbdcafac231b39a23dc4d"` {
		t.Errorf("ETag = %s", tag)
	}
}
