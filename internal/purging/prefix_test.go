package purging

import (
	"strings"
	"testing"
)

func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		text  string
		exact bool
		want  string
	}{
		{"/", false, "/"},
		{"/*", false, "/"},
		{"/images/", false, "/images/"},
		{" /images/* \r\n", false, "/images/"},
		{"/images/a.jpg?v=1#top", false, "/images/a.jpg"},
		{"/images/a.jpg?v=1#top", true, "/images/a.jpg?v=1"},
		{"https://www.example.com/images/a.jpg?v=1", false, "/images/a.jpg"},
		{"HTTP://www.example.com:8080/images/", false, "/images/"},
		{"https://www.example.com/", false, "/"},
		{"https://www.example.com/*", false, "/"},
		{"https://www.example.com/?v=1", true, "/?v=1"},
		{"https://www.example.com//double/", false, "//double/"},
		{"/redirect/https://www.example.com/", false, "/redirect/https://www.example.com/"},
		{"/caf\u00e9/\u5199\u771f.jpg", false, "/caf%C3%A9/%E5%86%99%E7%9C%9F.jpg"},
		{"/\x8e\xca\x90^.jpg", false, "/%8E%CA%90^.jpg"}, // a terminal in Shift_JIS
		{"/%e5%86%99/%2F/%41", false, "/%e5%86%99/%2F/%41"},
		{"/a b/100%/%G1", false, "/a%20b/100%25/%25G1"},
		{"/it's,(ok);+&=:@!$~|[1]", false, "/it's,(ok);+&=:@!$~|[1]"},
		{"/a%2Ab", false, "/a%2Ab"},
		{"//double//", false, "//double//"},
	} {
		if got, err := Prefix(c.text, c.exact); err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.text, got, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"":                                  "write / for all of a site",
		" \t":                               "write / for all of a site",
		"https://www.example.com":           "is a URL without a path: write a slash after the host for all of the site",
		"https://www.example.com?v=1":       "is a URL without a path",
		"https://www.example.com#top":       "is a URL without a path",
		"https://*":                         "is a URL without a path",
		"https://":                          "is a URL without a path",
		"images/a.jpg":                      `prefix "images/a.jpg" does not begin with a slash: write /images/a.jpg, or a whole URL`,
		"*":                                 "does not begin with a slash",
		"/a*b":                              "write a star that belongs to a name as %2A",
		"/*.jpg":                            "has a star within",
		"/a\nb":                             "holds the control character 0xa",
		"/a\x00":                            "holds the control character 0x0",
		"/" + strings.Repeat("a", 4000):     "has 4001 bytes, over 4000: shorten it",
		"/" + strings.Repeat("\u5199", 500): "has 4501 bytes",
	} {
		if got, err := Prefix(text, false); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func FuzzPrefix(f *testing.F) {
	for _, text := range []string{"/", "/images/*", "https://www.example.com/a?b#c", "/\u5199\u771f", "/%e5%", "/a*b", "\xff", "://", "/\x8e"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, exact bool) {
		p, err := Prefix(text, exact)
		if err != nil {
			return
		}
		if p[0] != '/' || len(p) > MaxPrefix || strings.Contains(p, "#") || !exact && strings.ContainsAny(p, "?*") {
			t.Fatalf("%q became %q", text, p)
		}
		for i := range len(p) {
			if p[i] <= ' ' || p[i] >= 0x7f {
				t.Fatalf("%q became %q", text, p)
			}
		}
		if again, err := Prefix(p, exact); err != nil || again != p {
			t.Fatalf("%q became %q, and that %q (%v)", text, p, again, err)
		}
	})
}

func TestHost(t *testing.T) {
	for text, want := range map[string]string{
		"/a":                             "",
		"/r/https://www.example.com/":    "",
		"https://www.example.com/a":      "www.example.com",
		" HTTP://WWW.Example.COM.:8080/": "www.example.com",
		"https://u:p@example.com/@x":     "example.com",
		"https://[2001:DB8::1]:443/":     "2001:db8::1",
		"https://192.0.2.1/":             "192.0.2.1",
		"https://\u65e5\u672c.example/":  "xn--wgv71a.example",
		"https:///a":                     "",
		"https://\x8e\xca/a":             "",
		"https://a b/":                   "",
	} {
		if got := Host(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestHostsOfURLs(t *testing.T) {
	shop := Site{ID: "shop", Hosts: []string{"www.example.com", "img.example.com"}}
	rest := Site{ID: "rest", Default: true, Hosts: []string{"rest.example.com"}}
	routed := Site{ID: "routed"}
	all := []Site{shop, rest, routed}
	for _, c := range []struct {
		site           Site
		text           string
		remark, refuse string
	}{
		{shop, "/a", "", ""},
		{shop, "https://IMG.example.com:8443/a", "", ""},
		{shop, "https://rest.example.com/a", "", "of a host that another site has, and not shop"},
		{rest, "https://www.example.com/a", "", "of a host that another site has, and not rest"},
		{routed, "https://www.example.com/a", "", "of a host that another site has, and not routed"},
		{shop, "https://cdn.example.net/a", "cdn.example.net is in no sites[].hosts: the paths were purged as those of site shop", ""},
		{rest, "https://cdn.example.net/a", "", ""},
		{routed, "https://cdn.example.net/a", "", ""},
	} {
		remark, err := checkHosts(c.site, all, []string{"/x", c.text})
		if remark != c.remark || (err == nil) != (c.refuse == "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
			t.Errorf("%s %s: %q, %v", c.site.ID, c.text, remark, err)
		}
	}
	if remark, _ := checkHosts(shop, all, []string{"https://a/", "https://b/", "https://c/", "https://d/", "https://a/x"}); !strings.HasPrefix(remark, "a, b, c and 1 more is") {
		t.Error(remark)
	}
}
