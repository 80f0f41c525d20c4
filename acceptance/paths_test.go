package acceptance

import (
	"bytes"
	"strings"
	"testing"

	"karui/internal/origintest"
)

// The origin sees the bytes that the viewer sent.
func TestPathReachesTheOriginByteForByte(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Image("image/jpeg", body) })
	k := serve(t, origin)
	targets := []string{
		"/plain.jpg", "/a%2Fb.jpg", "/a%2fb.jpg", "/a%20b.jpg", "/a+b.jpg", "/a%2Bb.jpg", "/a%25b.jpg", "/a%2525b.jpg",
		"//double.jpg", "///triple//inside///x.jpg", "/a;b=c.jpg", "/a/./b.jpg", "/a/../b.jpg", "/../../etc/passwd.jpg", "/a/%2e%2e/b.jpg", "/%2E%2E/b.jpg",
		"/%E5%86%99%E7%9C%9F.jpg", "/\xe5\x86\x99\xe7\x9c\x9f.jpg", "/%8eq%90%5e.jpg", "/\x8e\x71\x90\x5e.jpg", "/\xff\xfe.jpg",
		"/a:b@c.jpg", "/a,b!c'd(e)*.jpg", "/~user/x.jpg", "/a=b&c.jpg", "/a$b.jpg", "/a|b.jpg", "/a\"b.jpg", "/a<b>.jpg", "/a[b]{c}^`.jpg", "/a\\b.jpg",
		"/%41%42.jpg", "/%00.jpg", "/%0d%0a.jpg", "/" + strings.Repeat("long/", 1000) + "x.jpg",
		"/q.jpg?", "/q.jpg?v=2", "/q.jpg?v=2&w=%20+&%zz", "/q.jpg?a=b?c=d", "/q.jpg?\xe5\x86\x99", "/q.jpg?a;b&&=&c", "/q.jpg?%2F/..//",
		"/page%2F\xe5//..;x", "/page?x=%2F",
	}
	for _, target := range targets {
		before := len(origin.Requests(""))
		a := k.do(request{target: target, fields: []string{takesAny}})
		if a.status != 200 || !bytes.Equal(a.body, body) {
			t.Errorf("%q: %v", target, a)
			continue
		}
		requests := origin.Requests("")
		if len(requests) == before {
			t.Errorf("%q was taken for another path", target)
			continue
		}
		if got := requests[len(requests)-1].Line; got != "GET "+target+" HTTP/1.1" {
			t.Errorf("the origin saw %q, the viewer sent %q", got, target)
		}
	}
	// Each is an entry of its own and is found again.
	before := origin.Count("")
	for _, target := range targets {
		if convertible(target) {
			if a := k.get(target, takesAny); a.karui() != "original" || !bytes.Equal(a.body, body) {
				t.Errorf("%q again: %v", target, a)
			}
		}
	}
	if n := origin.Count("") - before; n != 0 {
		t.Errorf("%d of them were not found again", n)
	}
}

// A path that no URL may hold is refused or passed on as it is, never mended into another one.
func TestBrokenEscapesAreRefusedOrPassedOnAsTheyAre(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Image("image/jpeg", body) })
	k := serve(t, origin)
	for _, target := range []string{"/100%.jpg", "/a%zzb.jpg", "/%.jpg", "/%a", "/50%off.jpg", "/a%2.jpg"} {
		before := origin.Count("")
		a := k.do(request{target: target, fields: []string{takesAny}, loose: true})
		requests := origin.Requests("")[before:]
		switch {
		case (a.status == 400 || a.status == 503 && a.header.Get("Cache-Control") == "no-store") && len(requests) == 0:
		case a.status == 200 && len(requests) == 1 && requests[0].Line == "GET "+target+" HTTP/1.1":
		default:
			t.Errorf("%q: %v, the origin saw %v", target, a, requests)
		}
	}
}

func TestQueryAllNoneOrNames(t *testing.T) {
	t.Parallel()
	pictures := map[string][]byte{}
	for i, q := range []string{"", "?v=1", "?v=2", "?v=2&utm=x", "?utm=x", "?utm=y&v=2", "?V=2", "?v", "?"} {
		pictures["/a.jpg"+q] = photo(t, uint64(i))
	}
	serveQuery := func(t *testing.T, query any) (*instance, *origintest.Origin) {
		origin := origintest.New(t)
		origin.SetDefault(func(r origintest.Request) origintest.Answer {
			body, known := pictures[r.Target]
			if !known {
				return origintest.Text(404, "text/plain", "no "+r.Target)
			}
			return origintest.Image("image/jpeg", body)
		})
		return serve(t, origin, withSite("query", query)), origin
	}
	expect := func(t *testing.T, k *instance, origin *origintest.Origin, sent map[string]string) {
		t.Helper()
		for range 2 {
			for asked, want := range sent {
				a := k.get(asked, takesAny)
				if a.status != 200 || !bytes.Equal(a.body, pictures[want]) {
					t.Errorf("%s: %v, want the picture of %s", asked, a, want)
				}
			}
		}
		distinct := map[string]bool{}
		for _, want := range sent {
			distinct[want] = true
		}
		for _, r := range origin.Requests("") {
			if !distinct[r.Target] {
				t.Errorf("the origin saw %s", r.Target)
			}
		}
		if n := origin.Count(""); n != len(distinct) {
			t.Errorf("%d requests for %d distinct targets", n, len(distinct))
		}
	}
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		k, origin := serveQuery(t, "all")
		sent := map[string]string{}
		for target := range pictures {
			sent[target] = target
		}
		expect(t, k, origin, sent)
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		k, origin := serveQuery(t, "none")
		sent := map[string]string{}
		for target := range pictures {
			sent[target] = "/a.jpg"
		}
		expect(t, k, origin, sent)
	})
	t.Run("names", func(t *testing.T) {
		t.Parallel()
		k, origin := serveQuery(t, []string{"v"})
		expect(t, k, origin, map[string]string{
			"/a.jpg": "/a.jpg", "/a.jpg?v=1": "/a.jpg?v=1", "/a.jpg?v=2": "/a.jpg?v=2", "/a.jpg?v=2&utm=x": "/a.jpg?v=2",
			"/a.jpg?utm=x": "/a.jpg", "/a.jpg?utm=y&v=2": "/a.jpg?v=2", "/a.jpg?V=2": "/a.jpg", "/a.jpg?v": "/a.jpg?v",
		})
	})
}

// An absolute-form target names this server in other words; it never sends karui elsewhere.
func TestAbsoluteFormNeverReachesAnotherHost(t *testing.T) {
	t.Parallel()
	origin, other := origintest.New(t), origintest.New(t)
	body := photo(t, 1)
	origin.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Image("image/jpeg", body) })
	k := serve(t, origin)
	for _, raw := range []string{
		"GET http://" + other.Addr() + "/a.jpg HTTP/1.1\r\nHost: www.example.com\r\n\r\n",
		"GET http://www.example.com/a.jpg HTTP/1.1\r\nHost: " + other.Addr() + "\r\n\r\n",
		"GET //" + other.Addr() + "/a.jpg HTTP/1.1\r\nHost: www.example.com\r\n\r\n",
		"GET /a.jpg HTTP/1.1\r\nHost: " + other.Addr() + "\r\n\r\n",
		"GET @" + other.Addr() + "/a.jpg HTTP/1.1\r\nHost: www.example.com\r\n\r\n",
		"GET /@" + other.Addr() + "/a.jpg HTTP/1.1\r\nHost: www.example.com\r\n\r\n",
		"GET http://user@" + other.Addr() + "/a.jpg HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT " + other.Addr() + " HTTP/1.1\r\nHost: " + other.Addr() + "\r\n\r\n",
		"GET /a.jpg HTTP/1.1\r\nHost: www.example.com\r\nX-Forwarded-Host: " + other.Addr() + "\r\n\r\n",
		"GET /style.css HTTP/1.1\r\nHost: www.example.com\r\nX-Forwarded-Host: " + other.Addr() + "\r\nForwarded: host=" + other.Addr() + "\r\n\r\n",
	} {
		k.try(request{raw: raw, loose: true})
	}
	if n := other.Connections(); n != 0 {
		t.Errorf("%d connections to another host", n)
	}
	for _, r := range origin.Requests("") {
		if !strings.HasPrefix(r.Target, "/") {
			t.Errorf("the origin saw the target %q", r.Target)
		}
	}
}
