package proxy

import (
	"net/http"
	"testing"
)

func TestRoute(t *testing.T) {
	shop := &site{config: SiteConfig{ID: "shop", Hosts: []string{"www.Example.com", "xn--n8j.example"}}}
	blog := &site{config: SiteConfig{ID: "blog", Hosts: []string{"blog.example.com", "[2001:db8::1]:8080"}, Default: true}}
	with := newRouter("X-Routing", []*site{shop, blog})
	without := newRouter("X-Routing", []*site{shop})

	tests := []struct {
		name    string
		router  *router
		routing []string
		host    string
		want    *site
		foreign bool
	}{
		{"routing header", with, []string{"shop"}, "blog.example.com", shop, false},
		{"routing header with space", with, []string{" shop "}, "", shop, false},
		{"routing header names none", with, []string{"nobody"}, "www.example.com", nil, false},
		{"routing header in another case", with, []string{"SHOP"}, "www.example.com", nil, false},
		{"empty routing header", with, []string{""}, "www.example.com", nil, false},
		{"two routing headers", with, []string{"shop", "blog"}, "www.example.com", nil, false},
		{"the same routing header twice", with, []string{"shop", "shop"}, "", shop, false},
		{"host", with, nil, "www.example.com", shop, false},
		{"host in another case, with port", with, nil, "WWW.EXAMPLE.COM:8080", shop, false},
		{"host with the root's dot", with, nil, "www.example.com.", shop, false},
		{"address", with, nil, "[2001:db8::1]", blog, false},
		{"unknown host, default", with, nil, "other.example.com", blog, true},
		{"no host, default", with, nil, "", blog, true},
		{"unknown host, no default", without, nil, "other.example.com", nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := http.Header{}
			for _, id := range test.routing {
				h.Add("X-Routing", id)
			}
			if got := test.router.site(h, test.host); got != test.want {
				t.Errorf("site = %v, want %v", got, test.want)
			}
			if got := test.router.foreign(h, test.host); got != test.foreign {
				t.Errorf("foreign = %v, want %v", got, test.foreign)
			}
		})
	}
}

func TestSecrets(t *testing.T) {
	with := func(key string) http.Header {
		h := http.Header{}
		h.Set(KeyHeader, key)
		return h
	}
	two := newSecrets([]string{"old", "new"})
	tests := []struct {
		name    string
		secrets secrets
		header  http.Header
		want    bool
	}{
		{"none asked", newSecrets(nil), http.Header{}, true},
		{"first", two, with("old"), true},
		{"second", two, with("new"), true},
		{"wrong", two, with("older"), false},
		{"absent", two, http.Header{}, false},
		{"empty", two, with(""), false},
		{"an empty secret opens nothing", newSecrets([]string{"", "new"}), with(""), false},
	}
	for _, test := range tests {
		if got := test.secrets.admit(test.header); got != test.want {
			t.Errorf("%s: admit = %v, want %v", test.name, got, test.want)
		}
	}
}
