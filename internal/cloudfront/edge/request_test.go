package edge

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"karui/internal/cloudfront"
)

func TestWhatArrivesAtTheOrigin(t *testing.T) {
	inLab(t, document{custom: "X-Routing: shop\nX-Karui-Key: secret\n"}, func(l *lab) {
		l.get("/img/a", "Accept: image/webp", "User-Agent: Firefox", "Accept-Language: ja", "Cookie: a=b", "Referer: x", "Authorization: Basic x",
			"X-Routing: other", "X-Karui-Key: guess", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "X-Real-IP: 192.0.2.2",
			"X-Custom: x", "Host: www.example.com", "X-Amz-Cf-Id: forged", "Accept-Encoding: br, gzip", "X-Edge-Location: x", "Te: trailers")
		r := l.karui.last(t)
		if r.Host != "karui.example.com" {
			t.Errorf("Host %q, want the origin's domain", r.Host)
		}
		for name, want := range map[string]string{
			"Accept": "image/webp", "User-Agent": "Amazon CloudFront", "X-Routing": "shop", "X-Karui-Key": "secret",
			"X-Forwarded-For": "192.0.2.1,pipe", "Connection": "Keep-Alive",
		} {
			if got := strings.Join(r.Header[name], "|"); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		for _, name := range []string{
			"Accept-Language", "Cookie", "Referer", "Authorization", "X-Forwarded-Proto", "X-Real-Ip", "X-Custom", "Accept-Encoding", "X-Edge-Location", "Te",
		} {
			if r.Header[name] != nil {
				t.Errorf("%s arrived: %q", name, r.Header[name])
			}
		}
		if id := r.Header.Get("X-Amz-Cf-Id"); len(id) != 56 || id == "forged" || id != l.event().ID {
			t.Errorf("X-Amz-Cf-Id %q", id)
		}
		if via := r.Header.Get("Via"); !regexp.MustCompile(`^1\.1 \S+\.cloudfront\.net \(CloudFront\)$`).MatchString(via) {
			t.Errorf("Via %q", via)
		}
		if r.ProtoMinor != 1 || r.ProtoMajor != 1 {
			t.Errorf("%s", r.Proto)
		}
	})
}

func TestHeadersOfTheOriginRequestPolicyArriveWithoutBeingInTheKey(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.must(l.control.PutOriginRequestPolicy(cloudfront.OriginRequestPolicy{
			ID: "orp", Name: "orp", HeaderMode: "whitelist", Headers: []string{"User-Agent", "Referer", "Host"}, CookieMode: "all", QueryMode: "all",
		}))
		l.policy(cloudfront.CachePolicy{DefaultTTL: 1e9, MaxTTL: 60e9, Headers: []string{"Accept"}, Queries: []string{"v"}})
		l.put(document{extra: "<OriginRequestPolicyId>orp</OriginRequestPolicyId>"})
		l.want("/img/a?x=1&v=2", "karui", Miss, "User-Agent: Firefox", "Referer: page", "Cookie: a=b; c=d", "Host: www.example.com")
		r := l.karui.last(t)
		if r.Host != "www.example.com" || r.Header.Get("User-Agent") != "Firefox" || r.Header.Get("Referer") != "page" ||
			r.Header.Get("Cookie") != "a=b; c=d" || r.URL.RawQuery != "x=1&v=2" {
			t.Errorf("%s %s %v", r.Host, r.URL, r.Header)
		}
		l.want("/img/a?x=7&v=2", "karui", Hit, "User-Agent: other", "Cookie: e=f")
		l.want("/img/a?v=3", "karui", Miss)
	})
}

func TestAllViewerHeadersCanBeForwarded(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.must(l.control.PutOriginRequestPolicy(cloudfront.OriginRequestPolicy{ID: "all", Name: "all", HeaderMode: "allViewer"}))
		l.must(l.control.PutOriginRequestPolicy(cloudfront.OriginRequestPolicy{ID: "but", Name: "but", HeaderMode: "allExcept", Headers: []string{"Host", "X-A"}}))
		l.put(document{extra: "<OriginRequestPolicyId>all</OriginRequestPolicyId>"})
		l.get("/img/a", "X-A: 1", "X-B: 2", "Host: www.example.com")
		if r := l.karui.last(t); r.Header.Get("X-A") != "1" || r.Header.Get("X-B") != "2" || r.Host != "www.example.com" {
			t.Errorf("%s %v", r.Host, r.Header)
		}
		l.put(document{extra: "<OriginRequestPolicyId>all</OriginRequestPolicyId>", custom: "X-A: the edge's\n"})
		l.get("/img/c", "X-A: 1", "X-a: 2")
		if r := l.karui.last(t); strings.Join(r.Header["X-A"], "|") != "the edge's" {
			t.Errorf("a custom header did not overwrite the viewer's: %q", r.Header["X-A"])
		}
		l.put(document{extra: "<OriginRequestPolicyId>but</OriginRequestPolicyId>"})
		l.get("/img/b", "X-A: 1", "X-B: 2", "Host: www.example.com")
		if r := l.karui.last(t); r.Header.Get("X-A") != "" || r.Header.Get("X-B") != "2" || r.Host != "karui.example.com" {
			t.Errorf("%s %v", r.Host, r.Header)
		}
	})
}

func TestQueriesGoOnAsThePolicySays(t *testing.T) {
	for _, c := range []struct {
		policy cloudfront.CachePolicy
		want   string
		hit    string // another query with the same key
	}{
		{cloudfront.CachePolicy{}, "", "?z=9"},
		{cloudfront.CachePolicy{Queries: []string{"v", "w"}}, "v=1&w=%20&v=3", "?v=1&w=%20&other=1&v=3"},
		{cloudfront.CachePolicy{QueryAll: true}, "v=1&x=2&w=%20&v=3", "?v=1&x=2&w=%20&v=3"},
	} {
		inLab(t, document{}, func(l *lab) {
			c.policy.DefaultTTL, c.policy.MaxTTL = 60e9, 60e9
			l.policy(c.policy)
			l.want("/img/a?v=1&x=2&w=%20&v=3", "karui", Miss)
			if got := l.karui.last(t).URL.RawQuery; got != c.want {
				t.Errorf("%q arrived, want %q", got, c.want)
			}
			l.want("/img/a"+c.hit, "karui", Hit)
		})
	}
}

func TestAcceptIsComparedAsText(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.want("/img/a", "karui", Miss, "Accept: image/webp,*/*")
		l.want("/img/a", "karui", Miss, "Accept: image/webp, */*")
		l.want("/img/a", "karui", Miss, "Accept: IMAGE/webp,*/*")
		l.want("/img/a", "karui", Miss)
		l.want("/img/a", "karui", Hit, "Accept: image/webp,*/*")
	})
}

func TestVaryDoesNotDriveTheKey(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.policy(cloudfront.CachePolicy{DefaultTTL: 60e9, MaxTTL: 60e9})
		l.karui.says(200, "variant", "Vary: Accept, Origin", "Cache-Control: max-age=60")
		s := l.want("/img/a", "variant", Miss, "Accept: image/webp")
		if l.karui.last(t).Header["Accept"] != nil {
			t.Error("Accept arrived although no policy names it")
		}
		if s.header["Vary"] != nil {
			t.Errorf("the viewer got Vary %q", s.header["Vary"])
		}
		l.want("/img/a", "variant", Hit, "Accept: image/png") // a wrong set-up shows
	})
}

func TestVaryKeepsTheNamesThatAreForwarded(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(200, "x", "Vary: Accept, Origin, Accept-Encoding", "Vary: cookie")
		if s := l.get("/img/a"); s.header.Get("Vary") != "Accept, Accept-Encoding, cookie" {
			t.Errorf("Vary %q", s.header["Vary"])
		}
	})
}

func TestSetCookieIsRemovedUnlessCookiesAreForwarded(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(200, "x", "Set-Cookie: a=b", "Cache-Control: max-age=60")
		if s := l.get("/img/a"); s.header["Set-Cookie"] != nil {
			t.Error("Set-Cookie arrived")
		}
		l.policy(cloudfront.CachePolicy{DefaultTTL: 60e9, MaxTTL: 60e9, Cookies: []string{"session"}})
		l.get("/img/b", "Cookie: session=1; other=2")
		if got := l.karui.last(t).Header.Get("Cookie"); got != "session=1" {
			t.Errorf("Cookie %q", got)
		}
		// Documented: the object is kept with its cookies, for everybody of that key.
		if s := l.get("/img/b", "Cookie: session=1; other=3"); s.header.Get("Set-Cookie") != "a=b" || s.cache() != Hit {
			t.Errorf("%s %v", s.cache(), s.header)
		}
		l.want("/img/b", "x", Miss, "Cookie: session=2")
	})
}

func TestAcceptEncodingIsReducedInTheKey(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.policy(cloudfront.CachePolicy{DefaultTTL: 60e9, MaxTTL: 60e9, Encodings: true})
		l.want("/img/a", "karui", Miss, "Accept-Encoding: gzip, deflate, br, zstd")
		if got := l.karui.last(t).Header.Get("Accept-Encoding"); got != "br,gzip" {
			t.Errorf("Accept-Encoding %q", got)
		}
		l.want("/img/a", "karui", Hit, "Accept-Encoding: br;q=1.0, GZIP")
		l.want("/img/a", "karui", Miss, "Accept-Encoding: gzip, br;q=0")
		l.want("/img/a", "karui", Miss, "Accept-Encoding: deflate")
	})
}

func TestPathsGoOnByteForByte(t *testing.T) {
	var got []string
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.RequestURI)
			tell(w, 200, "x")
		})
		paths := []string{
			"/img/a%2Fb.jpg", "/img/a%20b+c;d.jpg", "/img/%E7%8C%AB.jpg", "/img/x//y/../z.jpg", "/img/%61.jpg", "/img/a.jpg?", "/img/a?q=%2F&&x",
			"/img/%83%65.jpg", "/img/%25.jpg", "/img/a'b(c)!.jpg",
		}
		for _, path := range paths {
			r := l.request(http.MethodGet, "/")
			r.URL.Opaque = path
			l.do(r)
		}
		paths[5] = "/img/a.jpg" // an empty query is none
		if !slices.Equal(got, paths) {
			t.Errorf("arrived:\n%q, want\n%q", got, paths)
		}
	})
}

func TestPathsWithTwoSlashesInFrontGoOn(t *testing.T) {
	for _, target := range []string{"//img/a.jpg", "//img/%E7%8C%AB.jpg?x=%2F", "//a%2Fb"} {
		if got := rawURL("http", "origin.example.com:80", "origin.example.com", target).RequestURI(); got != target {
			t.Errorf("%q became %q", target, got)
		}
	}
}

func TestOriginPathAndRootObject(t *testing.T) {
	inLab(t, document{path: "/base", root: "index.html"}, func(l *lab) {
		l.get("/img/a?x=1")
		if got := l.karui.last(t).RequestURI; got != "/base/img/a?x=1" {
			t.Errorf("%q", got)
		}
		l.get("/")
		if got := l.origin.last(t).RequestURI; got != "/index.html" {
			t.Errorf("%q", got)
		}
	})
}

func TestOlderSettingsForwardWhatTheyName(t *testing.T) {
	values := `<ForwardedValues><QueryString>true</QueryString><Cookies><Forward>none</Forward></Cookies>` +
		`<Headers><Quantity>1</Quantity><Items><Name>Accept</Name></Items></Headers>` +
		`<QueryStringCacheKeys><Quantity>1</Quantity><Items><Name>v</Name></Items></QueryStringCacheKeys></ForwardedValues>` +
		`<MinTTL>0</MinTTL><DefaultTTL>30</DefaultTTL><MaxTTL>60</MaxTTL>`
	inLab(t, document{policy: values}, func(l *lab) {
		l.karui.says(200, "x")
		l.want("/img/a?v=1&w=2", "x", Miss, "Accept: image/webp", "User-Agent: Firefox", "Referer: r", "X-Custom: 1")
		r := l.karui.last(t)
		if r.Header.Get("Accept") != "image/webp" || r.Header.Get("User-Agent") != "Amazon CloudFront" || r.Header.Get("Referer") != "" ||
			r.Header.Get("X-Custom") != "1" || r.URL.RawQuery != "v=1&w=2" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		l.want("/img/a?v=1&w=3", "x", Hit, "Accept: image/webp")
		l.want("/img/a?v=2", "x", Miss, "Accept: image/webp")
		pass(30e9)
		l.want("/img/a?v=1", "x", Miss, "Accept: image/webp")
	})
	all := strings.Replace(values, "<Name>Accept</Name>", "<Name>*</Name>", 1)
	inLab(t, document{policy: all}, func(l *lab) {
		l.want("/img/a", "karui", Miss, "X-Custom: 1")
		l.want("/img/a", "karui", Miss) // all headers forwarded means never kept
	})
}
