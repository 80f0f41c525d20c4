package acceptance

import (
	"bytes"
	"image/jpeg"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"karui/internal/origintest"
)

func TestRequestsAreRoutedByHeaderThenHostThenDefault(t *testing.T) {
	t.Parallel()
	shop, blog := origintest.New(t), origintest.New(t)
	pictures := map[*origintest.Origin][]byte{shop: photo(t, 1), blog: photo(t, 2)}
	for o, body := range pictures {
		o.Set("/a.jpg", origintest.Image("image/jpeg", body))
		o.Set("/a.css", origintest.Image("text/css", body))
	}
	both := func(defaultSite bool) change {
		return with("sites", []any{
			site("shop", shop.URL(), map[string]any{"hosts": []any{"www.shop.example"}, "default": defaultSite}),
			site("blog", blog.URL(), map[string]any{"hosts": []any{"www.blog.example", "blog.example"}}),
		})
	}
	withDefault, without := serve(t, shop, both(true)), serve(t, shop, both(false))
	for _, c := range []struct {
		k           *instance
		host, route string
		want        *origintest.Origin
	}{
		{withDefault, "www.shop.example", "", shop},
		{withDefault, "www.blog.example", "", blog},
		{withDefault, "blog.example:8080", "", blog},
		{withDefault, "WWW.Blog.Example", "", blog},
		{withDefault, "unknown.example", "", shop},
		{withDefault, "", "", shop},
		{withDefault, "www.shop.example", "blog", blog},
		{withDefault, "unknown.example", "blog", blog},
		{withDefault, "www.shop.example", "nobody", nil},
		{withDefault, "unknown.example", "nobody", nil},
		{without, "www.blog.example", "", blog},
		{without, "unknown.example", "", nil},
		{without, "", "", nil},
		{without, "unknown.example", "shop", shop},
		{without, "www.shop.example", "nobody", nil},
	} {
		for _, target := range []string{"/a.jpg", "/a.css"} {
			raw := "GET " + target + " HTTP/1.1\r\nHost: " + c.host + "\r\n"
			if c.route != "" {
				raw += "X-Routing: " + c.route + "\r\n"
			}
			a := c.k.do(request{raw: raw + "\r\n", target: target, loose: true})
			switch {
			case c.want == nil && (a.status != 503 || a.header.Get("X-Karui-Reason") != "route" || a.header.Get("Cache-Control") != "no-store"):
				t.Errorf("host %q, route %q: %v", c.host, c.route, a)
			case c.want != nil && (a.status != 200 || !bytes.Equal(a.body, pictures[c.want])):
				t.Errorf("host %q, route %q: %v", c.host, c.route, a)
			}
		}
	}
}

func TestRoutingHeaderCanBeRenamed(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(t, 1)))
	k := serve(t, origin, with("edge.routing_header", "X-Customer"))
	if a := k.get("/a.jpg", "X-Customer: nobody"); a.status != 503 || a.header.Get("X-Karui-Reason") != "route" {
		t.Errorf("%v", a)
	}
	if a := k.get("/a.jpg", "X-Customer: shop", "X-Routing: nobody"); a.status != 200 {
		t.Errorf("%v", a)
	}
}

func TestWrongSecretIs503AndTwoAllowRotation(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	origin.Set("/a.css", origintest.Image("text/css", body))
	k := serve(t, origin, with("edge.secrets", []string{"old-secret-0123456789", "new-secret-0123456789"}))
	for _, target := range []string{"/a.jpg", "/a.css"} {
		for _, secret := range []string{"old-secret-0123456789", "new-secret-0123456789"} {
			if a := k.get(target, "X-Karui-Key: "+secret); a.status != 200 || !bytes.Equal(a.body, body) {
				t.Errorf("%v", a)
			}
		}
		for _, fields := range [][]string{nil, {"X-Karui-Key: "}, {"X-Karui-Key: wrong"}, {"X-Karui-Key: old-secret-0123456789x"}, {"X-Karui-Key: old-secret-012345678"}, {"X-Karui-Key: old-secret-0123456789,new-secret-0123456789"}, {"X-Karui-Key: OLD-SECRET-0123456789"}} {
			a := k.get(target, fields...)
			if a.status != 503 || a.header.Get("X-Karui-Reason") != "secret" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%v: %v", fields, a)
			}
		}
	}
	for _, r := range origin.Requests("") {
		if bytes.Contains(r.Head, []byte("secret")) {
			t.Errorf("the secret reached the origin:\n%s", r.Head)
		}
	}
	if a := k.get("/.karui/ping.jpg"); a.status != 200 {
		t.Errorf("the ping needs a secret: %v", a)
	}
	// The old one is taken out while running.
	k.settings.set("edge.secrets", []string{"new-secret-0123456789"})
	k.write()
	k.signal(syscall.SIGHUP)
	eventually(t, 10*time.Second, "the old secret is refused", func() bool {
		return k.get("/a.jpg", "X-Karui-Key: old-secret-0123456789").header.Get("X-Karui-Reason") == "secret"
	})
	if a := k.get("/a.jpg", "X-Karui-Key: new-secret-0123456789"); a.status != 200 {
		t.Errorf("%v", a)
	}
	if strings.Contains(k.log.String(), "-secret-") {
		t.Error("a secret is in the log")
	}
}

func TestMissingSecretsAreWarnedAbout(t *testing.T) {
	t.Parallel()
	k := serve(t, origintest.New(t))
	eventually(t, 5*time.Second, "a warning about edge.secrets", func() bool {
		for _, line := range k.log.lines() {
			if strings.Contains(line, `"WARN"`) && strings.Contains(line, "secret") {
				return true
			}
		}
		return false
	})
}

func TestPingIsARealJPEGWhereItIsThePing(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	own := photo(t, 1)
	origin.Set("/ping.jpg", origintest.Image("image/jpeg", own))
	origin.Set("/.karui/ping.jpg", origintest.Image("image/jpeg", own))
	k := serve(t, origin)
	for _, c := range []struct {
		host, target string
		fields       []string
		ping         bool
	}{
		{"www.example.com", "/.karui/ping.jpg", nil, true},
		{"192.0.2.1", "/.karui/ping.jpg", nil, true},
		{"x", "/.karui/ping.jpg", []string{"X-Routing: nobody"}, true},
		{"x", "/.karui/ping.jpg", []string{takesWebP}, true},
		{"x", "/ping.jpg", nil, true},
		{"", "/ping.jpg", nil, true},
		{k.addr, "/ping.jpg", []string{takesWebP}, true},
		{"www.example.com", "/ping.jpg", nil, false},
		{"x", "/ping.jpg", []string{"X-Routing: shop"}, false},
		{"www.example.com", "/dir/.karui/ping.jpg", nil, false},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			raw := method + " " + c.target + " HTTP/1.1\r\nHost: " + c.host + "\r\n" + strings.Join(append(c.fields, "\r\n"), "\r\n")
			a := k.do(request{raw: raw, target: c.target, loose: true})
			if !c.ping {
				if bytes.Equal(a.body, own) || a.status == 404 || method == "HEAD" {
					continue
				}
				t.Errorf("%s at %q is the site's own: %v", c.target, c.host, a)
				continue
			}
			if a.status != 200 || a.header.Get("Content-Type") != "image/jpeg" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s at %q: %v", method, c.target, c.host, a)
				continue
			}
			if method == "HEAD" {
				continue
			}
			if _, err := jpeg.Decode(bytes.NewReader(a.body)); err != nil || bytes.Equal(a.body, own) {
				t.Errorf("%s at %q: %v", c.target, c.host, err)
			}
		}
	}
	if n := origin.Count("/.karui/ping.jpg"); n != 0 {
		t.Errorf("the ping was fetched from the origin")
	}
}

// Health never queues behind conversions, nor does the ping behind a hanging origin.
func TestHealthAndHitsDoNotQueue(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	hold := origintest.NewGate()
	defer hold.Open()
	origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(t, 1)))
	for i := range 25 {
		origin.Set("/heavy"+itoa(i)+".jpg", origintest.Image("image/jpeg", encodeJPEG(t, scene(uint64(i), 900, 700), 90)))
		origin.Set("/hang"+itoa(i)+".jpg", origintest.Answer{Hold: hold})
	}
	k := serve(t, origin, with("convert.workers", 1), with("stress.latency", "60s"))
	k.settle("/a.jpg", takesWebP)
	var open []*connection
	for i := range 25 {
		for _, target := range []string{"/heavy" + itoa(i) + ".jpg", "/hang" + itoa(i) + ".jpg"} {
			c := k.dial()
			q := request{target: target, host: "www.example.com", fields: []string{takesWebP}}
			if _, err := c.Write(q.bytes()); err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
	}
	for range 20 {
		started := time.Now()
		if a := k.get("/a.jpg", takesWebP); a.karui() != "hit" {
			t.Errorf("%v", a)
		}
		if a := k.get("/.karui/ping.jpg"); a.status != 200 {
			t.Errorf("%v", a)
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if status, body := k.ask(path); status != 200 {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
		if took := time.Since(started); took > 5*time.Second {
			t.Errorf("hits and health took %v beside busy workers", took)
		}
	}
	for _, c := range open {
		_ = c.Close()
	}
}

func TestAdminListenerIsNotOnTheProxysAndNeedsATokenBeyondLoopback(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := serve(t, origin, with("admin.tokens", []any{
		map[string]any{"name": "ops", "token": "operators-token-0123456789", "rights": []any{"read", "purge", "dial"}},
	}))
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/status", "/api/v1/stats"} {
		if a := k.get(path); a.status != 404 || string(a.body) != "no such file\n" {
			t.Errorf("%s on the proxy's listener: %v", path, a)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _ := k.ask(path); status != 200 {
			t.Errorf("%s: %d", path, status)
		}
	}
	status, text := k.ask("/metrics")
	if status == http.StatusUnauthorized {
		return
	}
	if status != 200 || !strings.Contains(text, "\nkarui_") {
		t.Errorf("/metrics: %d", status)
	}
	for _, word := range []string{"www.example.com", "/healthz\"", "no-such"} {
		if strings.Contains(text, word) {
			t.Errorf("/metrics holds %q", word)
		}
	}
}

func TestPublicAdminListenerWithoutTokensIsRefused(t *testing.T) {
	t.Parallel()
	file := writeFile(t, smallConfig+"admin: {listen: \"0.0.0.0:19999\"}\n")
	if code, out, errs := command(t, nil, "config", "check", "--config", file); code != 2 || !strings.Contains(out+errs, "admin") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}
