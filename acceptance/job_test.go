package acceptance

import (
	"bytes"
	"strings"
	"testing"

	"karui/internal/origintest"
)

// The main job: WebP for those who accept it, the untouched original for
// everybody else, short lifetimes first and long ones once it is settled.
func TestFirstTheOriginalForShortThenTheVariantForLong(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	files := map[string][]byte{"/a.jpg": photo(t, 1), "/b.JPEG": photo(t, 2), "/c.jpe": photo(t, 3), "/d.jfif": photo(t, 4), "/e.png": logo(t, 5), "/f.gif": animation(t, 6, 0)}
	for target, body := range files {
		origin.Set(target, origintest.Image(typeByName(target), body))
	}
	k := serve(t, origin)
	for target, body := range files {
		first := k.get(target, takesWebP)
		if first.karui() != "miss" || !bytes.Equal(first.body, body) || first.maxAge() != 10 {
			t.Errorf("%s: first answer %v", target, first)
		}
		settled := k.settle(target, takesWebP)
		if settled.karui() != "hit" || !settled.webp() {
			t.Errorf("%s: settled answer %v", target, settled)
			continue
		}
		if age := settled.maxAge(); age < 86400-120 || age > 86400 {
			t.Errorf("%s: settled for %d s, want the rest of a day", target, age)
		}
		for _, problem := range samePicture(body, settled.body) {
			t.Errorf("%s: %s", target, problem)
		}
		plain := k.get(target, takesAny)
		if plain.karui() != "original" || !bytes.Equal(plain.body, body) || plain.maxAge() < 86400-120 || plain.header.Get("Content-Type") != typeByName(target) {
			t.Errorf("%s: a plain viewer got %v", target, plain)
		}
		if plain.header.Get("Etag") == settled.header.Get("Etag") {
			t.Errorf("%s: two formats with the tag %q", target, plain.header.Get("Etag"))
		}
		if n := origin.Count(target); n != 1 {
			t.Errorf("%s: %d requests to the origin, want 1", target, n)
		}
	}
}

func TestPlainViewerNeverWaitsAndGetsTheLongLifetimeAtOnce(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Image("image/jpeg", body) })
	k := serve(t, origin, patient)
	for name, fields := range map[string][]string{
		"no Accept":        nil,
		"any image":        {takesAny},
		"anything":         {"Accept: */*"},
		"webp refused":     {"Accept: image/webp;q=0, image/*"},
		"webp refused too": {"Accept: image/webp; q=0.000,*/*"},
		"other formats":    {"Accept: image/avif,image/heic,image/webpx,ximage/webp"},
		"no list":          {"Accept: ;;,,=q=,\"image/webp"},
	} {
		a := k.get("/"+strings.ReplaceAll(name, " ", "-")+".jpg", fields...)
		if a.karui() != "original" || !bytes.Equal(a.body, body) || a.maxAge() != 86400 {
			t.Errorf("%s: %v", name, a)
		}
	}
}

func TestViewerThatNamesWebPGetsIt(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	k := serve(t, origin)
	k.settle("/a.jpg", takesWebP)
	for _, accept := range []string{
		"Accept: image/webp", "accept:image/webp", "ACCEPT: Image/WebP", "Accept: image/webp;q=0.001", "Accept: text/html, image/webp;q=0.1, */*;q=1",
		"Accept: image/webp;level=1;q=0.5", "Accept: image/jpeg\r\nAccept: image/webp", "Accept: \t image/webp \t ,*/*",
	} {
		a := k.do(request{target: "/a.jpg", fields: strings.Split(accept, "\r\n"), loose: true})
		if !a.webp() || a.karui() != "hit" {
			t.Errorf("%s: %v", accept, a)
		}
	}
}

func TestVariantComesAtOnceWhereTheViewerMayWait(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	k := serve(t, origin, patient)
	a := k.get("/a.jpg", takesWebP)
	if a.karui() != "wait" || !a.webp() || a.maxAge() < 86000 {
		t.Fatalf("first answer %v", a)
	}
	for _, problem := range samePicture(body, a.body) {
		t.Error(problem)
	}
	hit := k.get("/a.jpg", takesWebP)
	if hit.karui() != "hit" || !bytes.Equal(hit.body, a.body) || hit.header.Get("Etag") != a.header.Get("Etag") {
		t.Errorf("second answer %v", hit)
	}
}

func TestSettledOriginalHasTheLongLifetime(t *testing.T) {
	t.Parallel()
	body := stubborn(t)
	k, _ := serveFiles(t, map[string][]byte{"/a.jpg": body})
	first := k.get("/a.jpg", takesWebP)
	if first.karui() != "miss" || first.maxAge() != 10 || !bytes.Equal(first.body, body) {
		t.Errorf("first answer %v", first)
	}
	a := k.settle("/a.jpg", takesWebP)
	if a.karui() != "original" || !bytes.Equal(a.body, body) || a.maxAge() < 86000 || a.header.Get("X-Karui-Saved") != "" {
		t.Errorf("settled answer %v", a)
	}
}

func TestSavedBytesAreTheDifference(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	k := serve(t, origin)
	a := k.settle("/a.jpg", takesWebP)
	if got, want := a.header.Get("X-Karui-Saved"), itoa(len(body)-len(a.body)); got != want {
		t.Errorf("X-Karui-Saved %q, want %s", got, want)
	}
}

func TestDebugHeadersCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	k := serve(t, origin, with("edge.debug_headers", false))
	eventually(t, settleLimit, "a variant", func() bool { return k.get("/a.jpg", takesWebP).webp() })
	for _, fields := range [][]string{{takesWebP}, {takesAny}} {
		a := k.get("/a.jpg", fields...)
		for name := range a.header {
			if strings.HasPrefix(name, "X-Karui") {
				t.Errorf("%s: %q", name, a.header.Get(name))
			}
		}
	}
}

func TestContentDispositionNamesTheVariant(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	origin.SetDefault(func(origintest.Request) origintest.Answer { return origintest.Image("image/jpeg", body) })
	k := serve(t, origin)
	for target, want := range map[string][]string{
		"/dir/photo.jpg":          {"inline", `photo.webp`},
		"/two.dots.JPG":           {"inline", `two.dots.webp`},
		"/with%20space.jpg":       {"inline", `with space.webp`},
		"/%E5%86%99%E7%9C%9F.jpg": {"inline", `filename*=UTF-8''%E5%86%99%E7%9C%9F.webp`},
		"/\xe5\x86\x99\xe7\x9c\x9f/raw\xe5\x86\x99.jpg": {"inline", `filename*=UTF-8''raw%E5%86%99.webp`},
		"/caf%C3%A9.jpg": {"inline", `filename*=UTF-8''caf%C3%A9.webp`},
	} {
		got := k.settle(target, takesWebP).header.Get("Content-Disposition")
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%q: Content-Disposition %q lacks %q", target, got, part)
			}
		}
	}
	for _, target := range []string{"/%8e%ca%90%5e.jpg", "/\x8e\xca\x90\x5e.jpg", "/caf%e9.jpg"} {
		got := k.settle(target, takesWebP).header.Get("Content-Disposition")
		if got != "inline" {
			t.Errorf("%q is no UTF-8: Content-Disposition %q, want inline alone", target, got)
		}
	}
	for _, target := range []string{"/q%22uote.jpg", "/back%5cslash.jpg", "/cr%0d%0aSet-Cookie:x=1.jpg", "/tab%09.jpg", "/nul%00.jpg", "/a%2Fb%2f..%2fc.jpg", "/semi;colon.jpg"} {
		a := k.settle(target, takesWebP)
		got := a.header.Get("Content-Disposition")
		if !strings.HasPrefix(got, "inline") || a.header.Get("Set-Cookie") != "" || strings.ContainsAny(got, "\r\n\x00") {
			t.Errorf("%q: %v", target, a)
		}
		if _, rest, quoted := strings.Cut(got, `filename="`); quoted {
			if name, _, _ := strings.Cut(rest, `"`); strings.ContainsAny(name, "/") {
				t.Errorf("%q: a path in %q", target, got)
			}
		}
	}
}
