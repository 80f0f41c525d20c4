package proxy

import (
	"testing"
	"time"

	"karui/internal/origintest"
)

// validated is a JPEG that the origin answers with 304 while its tag is the same.
func validated(body []byte, tag string, fields ...origintest.Field) origintest.Answer {
	a := jpegAnswer(body, append(fields, field("ETag", tag))...)
	a.Validate = true
	return a
}

func TestStaleVariantIsAnsweredAndRefreshed(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", validated(jpg, `"v1"`, field("Cache-Control", "max-age=60")))
	r.warm("/a.jpg")
	r.clock.passSeconds(61)
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "stale", "Cache-Control": "public, max-age=10", "Vary": "Accept"})
	r.idle()
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=60"})
	r.want(r.get("/a.jpg", takesJPEG), 200, jpg, map[string]string{"X-Karui": "original", "Cache-Control": "public, max-age=60"})
	requests := r.origin.Requests("/a.jpg")
	if len(requests) != 2 || requests[1].Header.Get("If-None-Match") != `"v1"` {
		t.Errorf("%d requests, the last one with If-None-Match %q; want two, with the tag", len(requests), requests[len(requests)-1].Header.Get("If-None-Match"))
	}
	if n := r.fake.calls.Load(); n != 1 {
		t.Errorf("%d conversions, want one", n)
	}
}

func TestRefreshByDate(t *testing.T) {
	r := newRig(t)
	date := "Tue, 03 Nov 2026 11:59:00 GMT"
	answer := jpegAnswer(photo(t, 64, 1), field("Last-Modified", date), field("Cache-Control", "max-age=60"))
	answer.Validate = true
	r.origin.Set("/a.jpg", answer)
	r.warm("/a.jpg")
	r.clock.passSeconds(61)
	r.warm("/a.jpg")
	r.want(r.get("/a.jpg", takesWebP), 200, nil, map[string]string{"X-Karui": "hit"})
	if got := r.origin.Requests("/a.jpg")[1].Header.Get("If-Modified-Since"); got != date {
		t.Errorf("If-Modified-Since %q, want %q", got, date)
	}
}

func TestStaleMarkerIsRefreshed(t *testing.T) {
	r := newRig(t)
	r.fake.keepAs("not_smaller")
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", validated(jpg, `"v1"`, field("Cache-Control", "max-age=60")))
	r.warm("/a.jpg")
	r.clock.passSeconds(61)
	r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "stale", "Cache-Control": "public, max-age=10"})
	r.idle()
	r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "original", "Cache-Control": "public, max-age=60"})
	if n := r.fake.calls.Load(); n != 1 {
		t.Errorf("%d conversions, want one", n)
	}
}

func TestChangedPictureIsConvertedAnew(t *testing.T) {
	r := newRig(t)
	before, after := photo(t, 64, 1), photo(t, 64, 2)
	r.origin.Set("/a.jpg", validated(before, `"v1"`, field("Cache-Control", "max-age=60")))
	r.warm("/a.jpg")
	r.origin.Set("/a.jpg", validated(after, `"v2"`, field("Cache-Control", "max-age=60")))
	r.clock.passSeconds(61)
	r.want(r.get("/a.jpg", takesWebP), 200, webp(before), map[string]string{"X-Karui": "stale"})
	r.idle()
	r.want(r.get("/a.jpg", takesWebP), 200, webp(after), map[string]string{"X-Karui": "hit"})
	r.want(r.get("/a.jpg", takesJPEG), 200, after, map[string]string{"X-Karui": "original", "ETag": `"v2"`})
}

// Without validators the picture comes whole; the same bytes are not converted again.
func TestSamePictureAgainIsNotConvertedAgain(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", jpegAnswer(jpg, field("Cache-Control", "max-age=60")))
	r.warm("/a.jpg")
	r.clock.passSeconds(61)
	r.warm("/a.jpg")
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=60"})
	if n := r.fake.calls.Load(); n != 1 {
		t.Errorf("%d conversions, want one", n)
	}
	if n := r.origin.Count("/a.jpg"); n != 2 {
		t.Errorf("the origin was asked %d times, want twice", n)
	}
}

// When the new picture cannot be converted just now, the old one must not be
// answered in its stead.
func TestChangedPictureThatFindsNoWorker(t *testing.T) {
	r := newRig(t)
	before, after := photo(t, 64, 1), photo(t, 64, 2)
	r.origin.Set("/a.jpg", validated(before, `"v1"`, field("Cache-Control", "max-age=60")))
	r.warm("/a.jpg")
	r.origin.Set("/a.jpg", validated(after, `"v2"`, field("Cache-Control", "max-age=60")))
	r.fake.keepAs("queue_full")
	r.clock.passSeconds(61)
	r.warm("/a.jpg")
	r.want(r.get("/a.jpg", takesWebP), 200, after, map[string]string{"X-Karui": "miss", "Cache-Control": "public, max-age=10"})
}

// An origin that was reached and has something else under the name has the last
// word: its other viewers see the same.
func TestRefreshThatBringsNoPicture(t *testing.T) {
	const page = "<!DOCTYPE html><title>Sorry</title>"
	for name, now := range map[string]origintest.Answer{
		"301":            origintest.Text(301, "text/plain", "no more", field("Location", "/b.jpg")),
		"302":            origintest.Text(302, "text/plain", "no more", field("Location", "/sorry.html")),
		"401":            origintest.Text(401, "text/plain", "no more"),
		"403":            origintest.Text(403, "text/plain", "no more"),
		"404":            origintest.Text(404, "text/plain", "no more"),
		"410":            origintest.Text(410, "text/plain", "no more"),
		"451":            origintest.Text(451, "text/plain", "no more"),
		"html":           origintest.Text(200, "text/html", page),
		"html as jpeg":   origintest.Text(200, "image/jpeg", page),
		"private cookie": origintest.Text(302, "text/plain", "no more", field("Set-Cookie", "a=b")),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			jpg := photo(t, 64, 1)
			before := validated(jpg, `"v1"`, field("Cache-Control", "max-age=60"))
			r.origin.Set("/a.jpg", before)
			r.warm("/a.jpg")
			r.origin.Set("/a.jpg", now)
			r.clock.passSeconds(61)
			r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "stale"})
			r.idle()
			for _, accept := range []string{takesWebP, takesJPEG} {
				r.want(r.get("/a.jpg", accept), now.Status, now.Body, map[string]string{"X-Karui": "bypass"})
			}
			r.idle() // who joins the last fetch gets its answer
			// It was a mistake, or the picture is back.
			r.origin.Set("/a.jpg", before)
			r.clock.passSeconds(11)
			r.warm("/a.jpg")
			r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
		})
	}
}

func TestStaleGoesOnWhileTheOriginIsAway(t *testing.T) {
	for name, away := range map[string]func(*rig){
		"refused": func(r *rig) { r.origin.Refuse() },
		"500":     func(r *rig) { r.origin.Set("/a.jpg", origintest.Text(500, "text/plain", "")) },
		"429":     func(r *rig) { r.origin.Set("/a.jpg", origintest.Text(429, "text/plain", "")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			jpg := photo(t, 64, 1)
			answer := validated(jpg, `"v1"`, field("Cache-Control", "max-age=60"))
			r.origin.Set("/a.jpg", answer)
			r.warm("/a.jpg")
			away(r)
			stale := map[string]string{"X-Karui": "stale", "Cache-Control": "public, max-age=10"}
			for _, hours := range []float64{1, 100} {
				r.clock.passSeconds(hours * 3600)
				for range 3 {
					r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), stale)
					// A refresh that ends between another viewer's look and start may be
					// begun twice, which does no harm and could be counted here.
					r.idle()
					r.want(r.get("/a.jpg", takesJPEG), 200, jpg, stale)
					r.idle()
				}
			}
			if n := r.origin.Count("/a.jpg"); n > 3 {
				t.Errorf("the origin was asked %d times: an origin in trouble is asked once in a short lifetime", n)
			}
			// Beyond ttl.stale nothing is answered from the cache any more.
			r.clock.passSeconds(70 * 3600)
			if a := r.get("/a.jpg", takesWebP); a.StatusCode == 200 {
				t.Errorf("%s after ttl.stale", a.Header.Get("X-Karui"))
			}
			r.idle() // whoever comes before the end of that fetch gets its answer, too
			if name == "refused" {
				r.origin.Resume()
			}
			r.origin.Set("/a.jpg", answer)
			r.clock.passSeconds(11)
			r.warm("/a.jpg")
			r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
		})
	}
}

func TestOneRefreshForManyViewers(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", validated(jpg, `"v1"`, field("Cache-Control", "max-age=60")))
	r.warm("/a.jpg")
	hold := origintest.NewGate()
	slow := validated(jpg, `"v1"`, field("Cache-Control", "max-age=60"))
	slow.Hold = hold
	r.origin.Set("/a.jpg", slow)
	r.clock.passSeconds(61)
	for range 20 {
		r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "stale"})
	}
	hold.Open()
	r.idle()
	if n := r.origin.Count("/a.jpg"); n != 2 {
		t.Errorf("the origin was asked %d times, want once more", n)
	}
}

func TestAnswersThatMustBeAskedFor(t *testing.T) {
	for name, test := range map[string]struct {
		control string
		after   time.Duration
	}{
		"no-cache":        {"no-cache", 0},
		"must-revalidate": {"max-age=60, must-revalidate", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			jpg := photo(t, 64, 1)
			r.origin.Set("/a.jpg", validated(jpg, `"v1"`, field("Cache-Control", test.control)))
			r.warm("/a.jpg")
			r.clock.pass(test.after)
			r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
			if n := r.origin.Count("/a.jpg"); n != 2 {
				t.Errorf("the origin was asked %d times, want twice: once for each viewer", n)
			}
			r.clock.pass(test.after)
			r.want(r.get("/a.jpg", takesJPEG), 200, jpg, map[string]string{"X-Karui": "original"})
			if n := r.origin.Count("/a.jpg"); n != 3 {
				t.Errorf("the origin was asked %d times, want three times", n)
			}
			r.clock.pass(test.after)
			r.origin.Refuse()
			r.want(r.get("/a.jpg", takesWebP), 503, nil, unavailable("origin"))
			r.want(r.get("/a.jpg", takesJPEG), 503, nil, unavailable("origin"))
			// It was not lost, either.
			r.origin.Resume()
			r.clock.passSeconds(11)
			r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), map[string]string{"X-Karui": "hit"})
		})
	}
}

func TestMustRevalidateIsFreshWhileItLives(t *testing.T) {
	r := newRig(t)
	r.origin.Set("/a.jpg", validated(photo(t, 64, 1), `"v1"`, field("Cache-Control", "max-age=60, must-revalidate")))
	r.warm("/a.jpg")
	r.want(r.get("/a.jpg", takesWebP), 200, nil, map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=60"})
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
}

func TestOriginsLifetimesIgnored(t *testing.T) {
	r := newRig(t, withSettings(func(s *Settings) { s.TTL.RespectOrigin = false }))
	r.origin.Set("/a.jpg", validated(photo(t, 64, 1), `"v1"`, field("Cache-Control", "max-age=0, no-cache")))
	r.warm("/a.jpg")
	r.clock.passSeconds(3600)
	r.want(r.get("/a.jpg", takesWebP), 200, nil, map[string]string{"X-Karui": "hit", "Cache-Control": "public, max-age=82800"})
	if n := r.origin.Count("/a.jpg"); n != 1 {
		t.Errorf("the origin was asked %d times, want once", n)
	}
}

func Test304BringsNewFieldsAndLife(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 64, 1)
	r.origin.Set("/a.jpg", validated(jpg, `"v1"`, field("Cache-Control", "max-age=60"), field("Link", "<old>")))
	r.warm("/a.jpg")
	r.origin.Set("/a.jpg", validated(jpg, `"v1"`, field("Cache-Control", "max-age=600"), field("Link", "<new>"), field("Access-Control-Allow-Origin", "*")))
	r.clock.passSeconds(61)
	r.warm("/a.jpg")
	fields := map[string]string{"Cache-Control": "public, max-age=600", "Link": "<new>", "Access-Control-Allow-Origin": "*", "Vary": "Accept"}
	r.want(r.get("/a.jpg", takesWebP), 200, webp(jpg), fields)
	r.want(r.get("/a.jpg", takesJPEG), 200, jpg, fields)
}

func TestAnswerThatBecomesPrivate(t *testing.T) {
	for name, status := range map[string]bool{"200": false, "304": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			jpg := photo(t, 64, 1)
			r.origin.Set("/a.jpg", validated(jpg, `"v1"`, field("Cache-Control", "max-age=60")))
			r.warm("/a.jpg")
			private := validated(jpg, `"v1"`, field("Cache-Control", "private, max-age=60"))
			private.Validate = status
			r.origin.Set("/a.jpg", private)
			r.clock.passSeconds(61)
			r.get("/a.jpg", takesWebP)
			r.idle()
			r.want(r.get("/a.jpg", takesWebP), 200, jpg, map[string]string{"X-Karui": "bypass", "Cache-Control": "private, max-age=60"})
		})
	}
}
