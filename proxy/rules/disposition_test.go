package rules

import (
	"mime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestInline(t *testing.T) {
	tests := []struct{ path, want string }{
		{"/photos/cat.jpg", `inline; filename="cat.webp"`},
		{"/cat", `inline; filename="cat.webp"`},
		{"/a.b.JPEG", `inline; filename="a.b.webp"`},
		{"/a%20b.jpg", `inline; filename="a b.webp"`},
		{"/a+b.jpg", `inline; filename="a+b.webp"`},
		{"/a;b.jpg", `inline; filename="a;b.webp"`},
		{"/%E7%8C%AB.jpg", `inline; filename="_.webp"; filename*=UTF-8''%E7%8C%AB.webp`},
		{"/\xe7\x8c\xab.jpg", `inline; filename="_.webp"; filename*=UTF-8''%E7%8C%AB.webp`},
		{"/%94%4C.jpg", `inline`},
		{"/\x94\x4c.jpg", `inline`},
		{"/a%22b.jpg", `inline; filename="a_b.webp"; filename*=UTF-8''a%22b.webp`},
		{"/100%25.jpg", `inline; filename="100_.webp"; filename*=UTF-8''100%25.webp`},
		{"/100%zz.jpg", `inline; filename="100_zz.webp"; filename*=UTF-8''100%25zz.webp`},
		{"/a%0D%0ASet-Cookie:%20x.jpg", `inline; filename="aSet-Cookie: x.webp"`},
		{"/x%2F..%2Fetc%5Cpasswd.jpg", `inline; filename="passwd.webp"`},
		{"/.jpg", `inline`},
		{"/", `inline`},
		{"/%E2%80%AEgpj.jpg", `inline; filename="gpj.webp"`},
	}
	for _, test := range tests {
		if got := Inline(test.path, ".webp"); got != test.want {
			t.Errorf("Inline(%q)\n got %s\nwant %s", test.path, got, test.want)
		}
	}
}

func FuzzInline(f *testing.F) {
	for _, s := range []string{"/a.jpg", "/%E7%8C%AB.png", "/%00", "/\xff.gif", "/" + strings.Repeat("\u732b", 300) + ".jpg"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := Inline(path, ".webp")
		for i := range len(got) {
			if got[i] < ' ' || got[i] > '~' {
				t.Fatalf("Inline(%q) = %q holds a byte that no header may", path, got)
			}
		}
		kind, params, err := mime.ParseMediaType(got)
		if err != nil || kind != "inline" {
			t.Fatalf("Inline(%q) = %q does not read back: %v", path, got, err)
		}
		if name, found := params["filename"]; found && (!strings.HasSuffix(name, ".webp") || !utf8.ValidString(name) || strings.ContainsAny(name, `/\`)) {
			t.Errorf("Inline(%q) names %q", path, name)
		}
	})
}
