package acceptance

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"karui/internal/origintest"
)

type field = origintest.Field

// personal answers every request with a picture of its own and says so.
func personal(t *testing.T, origin *origintest.Origin, target string, fields ...field) {
	t.Helper()
	pictures := make([][]byte, 24)
	for i := range pictures {
		pictures[i] = photo(t, uint64(100+i))
	}
	var mu sync.Mutex
	n := 0
	origin.SetFunc(target, func(origintest.Request) origintest.Answer {
		mu.Lock()
		defer mu.Unlock()
		i := n % len(pictures)
		n++
		return origintest.Image("image/jpeg", pictures[i], append(slices.Clone(fields), field{Name: "X-Serial", Value: itoa(i)})...)
	})
}

// What must not be shared is fetched anew for each viewer, goes out as it came,
// and its Cache-Control is never made public.
func TestAnswersThatMustNotBeSharedAreNot(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	kinds := map[string][]field{
		"/cookie.jpg":        {{Name: "Set-Cookie", Value: "id=secret"}},
		"/private.jpg":       {{Name: "Cache-Control", Value: "private, max-age=600"}},
		"/no-store.jpg":      {{Name: "Cache-Control", Value: "max-age=600, No-Store"}},
		"/two-lines.jpg":     {{Name: "Cache-Control", Value: "max-age=600"}, {Name: "Cache-Control", Value: "private"}},
		"/vary-agent.jpg":    {{Name: "Vary", Value: "Accept-Language"}, {Name: "Cache-Control", Value: "max-age=600"}},
		"/vary-star.jpg":     {{Name: "Vary", Value: "*"}},
		"/vary-cookie.jpg":   {{Name: "Vary", Value: "Accept-Encoding, Cookie"}},
		"/private-field.jpg": {{Name: "Cache-Control", Value: `private="set-cookie", max-age=600`}, {Name: "Set-Cookie", Value: "id=x"}},
	}
	for target, fields := range kinds {
		personal(t, origin, target, fields...)
	}
	k := serve(t, origin)
	for target, fields := range kinds {
		seen := map[string]bool{}
		for i := range 4 {
			a := k.do(request{target: target, fields: []string{takesWebP}, loose: true})
			if a.status != 200 || a.karui() != "bypass" || a.webp() {
				t.Errorf("%s, %d: %v", target, i, a)
			}
			if seen[string(a.body)] {
				t.Errorf("%s: a second viewer got the first one's picture", target)
			}
			seen[string(a.body)] = true
			for _, f := range fields {
				if f.Name == "Vary" {
					continue
				}
				if !slices.Contains(a.header.Values(f.Name), f.Value) {
					t.Errorf("%s: %s is %q, the origin said %q", target, f.Name, a.header.Values(f.Name), f.Value)
				}
			}
			if listed(a.header, "Cache-Control", "public") || !listed(a.header, "Vary", "Accept") && !listed(a.header, "Vary", "*") {
				t.Errorf("%s: %v", target, a)
			}
		}
	}
}

// The same at once: viewers attach only to what proved shareable.
func TestViewersAtOnceOfAnUnshareableImageEachGetTheirOwn(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	hold := origintest.NewGate()
	var mu sync.Mutex
	n := 0
	pictures := [][]byte{}
	for i := range 8 {
		pictures = append(pictures, photo(t, uint64(200+i)))
	}
	origin.SetFunc("/me.jpg", func(origintest.Request) origintest.Answer {
		mu.Lock()
		defer mu.Unlock()
		n++
		a := origintest.Image("image/jpeg", pictures[(n-1)%8], field{Name: "Set-Cookie", Value: fmt.Sprintf("id=%d", n)})
		a.Hold = hold
		return a
	})
	k := serve(t, origin)
	var wg sync.WaitGroup
	cookies, bodies := make([]string, 8), make([][]byte, 8)
	for i := range 8 {
		wg.Go(func() {
			a := k.get("/me.jpg", takesWebP)
			if a.status != 200 || a.err != nil {
				t.Errorf("%v", a)
			}
			cookies[i], bodies[i] = a.header.Get("Set-Cookie"), a.body
		})
	}
	origin.Await("/me.jpg", 1, 20*time.Second)
	pause(300 * time.Millisecond) // the others arrive meanwhile
	hold.Open()
	wg.Wait()
	for i := range 8 {
		for j := range i {
			if cookies[i] == cookies[j] || bytes.Equal(bodies[i], bodies[j]) {
				t.Errorf("viewers %d and %d share %q", i, j, cookies[i])
			}
		}
	}
	if origin.Count("/me.jpg") != 8 {
		t.Errorf("%d requests for 8 viewers", origin.Count("/me.jpg"))
	}
}

func TestPrivateRequestsBypassEverything(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	shared := photo(t, 1)
	origin.SetFunc("/a.jpg", func(r origintest.Request) origintest.Answer {
		who := r.Header.Get("Authorization") + r.Header.Get("Cookie")
		if who == "" {
			return origintest.Image("image/jpeg", shared)
		}
		return origintest.Image("image/jpeg", photo(t, uint64(len(who))), field{Name: "Cache-Control", Value: "max-age=99"}, field{Name: "ETag", Value: `"mine"`})
	})
	k := serve(t, origin)
	k.settle("/a.jpg", takesWebP)
	for _, secret := range []string{"Authorization: Basic dTpw", "Cookie: session=0123456789ab", "cookie: a=b; c=d"} {
		_, value, _ := bytes.Cut([]byte(secret), []byte(": "))
		want := photo(t, uint64(len(value)))
		for i := range 2 {
			before := origin.Count("/a.jpg")
			a := k.get("/a.jpg", takesWebP, secret, "X-Own: 1", "Accept-Language: ja", "Range: bytes=0-99999999", `If-None-Match: "other"`)
			if a.karui() != "bypass" || !bytes.Equal(a.body, want) || listed(a.header, "Cache-Control", "public") {
				t.Errorf("%s, %d: %v", secret, i, a)
			}
			all := origin.Requests("/a.jpg")
			if len(all) != before+1 {
				t.Errorf("%s: %d requests", secret, len(all)-before)
				continue
			}
			last := all[len(all)-1].Header
			for name, value := range map[string]string{"X-Own": "1", "Accept-Language": "ja", "Range": "bytes=0-99999999", "If-None-Match": `"other"`} {
				if last.Get(name) != value {
					t.Errorf("%s: the origin saw %s %q, want %q", secret, name, last.Get(name), value)
				}
			}
		}
	}
	if a := k.get("/a.jpg", takesWebP); a.karui() != "hit" {
		t.Errorf("an ordinary viewer afterwards: %v", a)
	}
	if firstRequest(t, origin, "/a.jpg").Header.Get("Cookie") != "" {
		t.Errorf("the shared fetch carried a cookie")
	}
}

func TestCookiesCanBeIgnored(t *testing.T) {
	t.Parallel()
	body := photo(t, 1)
	k, origin := serveFiles(t, map[string][]byte{"/a.jpg": body}, withSite("cookies", "ignore"))
	k.settle("/a.jpg", takesWebP, "Cookie: session=1")
	for _, cookie := range []string{"Cookie: session=2", "Cookie: session=3"} {
		if a := k.get("/a.jpg", takesWebP, cookie); a.karui() != "hit" {
			t.Errorf("%v", a)
		}
	}
	for _, r := range origin.Requests("/a.jpg") {
		if r.Header.Get("Cookie") != "" {
			t.Errorf("the shared fetch carried a cookie:\n%s", r.Head)
		}
	}
	if a := k.get("/a.jpg", takesWebP, "Authorization: Bearer x"); a.karui() != "bypass" {
		t.Errorf("Authorization: %v", a)
	}
}

func TestNoTransformIsServedAsItCame(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body, field{Name: "Cache-Control", Value: "max-age=500, no-transform"}))
	k := serve(t, origin)
	for range 4 {
		a := k.get("/a.jpg", takesWebP)
		if a.status != 200 || !bytes.Equal(a.body, body) {
			t.Errorf("%v", a)
		}
	}
}

func TestEncodedBodiesPassUnconverted(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	plain, packed := photo(t, 1), gzipped(t, photo(t, 1))
	origin.Set("/a.jpg", origintest.Image("image/jpeg", packed, field{Name: "Content-Encoding", Value: "gzip"}))
	origin.Set("/identity.jpg", origintest.Image("image/jpeg", plain, field{Name: "Content-Encoding", Value: "identity"}))
	k := serve(t, origin)
	for range 3 {
		for _, accept := range []string{takesWebP, takesAny} {
			a := k.get("/a.jpg", accept, "Accept-Encoding: gzip")
			if a.status != 200 || !bytes.Equal(a.body, packed) || a.header.Get("Content-Encoding") != "gzip" || a.header.Get("Content-Type") != "image/jpeg" {
				t.Errorf("%v", a)
			}
		}
	}
	if a := k.settle("/identity.jpg", takesWebP); a.karui() != "hit" || a.header.Get("Content-Encoding") != "" {
		t.Errorf("identity: %v", a)
	}
	for _, r := range origin.Requests("") {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("the shared fetch said Accept-Encoding %q", got)
		}
	}
}

// Fields that say who may use an image belong to the variant as well.
func TestPermissionsStayOnVariants(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	fields := []field{
		{Name: "Access-Control-Allow-Origin", Value: "*"},
		{Name: "Access-Control-Expose-Headers", Value: "X-Thing"},
		{Name: "Cross-Origin-Resource-Policy", Value: "cross-origin"},
		{Name: "Timing-Allow-Origin", Value: "https://a.example"},
		{Name: "X-Robots-Tag", Value: "noindex"},
		{Name: "Link", Value: `</a.html>; rel="canonical"`},
	}
	origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(t, 1), append(fields, field{Name: "X-Powered-By", Value: "x"}, field{Name: "ETag", Value: `"o"`},
		field{Name: "Last-Modified", Value: "Mon, 02 Jan 2006 15:04:05 GMT"}, field{Name: "Content-MD5", Value: "Q2hlY2sgSW50ZWdyaXR5IQ=="}, field{Name: "Accept-Ranges", Value: "bytes"},
		field{Name: "Digest", Value: "sha-256=x"}, field{Name: "Repr-Digest", Value: "sha-256=:eA==:"})...))
	k := serve(t, origin)
	k.settle("/a.jpg", takesWebP)
	for name, a := range map[string]*reply{"variant": k.get("/a.jpg", takesWebP), "original": k.get("/a.jpg", takesAny)} {
		for _, f := range fields {
			if a.header.Get(f.Name) != f.Value {
				t.Errorf("%s: %s is %q, want %q", name, f.Name, a.header.Get(f.Name), f.Value)
			}
		}
	}
	v := k.get("/a.jpg", takesWebP)
	for _, name := range []string{"Content-MD5", "Digest", "Repr-Digest", "Last-Modified"} {
		if v.header.Get(name) != "" {
			t.Errorf("the variant carries the original's %s", name)
		}
	}
}

// With Vary: Origin every viewer gets the answer for its own origin, and none
// another one's, from the first request on.
func TestVaryOriginIsForwardedAndKeyed(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.SetFunc("/a.jpg", func(r origintest.Request) origintest.Answer {
		a := origintest.Image("image/jpeg", body, field{Name: "Vary", Value: "Origin"})
		if from := r.Header.Get("Origin"); from != "" {
			a = a.With("Access-Control-Allow-Origin", from)
		}
		return a
	})
	k := serve(t, origin)
	viewers := []string{"", "https://a.example", "https://b.example"}
	ask := func(from string) *reply {
		fields := []string{takesWebP}
		if from != "" {
			fields = append(fields, "Origin: "+from)
		}
		return k.get("/a.jpg", fields...)
	}
	for round := range 3 {
		for _, from := range viewers {
			a := ask(from)
			if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != from || !listed(a.header, "Vary", "Origin") {
				t.Errorf("round %d, Origin %q: %v", round, from, a)
			}
		}
	}
	for _, from := range viewers {
		eventually(t, settleLimit, "a variant for "+from, func() bool {
			a := ask(from)
			if a.header.Get("Access-Control-Allow-Origin") != from {
				t.Errorf("Origin %q: %v", from, a)
			}
			return a.karui() == "hit"
		})
	}
	// Each origin is asked for once or twice, not with every request.
	before := origin.Count("/a.jpg")
	for _, from := range viewers {
		ask(from)
	}
	if n := origin.Count("/a.jpg") - before; n != 0 {
		t.Errorf("%d requests for what was settled", n)
	}
}

func TestListedHeadersAreForwardedAndJoinTheKey(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	pictures := map[string][]byte{"": photo(t, 1), "mobile": photo(t, 2), "desktop": photo(t, 3)}
	origin.SetFunc("/a.jpg", func(r origintest.Request) origintest.Answer {
		return origintest.Image("image/jpeg", pictures[r.Header.Get("X-Device")], field{Name: "Vary", Value: "X-Device"})
	})
	k := serve(t, origin, withSite("forward_headers", []string{"User-Agent", "X-Device"}))
	for range 2 {
		for device, body := range pictures {
			fields := []string{takesAny, "User-Agent: me/1", "X-Other: 1"}
			if device != "" {
				fields = append(fields, "X-Device: "+device)
			}
			if a := k.get("/a.jpg", fields...); !bytes.Equal(a.body, body) || a.karui() == "bypass" {
				t.Errorf("%q: %v", device, a)
			}
		}
	}
	if n := origin.Count("/a.jpg"); n != 3 {
		t.Errorf("%d requests for 3 devices", n)
	}
	for _, r := range origin.Requests("/a.jpg") {
		if r.Header.Get("User-Agent") != "me/1" || r.Header.Get("X-Other") != "" {
			t.Errorf("the origin saw\n%s", r.Head)
		}
	}
}

// What the shared fetch carries, to the field.
func TestSharedFetchCarriesWhatItMayAndNothingElse(t *testing.T) {
	t.Parallel()
	body := photo(t, 1)
	k, origin := serveFiles(t, map[string][]byte{"/a.jpg": body},
		withPlace("host", "images.example.com"),
		withPlace("headers", []any{map[string]any{"name": "Referer", "value": "https://www.example.com/"}, map[string]any{"name": "X-Origin-Key", "value": "k"}}))
	a := k.get("/a.jpg", takesWebP, "User-Agent: Amazon CloudFront", "X-Forwarded-For: 192.0.2.1", "X-Amz-Cf-Id: abc", "Referer: https://evil.example/",
		"X-Routing: shop", "X-Karui-Key: hush", "Accept-Language: ja", "Accept-Encoding: gzip, br", "Range: bytes=0-1", `If-None-Match: "1"`, "If-Modified-Since: Mon, 02 Jan 2006 15:04:05 GMT",
		"Connection: close, X-Hop", "X-Hop: 1", "Keep-Alive: 1", "Proxy-Authorization: x", "TE: trailers", "Upgrade: h2c", "Expect: 100-continue")
	if a.status != 200 {
		t.Fatalf("%v", a)
	}
	r := firstRequest(t, origin, "/a.jpg").Header
	for name, want := range map[string]string{"Host": "images.example.com", "User-Agent": "Amazon CloudFront", "X-Amz-Cf-Id": "abc", "Referer": "https://www.example.com/", "X-Origin-Key": "k", "Accept-Encoding": "identity"} {
		if got := r.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := r.Get("X-Forwarded-For"); len(got) < 9 || got[:9] != "192.0.2.1" {
		t.Errorf("X-Forwarded-For %q", got)
	}
	for _, name := range []string{"X-Routing", "X-Karui-Key", "Accept-Language", "Accept", "Range", "If-None-Match", "If-Modified-Since", "X-Hop", "Keep-Alive", "Proxy-Authorization", "Te", "Upgrade", "Cookie", "Expect"} {
		if got := r.Values(name); len(got) != 0 {
			t.Errorf("%s: %q reached the origin", name, got)
		}
	}
}
