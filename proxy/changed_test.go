package proxy

import (
	"bytes"
	"cmp"
	"net/http"
	"testing"

	"karui/convert"
	"karui/convert/header"
	"karui/internal/origintest"
	"karui/proxy/rules"
)

// fetchOf gives the shared fetch of a path for a viewer with these headers.
func (r *rig) fetchOf(path string, viewer http.Header) fetch {
	r.tb.Helper()
	return r.proxy.set.Load().sites[0].fetch(targetOf(path), viewer)
}

// lose takes an entry out of the cache, as an eviction or a lost volume does.
func (r *rig) lose(path, form string) {
	r.tb.Helper()
	key := r.fetchOf(path, http.Header{}).form(form)
	e, ok := r.cache.Get(key)
	if !ok {
		r.tb.Fatalf("%s of %s is not stored", form, path)
	}
	closeEntry(e)
	if err := r.cache.Delete(key, e.Meta.FetchStart); err != nil {
		r.tb.Fatal(err)
	}
}

func newTwoFormats(t *testing.T) (*rig, *several) {
	t.Helper()
	converter := newSeveral(func(header.Format, []byte) convert.Code { return convert.Converted })
	return newRig(t, withFormats("avif", "webp"), withConverter(converter)), converter
}

// What an origin that was reached has under a name replaces all that is known of
// the name, whichever entries of it are still stored.
func TestOriginHasTheLastWordWithoutTheOriginal(t *testing.T) {
	const page = "<!DOCTYPE html><title>Sorry</title>"
	picture := photo(t, 64, 2)
	for name, now := range map[string]origintest.Answer{
		"302":            origintest.Text(302, "text/plain", "no more", field("Location", "/sorry.html")),
		"403":            origintest.Text(403, "text/plain", "no more"),
		"404":            origintest.Text(404, "text/plain", "no more"),
		"404 unshared":   origintest.Text(404, "text/plain", "no more", field("Set-Cookie", "a=b")),
		"410":            origintest.Text(410, "text/plain", "no more"),
		"html":           origintest.Text(200, "text/html", page),
		"html as jpeg":   origintest.Text(200, "image/jpeg", page),
		"200 unshared":   jpegAnswer(picture, field("Set-Cookie", "a=b")),
		"private answer": jpegAnswer(picture, field("Cache-Control", "private")),
	} {
		t.Run(name, func(t *testing.T) {
			for _, lost := range []string{formOriginal, "avif", ""} {
				r, _ := newTwoFormats(t)
				jpg := photo(t, 64, 1)
				r.origin.Set("/a.jpg", jpegAnswer(jpg, field("Cache-Control", "max-age=60")))
				for _, format := range []header.Format{header.AVIF, header.WebP} {
					r.get("/a.jpg", accepting(format))
					r.idle()
				}
				if lost != "" {
					r.lose("/a.jpg", lost)
				}
				r.origin.Set("/a.jpg", now)
				r.clock.passSeconds(61)
				r.want(r.get("/a.jpg", accepting(header.WebP)), 200, made(header.WebP, jpg), map[string]string{"X-Karui": "stale"})
				r.idle()
				for _, accept := range []string{accepting(header.AVIF), accepting(header.WebP), accepting(header.AVIF, header.WebP), takesJPEG} {
					r.want(r.get("/a.jpg", accept), cmp.Or(now.Status, http.StatusOK), now.Body, map[string]string{"X-Karui": "bypass"})
					r.idle()
				}
				if t.Failed() {
					t.Fatalf("with %q lost", lost)
				}
			}
		})
	}
}

// A viewer who finds nothing that it takes learns of the new picture, and from then
// on nobody gets the old one.
func TestChangedPictureReplacesWhatIsLeft(t *testing.T) {
	r, _ := newTwoFormats(t)
	before, after := photo(t, 64, 1), photo(t, 64, 2)
	r.origin.Set("/a.jpg", jpegAnswer(before))
	r.get("/a.jpg", accepting(header.AVIF))
	r.idle()
	r.lose("/a.jpg", formOriginal)
	r.origin.Set("/a.jpg", jpegAnswer(after))
	r.get("/a.jpg", accepting(header.WebP))
	r.idle()
	r.get("/a.jpg", accepting(header.AVIF))
	r.idle()
	r.want(r.get("/a.jpg", accepting(header.AVIF)), 200, made(header.AVIF, after), map[string]string{"X-Karui": "hit"})
	r.want(r.get("/a.jpg", accepting(header.WebP)), 200, made(header.WebP, after), map[string]string{"X-Karui": "hit"})
	r.want(r.get("/a.jpg", takesJPEG), 200, after, map[string]string{"X-Karui": "original"})
}

// The same with every entry in place: the viewer's Origin makes a fetch of its own,
// whose answer turns out to be everybody's.
func TestChangedPictureThatAnOriginFindsFirst(t *testing.T) {
	r, _ := newTwoFormats(t)
	before, after := photo(t, 64, 1), photo(t, 64, 2)
	r.origin.Set("/a.jpg", validated(before, `"v1"`))
	r.get("/a.jpg", accepting(header.AVIF))
	r.idle()
	r.origin.Set("/a.jpg", validated(after, `"v2"`))
	r.get("/a.jpg", accepting(header.WebP), "Origin: https://a.example")
	r.idle()
	r.get("/a.jpg", accepting(header.AVIF))
	r.idle()
	r.want(r.get("/a.jpg", accepting(header.AVIF)), 200, made(header.AVIF, after), map[string]string{"X-Karui": "hit"})
	r.want(r.get("/a.jpg", takesJPEG), 200, after, map[string]string{"X-Karui": "original"})
}

// An answer that was kept by Origin and no longer differs by it leaves nothing of the
// old picture under the viewer's Origin.
func TestChangedPictureThatNoLongerVariesByOrigin(t *testing.T) {
	r, _ := newTwoFormats(t)
	const from = "Origin: https://a.example"
	before, after := photo(t, 64, 1), photo(t, 64, 2)
	r.origin.Set("/a.jpg", jpegAnswer(before, field("Vary", "Origin"), field("Access-Control-Allow-Origin", "https://a.example")))
	r.get("/a.jpg", accepting(header.AVIF), from)
	r.idle()
	r.origin.Set("/a.jpg", jpegAnswer(after))
	r.clock.passSeconds(25 * 3600)
	r.get("/a.jpg", accepting(header.WebP), from)
	r.idle()
	r.lose("/a.jpg", formOriginal)
	if a := r.get("/a.jpg", accepting(header.AVIF), from); bytes.Equal(a.body, made(header.AVIF, before)) {
		t.Errorf("the old picture (%s)", a.Header.Get("X-Karui"))
	}
	r.idle()
	r.want(r.get("/a.jpg", accepting(header.AVIF), from), 200, made(header.AVIF, after), map[string]string{"X-Karui": "hit"})
}

// The same bytes again are not converted again, whether their original is still
// stored or not, and whoever asks.
func TestSamePictureIsConvertedOnce(t *testing.T) {
	for name, again := range map[string]func(*rig){
		"original lost": func(r *rig) { r.lose("/a.jpg", formOriginal) },
		"Origin":        func(r *rig) { r.get("/a.jpg", accepting(header.WebP), "Origin: https://a.example") },
	} {
		t.Run(name, func(t *testing.T) {
			r, converter := newTwoFormats(t)
			jpg := photo(t, 64, 1)
			r.origin.Set("/a.jpg", jpegAnswer(jpg, field("Cache-Control", "max-age=60")))
			for range 4 {
				r.get("/a.jpg", accepting(header.AVIF))
				r.idle()
				r.get("/a.jpg", accepting(header.WebP))
				r.idle()
				again(r)
				r.idle()
				r.clock.passSeconds(61)
			}
			r.get("/a.jpg", accepting(header.WebP))
			r.idle()
			r.want(r.get("/a.jpg", accepting(header.AVIF)), 200, made(header.AVIF, jpg), map[string]string{"X-Karui": "hit", "Cache-Control": "*"})
			if a, w := converter.count(header.AVIF, jpg), converter.count(header.WebP, jpg); a != 1 || w != 1 {
				t.Errorf("%d and %d conversions, want one of each format", a, w)
			}
		})
	}
}

// Where a removal was lost, what stands in the original's place decides about what
// is stale, and a variant of a later picture about the original.
func TestEntriesOfTwoPictures(t *testing.T) {
	before, after := photo(t, 64, 1), photo(t, 64, 2)
	stored := func(r *rig, form string) (found, fetch) {
		f := r.fetchOf("/a.jpg", http.Header{})
		e, ok := r.proxy.find(f.form(form))
		if !ok {
			t.Fatalf("%s is not stored", form)
		}
		closeEntry(e.Entry)
		return e, f
	}
	t.Run("old variant", func(t *testing.T) {
		r, _ := newTwoFormats(t)
		r.origin.Set("/a.jpg", jpegAnswer(before, field("Cache-Control", "max-age=60")))
		r.get("/a.jpg", accepting(header.AVIF))
		r.idle()
		old, f := stored(r, "avif")
		r.origin.Set("/a.jpg", jpegAnswer(after, field("Cache-Control", "max-age=60")))
		r.clock.passSeconds(61)
		r.get("/a.jpg", takesJPEG)
		r.idle()
		r.want(r.get("/a.jpg", takesJPEG), 200, after, nil)
		now, _ := stored(r, formOriginal)
		r.proxy.put(f.form("avif"), now.Meta.FetchStart, old.Meta.Expires, old.record, made(header.AVIF, before))
		r.want(r.get("/a.jpg", accepting(header.AVIF)), 200, after, map[string]string{"X-Karui": "miss"})
		r.idle()
		r.want(r.get("/a.jpg", accepting(header.AVIF)), 200, made(header.AVIF, after), map[string]string{"X-Karui": "hit"})
	})
	t.Run("new variant", func(t *testing.T) {
		r, _ := newTwoFormats(t)
		r.origin.Set("/a.jpg", jpegAnswer(before))
		r.get("/a.jpg", takesJPEG)
		r.idle()
		r.origin.Set("/a.jpg", jpegAnswer(after))
		old, f := stored(r, formOriginal)
		v := *old.record
		v.kind, v.source, v.digest = variant, r.clock.now().UnixNano(), rules.DigestOf(after)
		r.proxy.put(f.form("avif"), r.clock.now(), old.Meta.Expires, &v, made(header.AVIF, after))
		r.get("/a.jpg", accepting(header.WebP))
		r.idle()
		r.want(r.get("/a.jpg", accepting(header.WebP)), 200, made(header.WebP, after), map[string]string{"X-Karui": "hit"})
		r.want(r.get("/a.jpg", accepting(header.AVIF)), 200, made(header.AVIF, after), map[string]string{"X-Karui": "hit"})
		r.want(r.get("/a.jpg", takesJPEG), 200, after, map[string]string{"X-Karui": "original"})
	})
	t.Run("one picture by two fetches", func(t *testing.T) {
		r, converter := newTwoFormats(t)
		r.origin.Set("/a.jpg", jpegAnswer(before, field("Cache-Control", "max-age=60")))
		r.get("/a.jpg", accepting(header.AVIF))
		r.idle()
		e, f := stored(r, "avif")
		other := *e.record
		other.source++
		r.proxy.put(f.form("avif"), e.Meta.FetchStart, e.Meta.Expires, &other, made(header.AVIF, before))
		r.clock.passSeconds(61)
		r.want(r.get("/a.jpg", accepting(header.AVIF)), 200, made(header.AVIF, before), map[string]string{"X-Karui": "stale"})
		r.idle()
		r.want(r.get("/a.jpg", accepting(header.AVIF)), 200, made(header.AVIF, before), map[string]string{"X-Karui": "hit"})
		if n := converter.count(header.AVIF, before); n != 1 {
			t.Errorf("%d conversions, want one", n)
		}
	})
}
