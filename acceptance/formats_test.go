package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"karui/internal/origintest"
	"karui/internal/picture"
)

// What viewers of several formats send.
const (
	takesAVIF     = "Accept: image/avif,image/*;q=0.8"
	takesAVIFWebP = "Accept: image/avif,image/webp,image/*;q=0.8"
	takesHEIC     = "Accept: image/heic,image/*;q=0.8"
)

func withFormats(names ...any) change { return withSite("formats", names) }

// settleFor asks until the answer is one that is kept for longer than a moment.
func (k *instance) settleFor(target string, fields ...string) *reply {
	k.t.Helper()
	var last *reply
	if !became(settleLimit, func() bool {
		last = k.get(target, fields...)
		return last.maxAge() > 60
	}) {
		k.t.Fatalf("%s never settled: %v", target, last)
	}
	return last
}

// canMake skips a test where this machine's libraries lack the encoder.
func (k *instance) canMake(format string) {
	k.t.Helper()
	if bytes.Contains([]byte(k.log.String()), []byte(format+" cannot be written on this machine")) {
		k.t.Skipf("no encoder for %s on this machine", format)
	}
}

// wantVariant checks an answer with a variant against its original.
func wantVariant(t *testing.T, a *reply, media, extension string, original []byte) {
	t.Helper()
	if a.karui() != "hit" || a.header.Get("Content-Type") != media || picture.Format(a.body) != media {
		t.Errorf("%s: want %s, got %v", a.request.target, media, a)
		return
	}
	if disposition := a.header.Get("Content-Disposition"); !strings.Contains(disposition, extension+`"`) {
		t.Errorf("%s: Content-Disposition %q does not end in %s", a.request.target, disposition, extension)
	}
	if got, want := a.header.Get("X-Karui-Saved"), itoa(len(original)-len(a.body)); got != want {
		t.Errorf("%s: X-Karui-Saved %q, want %s", a.request.target, got, want)
	}
	for _, problem := range samePicture(original, a.body) {
		t.Errorf("%s as %s: %s", a.request.target, media, problem)
	}
}

// Each viewer gets the first of the site's formats that it names, under its own
// tag, all from one request to the origin.
func TestEachViewerGetsTheBestFormatItNames(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"/a.jpg": photo(t, 1), "/b.png": logo(t, 2)}
	k, origin := serveFiles(t, files, withFormats("avif", "heic", "webp"))
	for target, body := range files {
		answers := map[string]*reply{}
		for _, v := range []struct{ name, accept, media, extension string }{
			{"both", takesAVIFWebP, "image/avif", ".avif"},
			{"avif", takesAVIF, "image/avif", ".avif"},
			{"heic", takesHEIC, "image/heic", ".heic"},
			{"webp", "Accept: image/webp", "image/webp", ".webp"},
			{"order", "Accept: image/webp;q=1, image/avif;q=0.1", "image/avif", ".avif"},
		} {
			a := k.settleFor(target, v.accept)
			k.canMake(strings.ToUpper(v.media[len("image/"):]))
			if target == "/b.png" && v.media != "image/webp" && a.karui() == "original" {
				// A drawing may not be worth it in that format; the answer says so.
				if code := a.header.Get("X-Karui-Kept"); code != "not_smaller" && code != "graphic" {
					t.Errorf("%s for %s: kept for %q", target, v.name, code)
				}
				continue
			}
			if target == "/b.png" && a.header.Get("Content-Type") == "image/webp" {
				wantVariant(t, a, "image/webp", ".webp", body)
				continue
			}
			wantVariant(t, a, v.media, v.extension, body)
			answers[v.name] = a
		}
		plain := k.settleFor(target, takesAny)
		if !bytes.Equal(plain.body, body) || plain.karui() != "original" || plain.header.Get("X-Karui-Kept") != "not_accepted" {
			t.Errorf("%s: a plain viewer got %v", target, plain)
		}
		tags := map[string]string{plain.header.Get("Etag"): "original"}
		for name, a := range answers {
			media := a.header.Get("Content-Type")
			if had, taken := tags[a.header.Get("Etag")]; taken && had != media {
				t.Errorf("%s: %s and %s have one tag", target, name, had)
			}
			tags[a.header.Get("Etag")] = media
			again := k.get(target, "Accept: "+a.request.field("Accept"), "If-None-Match: "+a.header.Get("Etag"))
			if again.status != http.StatusNotModified || !listed(again.header, "Vary", "Accept") {
				t.Errorf("%s: %s with its own tag: %v", target, name, again)
			}
			if other := k.get(target, takesAny, "If-None-Match: "+a.header.Get("Etag")); other.status != 200 || !bytes.Equal(other.body, body) {
				t.Errorf("%s: a plain viewer with the tag of %s: %v", target, name, other)
			}
		}
		if n := origin.Count(target); n != 1 {
			t.Errorf("%s: %d requests to the origin, want 1", target, n)
		}
	}
}

// AVIF is made of still pictures here: of an animation, who takes both gets the
// WebP for good, and who takes only AVIF the animation as it is.
func TestFormatThatCannotHoldThePicture(t *testing.T) {
	t.Parallel()
	body := animation(t, 6, 0)
	k, _ := serveFiles(t, map[string][]byte{"/a.gif": body}, withFormats("avif", "webp"))
	both := k.settleFor("/a.gif", takesAVIFWebP)
	wantVariant(t, both, "image/webp", ".webp", body)
	webp := k.settleFor("/a.gif", "Accept: image/webp")
	if !bytes.Equal(webp.body, both.body) || webp.header.Get("Etag") != both.header.Get("Etag") {
		t.Errorf("a viewer of WebP got another variant: %v", webp)
	}
	avif := k.settleFor("/a.gif", takesAVIF)
	if !bytes.Equal(avif.body, body) || avif.karui() != "original" || avif.header.Get("X-Karui-Kept") != "cannot_animate" {
		t.Errorf("a viewer of AVIF got %v", avif)
	}
	if made := k.metric("karui_conversions_total"); made != 2 {
		t.Errorf("%v decisions were counted, want one for each format", made)
	}
}

func TestKeptOriginalSaysWhy(t *testing.T) {
	t.Parallel()
	k, _ := serveFiles(t, map[string][]byte{"/a.jpg": stubborn(t), "/b.jpg": photo(t, 1)[:4000]})
	for target, want := range map[string]string{"/a.jpg": "not_smaller", "/b.jpg": "truncated"} {
		if a := k.settleFor(target, takesWebP); a.karui() != "original" || a.header.Get("X-Karui-Kept") != want {
			t.Errorf("%s: want it kept as %s, got %v", target, want, a)
		}
	}
}

// Real photographs in every format at once, each viewer of a cold image served
// beside the others.
func TestRealPhotographsInEveryFormat(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(corpus, "photos", "*"))
	if err != nil || len(paths) == 0 {
		t.Skipf("no corpus of pictures at %s: %v", corpus, err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		name := "/" + filepath.Base(path)
		// Small ones, for the time that HEIC takes.
		if info.Size() < 100_000 && convertible(name) && !strings.ContainsAny(name, " #?%") && len(files) < 4 {
			if files[name], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	k, origin := serveFiles(t, files, withFormats("avif", "heic", "webp"), with("convert.queue_wait", "60s"))
	for target, body := range files {
		accepts := map[string]string{"image/avif": takesAVIF, "image/heic": takesHEIC, "image/webp": "Accept: image/webp"}
		var viewers sync.WaitGroup
		for media, accept := range accepts {
			viewers.Go(func() {
				a := k.try(request{target: target, fields: []string{accept}})
				if a.err != nil || a.status != 200 || a.header.Get("Content-Type") != media && !bytes.Equal(a.body, body) {
					t.Errorf("%s: a cold viewer of %s got %v", target, media, a)
				}
			})
		}
		viewers.Wait()
		for media, accept := range accepts {
			a := k.settleFor(target, accept)
			k.canMake(strings.ToUpper(media[len("image/"):]))
			if a.karui() == "original" && bytes.Equal(a.body, body) && a.header.Get("X-Karui-Kept") == "not_smaller" {
				continue
			}
			wantVariant(t, a, media, "."+media[len("image/"):], body)
		}
		if n := origin.Count(target); n != 1 {
			t.Errorf("%s: %d requests to the origin, want 1", target, n)
		}
	}
}

// An origin that has a page under the name now has the last word.
func TestPictureThatBecameAPage(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(t, 1), cc("max-age=1")))
	k := serve(t, origin, with("ttl.short", "1s"))
	k.settle("/a.jpg", takesWebP)
	page := []byte("<!DOCTYPE html><title>moved</title>")
	origin.Set("/a.jpg", origintest.Text(200, "text/html", string(page)))
	for _, accept := range []string{takesWebP, takesAny} {
		eventually(t, 20*time.Second, "the page", func() bool { return bytes.Equal(k.get("/a.jpg", accept).body, page) })
	}
	if a := k.get("/a.jpg", takesWebP); a.header.Get("Content-Type") != "text/html" || a.maxAge() != 1 {
		t.Errorf("%v", a)
	}
}

// The operators' API, with tokens that reach as far as the configuration says.
func TestAPITokens(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := serve(t, origin, with("admin.tokens", []any{
		map[string]any{"name": "ops", "token": "operators-token-0123456789", "rights": []any{"read", "purge", "dial"}},
		map[string]any{"name": "staff", "token": "staff-token-0123456789", "rights": []any{"read"}, "sites": []any{"shop"}},
	}))
	for _, test := range []struct {
		method, path, token string
		status              int
		code                string
	}{
		{"GET", "/api/v1/stats", "operators-token-0123456789", 200, ""},
		{"GET", "/api/v1/stats", "staff-token-0123456789", 200, ""},
		{"GET", "/api/v1/stats", "", 401, "unauthorized"},
		{"GET", "/api/v1/stats", "guess", 401, "unauthorized"},
		{"GET", "/api/v1/quarantine", "operators-token-0123456789", 200, ""},
		{"GET", "/api/v1/quarantine", "staff-token-0123456789", 403, "forbidden"},
		{"DELETE", "/api/v1/quarantine/" + strings.Repeat("0", 64), "operators-token-0123456789", 404, "not_found"},
		{"DELETE", "/api/v1/quarantine/" + strings.Repeat("0", 64), "staff-token-0123456789", 403, "forbidden"},
		{"POST", "/api/v1/stats", "operators-token-0123456789", 405, "method_not_allowed"},
		{"GET", "/api/v1/nothing", "operators-token-0123456789", 404, "not_found"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, "http://"+k.admin+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.token != "" {
			req.Header.Set("Authorization", "Bearer "+test.token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Error struct{ Code, Message string }
			Sites []struct{ ID string }
		}
		err = json.NewDecoder(resp.Body).Decode(&body)
		_ = resp.Body.Close()
		if resp.StatusCode != test.status || err != nil || body.Error.Code != test.code || (test.code != "") != (body.Error.Message != "") {
			t.Errorf("%s %s with %q: %d %+v %v", test.method, test.path, test.token, resp.StatusCode, body, err)
		}
		if test.path == "/api/v1/stats" && test.status == 200 && fmt.Sprint(body.Sites) != "[{shop}]" {
			t.Errorf("%s sees the sites %v", test.token, body.Sites)
		}
	}
}
