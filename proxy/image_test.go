package proxy

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/origintest"
)

func field(name, value string) origintest.Field { return origintest.Field{Name: name, Value: value} }

func jpegAnswer(body []byte, fields ...origintest.Field) origintest.Answer {
	return origintest.Image("image/jpeg", body, fields...)
}

func TestFirstViewerGetsTheOriginalThenTheVariant(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg, field("ETag", `"v1"`), field("Last-Modified", "Tue, 03 Nov 2026 11:59:00 GMT")))

	r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{
		"Content-Type": "image/jpeg", "Cache-Control": "public, max-age=10", "X-Karui": "miss", "Vary": "Accept", "ETag": `"v1"`,
		"Last-Modified": "", "Age": "", "Content-Length": strconv.Itoa(len(jpg)), "X-Karui-Saved": "",
	})
	r.idle()
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{
		"Content-Type": "image/webp", "X-Karui": "hit", "Vary": "Accept", "Cache-Control": "public, max-age=86400",
		"ETag": tagOf(webp(jpg)), "X-Karui-Saved": strconv.Itoa(len(jpg) - len(webp(jpg))), "Last-Modified": "",
		"Content-Disposition": `inline; filename="a.webp"`, "X-Content-Type-Options": "nosniff",
		"Content-Length": strconv.Itoa(len(webp(jpg))),
	})
	r.want(r.get("/a.jpg", takesJPEG), 200, jpg, map[string]string{
		"X-Karui": "original", "Vary": "Accept", "ETag": `"v1"`, "Cache-Control": "public, max-age=86400", "Last-Modified": "",
	})
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
	if n := r.fake.calls.Load(); n != 1 {
		t.Errorf("%d conversions, want one", n)
	}
	if sent := r.origin.Requests("/a.jpg")[0].Header; sent.Get("Accept") != "" || sent.Get("Accept-Encoding") != "identity" || sent.Get("User-Agent") != "test" {
		t.Errorf("the shared fetch carries %v", sent)
	}
}

func TestViewerWaitsForTheVariant(t *testing.T) {
	r := newRig(t, waiting(limit))
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{
		"X-Karui": "wait", "Cache-Control": "public, max-age=86400", "ETag": tagOf(webp(jpg)), "Vary": "Accept",
	})
}

// Between a conversion and its entry in the cache a variant is answered from the
// flight.
func TestVariantThatIsNotStoredYet(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	// A second format keeps the flight under way after the first one is made.
	next := r.settings
	next.Sites[0].Config.Formats = []string{"avif", "webp"}
	r.proxy.Reload(next)
	hold := make(chan struct{})
	decide := func(source []byte, opt convert.Options) convert.Result {
		if opt.Formats[0] == header.AVIF {
			<-hold
		}
		return convert.Result{Body: webp(source), Format: opt.Formats[0], Decision: convert.Decide(convert.Converted, "")}
	}
	r.fake.decide.Store(&decide)
	r.get("/a.jpg", "Accept: image/webp")
	set := r.proxy.set.Load()
	h := r.proxy.join(t.Context(), set, set.router.fallback.fetch(targetOf("/a.jpg"), nil), []header.Format{header.AVIF})
	defer h.Close()
	for {
		a := r.get("/a.jpg", "Accept: image/webp")
		if a.Header.Get("Content-Type") == "image/webp" {
			r.want(a, 200, webp(jpg), map[string]string{"X-Karui": "hit"})
			break
		}
		r.want(a, 200, jpg, map[string]string{"X-Karui": "miss"})
	}
	close(hold)
	r.idle()
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
}

func TestViewerThatTakesNoVariantNeverWaits(t *testing.T) {
	r := newRig(t, waiting(limit))
	defer r.fake.gate()()
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	for _, accept := range []string{takesJPEG, "Accept: */*", "Accept: image/webp;q=0", "X-None: "} {
		r.want(r.get("/a.jpg", accept), 200, jpg, map[string]string{
			"X-Karui": "original", "Cache-Control": "public, max-age=86400", "Vary": "Accept",
		})
	}
}

func TestViewerWaitsNoLongerThanTheLimit(t *testing.T) {
	r := newRig(t, waiting(50*time.Millisecond))
	open := r.fake.gate()
	defer open()
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "miss", "Cache-Control": "public, max-age=10"})
	open()
	r.idle()
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
}

func TestKeptOriginalIsSettledForWhoeverWaits(t *testing.T) {
	r := newRig(t, waiting(limit))
	r.fake.keepAs(convert.NotSmaller)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	settled := map[string]string{"X-Karui": "original", "Cache-Control": "public, max-age=86400", "Vary": "Accept"}
	r.want(r.get("/a.jpg", takesWebP), 200, jpg, settled)
	r.idle()
	r.want(r.get("/a.jpg", takesWebP), 200, jpg, settled)
	if n := r.fake.calls.Load(); n != 1 {
		t.Errorf("%d conversions, want one: the marker holds", n)
	}
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
}

func TestHeaderThatRulesConversionOutAnswersAtOnce(t *testing.T) {
	r := newRig(t, waiting(limit), withSettings(func(s *Settings) { s.Convert.MaxPixels = 100 }))
	// The body stalls behind the header, so that only the header can have decided.
	stall := origintest.NewGate()
	jpg := photo(t, 400, 1)
	answer := jpegAnswer(jpg)
	answer.Stall, answer.StallAt = stall, 8192
	r.origin.Set("/a.jpg", answer)
	resp, body, _ := r.raw("GET /a.jpg HTTP/1.1\r\nHost: www.example.com\r\n" + takesWebP + "\r\nConnection: close\r\n\r\n")
	if resp.Header.Get("X-Karui") != "original" || resp.Header.Get("Cache-Control") != "public, max-age=86400" {
		t.Errorf("answered as %q for %q while the body was still arriving", resp.Header.Get("X-Karui"), resp.Header.Get("Cache-Control"))
	}
	stall.Open()
	got := make([]byte, len(jpg))
	if _, err := readFull(body, got); err != nil || !bytes.Equal(got, jpg) {
		t.Errorf("body: %v", err)
	}
	r.idle()
	if n := r.fake.calls.Load(); n != 0 {
		t.Errorf("%d conversions of a picture that its header rules out", n)
	}
	r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "original"})
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
}

func TestPassingTroubleLeavesNoMarker(t *testing.T) {
	for _, code := range []convert.Code{convert.Timeout, convert.QueueFull, convert.Unavailable} {
		t.Run(string(code), func(t *testing.T) {
			r := newRig(t, waiting(limit))
			r.fake.keepAs(code)
			jpg := photo(t, 64, 1)
			r.origin.Set("/a.jpg", jpegAnswer(jpg))
			short := map[string]string{"X-Karui": "miss", "Cache-Control": "public, max-age=10"}
			r.want(r.get("/a.jpg", takesWebP), 200, jpg, short)
			r.idle()
			// At once it is not worth another attempt, after the short lifetime it is.
			r.want(r.get("/a.jpg", takesWebP), 200, jpg, short)
			if n := r.fake.calls.Load(); n != 1 {
				t.Errorf("%d attempts at once, want one", n)
			}
			r.clock.passSeconds(11)
			r.fake.decide.Store(nil)
			r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "wait"})
			if n := r.origin.Count("/a.jpg"); n != 1 {
				t.Errorf("the origin was asked %d times, want once", n)
			}
		})
	}
}

func TestAnotherFormatIsMadeFromTheStoredOriginal(t *testing.T) {
	r := newRig(t, waiting(limit), withSite(func(s *SiteConfig) { s.Formats = []string{"avif", "webp"} }))
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg))
	r.want(r.get("/a.jpg", "Accept: image/webp"), 200, webp(jpg), map[string]string{"Content-Type": "image/webp"})
	r.idle()
	r.want(r.get("/a.jpg", "Accept: image/webp,image/avif"), 200, nil, map[string]string{"Content-Type": "image/avif", "X-Karui": "wait"})
	r.idle()
	r.want(r.get("/a.jpg", "Accept: image/avif"), 200, nil, map[string]string{
		"Content-Type": "image/avif", "X-Karui": "hit", "Content-Disposition": `inline; filename="a.avif"`,
	})
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
	if n := r.fake.calls.Load(); n != 2 {
		t.Errorf("%d conversions, want one for each format", n)
	}
}

func TestImageUnderAWrongType(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	tests := []struct {
		declared, want string
	}{
		{"text/plain", "image/jpeg"},
		{"image/png", "image/jpeg"},
		{"application/octet-stream", "image/jpeg"},
		{"", "image/jpeg"},
		{"image/jpeg; charset=binary", "image/jpeg; charset=binary"},
		{"image/jpg", "image/jpg"},
	}
	for i, test := range tests {
		path := fmt.Sprintf("/%d.jpg", i)
		answer := origintest.Answer{Status: 200, Body: jpg}
		if test.declared != "" {
			answer = answer.With("Content-Type", test.declared)
		}
		r.origin.Set(path, answer)
		r.want(r.get(path, takesJPEG), 200, jpg, map[string]string{
			"Content-Type": test.want, "X-Karui": "original", "Content-Security-Policy": "",
		})
	}
}

func TestNoImageUnderAnImagesName(t *testing.T) {
	html := []byte("<!DOCTYPE html><html><body>sorry</body></html>")
	tests := []struct {
		name, declared string
		body           []byte
		want           string
	}{
		{"html as html", "text/html; charset=utf-8", html, "text/html; charset=utf-8"},
		{"html as an image", "image/jpeg", html, "text/html; charset=utf-8"},
		{"json as an image", "image/png", []byte(` {"error": "quota"}`), "application/json"},
		{"json as json", "application/json", []byte(`{"error": "quota"}`), "application/json"},
		{"text without a type", "", []byte("sorry"), "text/plain; charset=utf-8"},
		{"pdf as an image", "image/jpeg", []byte("%PDF-1.7 ..."), "application/pdf"},
		{"unknown bytes as an image", "image/jpeg", []byte("\x00\x01\x02\x03\x04\x05"), "image/jpeg"},
		{"nothing as an image", "image/jpeg", []byte{}, "image/jpeg"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, waiting(limit))
			answer := origintest.Answer{Status: 200, Body: test.body, Header: []origintest.Field{field("Cache-Control", "max-age=86400")}}
			if test.declared != "" {
				answer = answer.With("Content-Type", test.declared)
			}
			r.origin.Set("/a.jpg", answer)
			want := map[string]string{
				"Content-Type": test.want, "Cache-Control": "public, max-age=10", "X-Karui": "bypass", "Vary": "Accept",
			}
			if test.want != test.declared {
				// What karui calls a page must not become one that runs scripts.
				want["Content-Security-Policy"], want["X-Content-Type-Options"] = sandbox, "nosniff"
			}
			r.want(r.get("/a.jpg", takesWebP), 200, test.body, want)
			r.idle()
			if r.fake.calls.Load() != 0 {
				t.Error("no image was given to a converter")
			}
		})
	}
}

func TestOtherImagesUnderAConvertibleName(t *testing.T) {
	r := newRig(t, waiting(limit))
	tests := map[string]struct {
		body string
		want string
	}{
		"/svg.png":  {`<svg xmlns="http://www.w3.org/2000/svg"/>`, "image/svg+xml"},
		"/webp.jpg": {"RIFF\x1a\x00\x00\x00WEBPVP8 \x0e\x00\x00\x00abcdefghijklmn", "image/webp"},
		"/bmp.gif":  {"BM\x1e\x00\x00\x00\x00\x00\x00\x00\x1a\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x01\x00\x01\x00\x18\x00\x00\x00\xff\x00", "image/bmp"},
	}
	for path, test := range tests {
		r.origin.Set(path, origintest.Image("image/jpeg", []byte(test.body)))
		settled := map[string]string{"Content-Type": test.want, "Cache-Control": "public, max-age=86400", "X-Karui": "original", "Vary": "Accept"}
		r.want(r.get(path, takesWebP), 200, []byte(test.body), settled)
		r.idle()
		r.want(r.get(path, takesWebP), 200, []byte(test.body), settled)
		if n := r.origin.Count(path); n != 1 {
			t.Errorf("%s: the origin was asked %d times, want once", path, n)
		}
	}
	if a := r.get("/svg.png"); a.Header.Get("Content-Security-Policy") != sandbox {
		t.Error("a drawing that karui gave its type back may run scripts")
	}
}

func TestConditions(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	date := "Tue, 03 Nov 2026 11:59:00 GMT"
	r.origin.Set("/a.jpg", jpegAnswer(jpg, field("ETag", `"v1"`), field("Last-Modified", date)))

	// While the variant is to come, the original is what would be answered.
	open := r.fake.gate()
	defer open()
	r.want(r.get("/a.jpg", takesWebP, `If-None-Match: "v1"`), 304, []byte{}, map[string]string{
		"ETag": `"v1"`, "Vary": "Accept", "Cache-Control": "public, max-age=10", "Content-Type": "", "Content-Length": "",
	})
	open()
	r.idle()
	tag := tagOf(webp(jpg))
	hit := map[string]string{"ETag": tag, "Vary": "Accept", "Cache-Control": "public, max-age=86400", "X-Karui": "hit"}
	for _, match := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		r.want(r.get("/a.jpg", takesWebP, "If-None-Match: "+match), 304, []byte{}, hit)
		r.want(r.do(http.MethodHead, "/a.jpg", takesWebP, "If-None-Match: "+match), 304, []byte{}, hit)
	}
	// The original's tag brings the variant, and the other way round.
	r.want(r.get("/a.jpg", takesWebP, `If-None-Match: "v1"`), 200, webp(jpg), hit)
	r.want(r.get("/a.jpg", takesJPEG, "If-None-Match: "+tag), 200, jpg, map[string]string{"ETag": `"v1"`})
	r.want(r.get("/a.jpg", takesJPEG, `If-None-Match: W/"v1"`), 304, []byte{}, map[string]string{"ETag": `"v1"`, "Vary": "Accept", "Cache-Control": "public, max-age=86400"})
	// A date says nothing about the format.
	r.want(r.get("/a.jpg", takesWebP, "If-Modified-Since: "+date), 200, webp(jpg), hit)
	for _, sent := range r.origin.Requests("/a.jpg") {
		for _, name := range []string{"If-None-Match", "If-Modified-Since", "Range", "If-Range"} {
			if sent.Header.Get(name) != "" {
				t.Errorf("the shared fetch carries the viewer's %s", name)
			}
		}
	}
}

func TestRanges(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg, field("ETag", `"v1"`)))
	r.warm("/a.jpg")
	variant := webp(jpg)
	tag := tagOf(variant)
	r.want(r.get("/a.jpg", takesWebP, "Range: bytes=4-9", "If-Range: "+tag), 206, variant[4:10], map[string]string{
		"Content-Range": fmt.Sprintf("bytes 4-9/%d", len(variant)), "Content-Length": "6", "ETag": tag, "Vary": "Accept", "Content-Type": "image/webp",
	})
	r.want(r.get("/a.jpg", takesJPEG, "Range: bytes=-5", `If-Range: "v1"`), 206, jpg[len(jpg)-5:], nil)
	whole := map[string]string{"Content-Range": "", "X-Karui": "hit"}
	for _, lines := range [][]string{
		{"Range: bytes=4-9"},
		{"Range: bytes=4-9", `If-Range: "v1"`},
		{"Range: bytes=4-9", "If-Range: W/" + tag},
		{"Range: bytes=4-9", "If-Range: Tue, 03 Nov 2026 11:59:00 GMT"},
		{"Range: bytes=1000000-", "If-Range: " + tag},
		{"Range: bytes=0-1,4-5", "If-Range: " + tag},
		{"Range: seconds=0-1", "If-Range: " + tag},
	} {
		r.want(r.get("/a.jpg", append(lines, takesWebP)...), 200, variant, whole)
	}
}

func TestHeadAnswersWhatGetWould(t *testing.T) {
	jpg := photo(t, 64, 1)
	answers := map[string]origintest.Answer{
		"/a.jpg":    jpegAnswer(jpg, field("ETag", `"v1"`)),
		"/gone.jpg": origintest.Text(404, "text/html", "<p>no</p>"),
		"/500.jpg":  origintest.Text(500, "text/plain", "oops"),
		"/html.jpg": origintest.Text(200, "text/html", "<p>no image</p>"),
		"/302.jpg":  origintest.Text(302, "text/plain", "elsewhere").With("Location", "/b.jpg"),
		"/x.css":    origintest.Text(200, "text/css", "a{}"),
	}
	for path, answer := range answers {
		for _, accept := range []string{takesWebP, takesJPEG} {
			t.Run(path[1:]+" "+accept, func(t *testing.T) {
				one, other := newRig(t), newRig(t)
				one.origin.Set(path, answer)
				other.origin.Set(path, answer)
				for look := range 2 {
					get, head := one.get(path, accept), other.do(http.MethodHead, path, accept)
					if get.StatusCode != head.StatusCode || len(head.body) != 0 {
						t.Errorf("look %d: GET %d, HEAD %d with %d bytes", look, get.StatusCode, head.StatusCode, len(head.body))
					}
					get.Header.Del("Date")
					head.Header.Del("Date")
					if fmt.Sprint(get.Header) != fmt.Sprint(head.Header) {
						t.Errorf("look %d:\nGET  %v\nHEAD %v", look, get.Header, head.Header)
					}
					one.idle()
					other.idle()
				}
			})
		}
	}
}

func TestCrossOriginFieldsStayOnVariants(t *testing.T) {
	r := newRig(t)
	kept := map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "X-A", "Cross-Origin-Resource-Policy": "cross-origin",
		"Timing-Allow-Origin": "*", "X-Robots-Tag": "noindex", "Link": `<https://www.example.com/a>; rel="canonical"`,
	}
	answer := jpegAnswer(photo(t, 64, 1), field("X-Powered-By", "PHP"), field("Content-MD5", "abc"))
	for name, value := range kept {
		answer = answer.With(name, value)
	}
	r.origin.Set("/a.jpg", answer)
	r.warm("/a.jpg")
	hit := r.get("/a.jpg", takesWebP)
	kept["X-Karui"], kept["X-Powered-By"], kept["Content-MD5"] = "hit", "", ""
	r.want(hit, 200, nil, kept)
	kept["X-Karui"], kept["X-Powered-By"], kept["Content-MD5"] = "original", "PHP", "abc"
	r.want(r.get("/a.jpg", takesJPEG), 200, nil, kept)
}

func TestOriginIsKeyedWhereTheAnswerVariesByIt(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.SetFunc("/a.jpg", func(q origintest.Request) origintest.Answer {
		a := jpegAnswer(jpg, field("Vary", "Origin"))
		if from := q.Header.Get("Origin"); from != "" {
			a = a.With("Access-Control-Allow-Origin", from)
		}
		return a
	})
	for _, from := range []string{"https://a.example", "https://b.example", ""} {
		lines := []string{takesWebP}
		if from != "" {
			lines = append(lines, "Origin: "+from)
		}
		for _, did := range []string{"miss", "hit"} {
			r.want(r.get("/a.jpg", lines...), 200, nil, map[string]string{
				"X-Karui": did, "Access-Control-Allow-Origin": from, "Vary": "Accept, Origin",
			})
			r.idle()
		}
	}
	if n := r.origin.Count("/a.jpg"); n != 3 {
		t.Errorf("the origin was asked %d times, want once for each Origin and once for none", n)
	}
}

func TestOriginSharesOneEntryWhereItMakesNoDifference(t *testing.T) {
	for name, allow := range map[string]string{"no cross-origin fields": "", "for everybody": "*"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			answer := jpegAnswer(photo(t, 64, 1))
			if allow != "" {
				answer = answer.With("Access-Control-Allow-Origin", allow)
			}
			r.origin.Set("/a.jpg", answer)
			r.warm("/a.jpg", "Origin: https://a.example")
			for _, lines := range [][]string{{"Origin: https://a.example"}, {"Origin: https://b.example"}, nil} {
				r.want(r.get("/a.jpg", append(lines, takesWebP)...), 200, nil, map[string]string{"X-Karui": "hit", "Access-Control-Allow-Origin": allow})
			}
			if n := r.origin.Count("/a.jpg"); n != 1 {
				t.Errorf("the origin was asked %d times, want once", n)
			}
		})
	}
}

// An origin may answer by Origin and say so only when asked with one.
func TestOriginThatStaysSilentUnlessAsked(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.SetFunc("/a.jpg", func(q origintest.Request) origintest.Answer {
		if from := q.Header.Get("Origin"); from != "" {
			return jpegAnswer(jpg, field("Vary", "Origin"), field("Access-Control-Allow-Origin", from))
		}
		return jpegAnswer(jpg)
	})
	r.warm("/a.jpg")
	r.want(r.get("/a.jpg", takesWebP, "Origin: https://a.example"), 200, nil, map[string]string{"Access-Control-Allow-Origin": "https://a.example"})
}

func TestDebugHeadersOff(t *testing.T) {
	r := newRig(t, withSettings(func(s *Settings) { s.Edge.DebugHeaders = false }))
	r.origin.Set("/a.jpg", jpegAnswer(photo(t, 64, 1), field("X-Karui", "origin's own")))
	r.warm("/a.jpg")
	r.want(r.get("/a.jpg", takesWebP), 200, nil, map[string]string{"X-Karui": "", "X-Karui-Saved": "", "Content-Type": "image/webp"})
	r.want(r.get("/a.jpg", takesJPEG), 200, nil, map[string]string{"X-Karui": "", "Content-Type": "image/jpeg"})
}

func TestLifetimesOfTheOrigin(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg, field("Cache-Control", "max-age=100"), field("Age", "40")))
	r.origin.Set("/b.jpg", jpegAnswer(jpg, field("Cache-Control", "max-age=4")))
	r.warm("/a.jpg")
	r.clock.passSeconds(20)
	r.want(r.get("/a.jpg", takesWebP), 200, nil, map[string]string{"Cache-Control": "public, max-age=40", "Age": "", "Expires": ""})
	r.want(r.get("/b.jpg", takesWebP), 200, nil, map[string]string{"Cache-Control": "public, max-age=4", "X-Karui": "miss"})
}

func TestVaryOnEveryAnswerForAConvertiblePath(t *testing.T) {
	r := newRig(t, withSettings(func(s *Settings) { s.Edge.Secrets = []string{"secret"} }))
	r.origin.Set("/a.jpg", jpegAnswer(photo(t, 64, 1)))
	r.origin.Set("/500.jpg", origintest.Text(500, "text/plain", "oops"))
	r.origin.Set("/302.jpg", origintest.Text(302, "text/plain", "").With("Location", "/"))
	for _, test := range []struct {
		target string
		status int
		lines  []string
	}{
		{"/a.jpg", 200, []string{"X-Karui-Key: secret"}},
		{"/a.jpg", 304, []string{"X-Karui-Key: secret", "If-None-Match: *"}},
		{"/a.jpg", 200, []string{"X-Karui-Key: secret", "Cookie: a=b"}},
		{"/404.jpg", 404, []string{"X-Karui-Key: secret"}},
		{"/500.jpg", 503, []string{"X-Karui-Key: secret"}},
		{"/302.jpg", 302, []string{"X-Karui-Key: secret"}},
		{"/a.jpg", 503, nil},
	} {
		a := r.get(test.target, append(test.lines, takesWebP)...)
		if a.StatusCode != test.status || !strings.HasPrefix(a.Header.Get("Vary"), "Accept") {
			t.Errorf("%s %v: status %d, Vary %q", test.target, test.lines, a.StatusCode, a.Header.Get("Vary"))
		}
	}
}
