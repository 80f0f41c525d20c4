package proxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"karui/cache"
	"karui/convert"
	"karui/internal/origintest"
)

// numbered is a picture that says which one it is.
func numbered(tb testing.TB, n int64) []byte {
	tb.Helper()
	return append(photo(tb, 16, 1), fmt.Sprintf(" picture %d.", n)...)
}

// numberOf reads it back, from the picture or from the variant that copying makes.
func numberOf(b []byte) (n int64, ok bool) {
	at := bytes.LastIndex(b, []byte(" picture "))
	if at < 0 {
		return 0, false
	}
	_, err := fmt.Sscanf(string(b[at:]), " picture %d.", &n)
	return n, err == nil
}

// TestPurgesRace has viewers ask over HTTP for pictures that change, while each change
// is purged: whoever asks after a purge gets that picture or a later one, in every form.
func TestPurgesRace(t *testing.T) {
	r := newRig(t, withSettings(func(s *Settings) {
		s.FirstResponse.Wait = limit / 2
		s.TTL.Short = 1
		s.Stress.Latency = limit
	}), withFormats("avif", "webp"))
	copying := func(source []byte, opt convert.Options) convert.Result {
		return convert.Result{
			Body: []byte("RIFF" + string(source[bytes.LastIndex(source, []byte(" picture ")):])), Format: opt.Formats[0],
			Decision: convert.Decide(convert.Converted, ""),
		}
	}
	r.fake.decide.Store(&copying)
	const folders, viewers, changes = 4, 8, 60
	var shown, purged [folders]atomic.Int64 // the number that the origin has, and that of the last purge
	pictures := sync.Map{}
	for i := range folders {
		r.origin.SetFunc(fmt.Sprintf("/%d/a.jpg", i), func(origintest.Request) origintest.Answer {
			n := shown[i].Load()
			b, found := pictures.Load(n)
			if !found {
				b, _ = pictures.LoadOrStore(n, numbered(t, n))
			}
			fields := []origintest.Field{field("Etag", `"always"`)}
			if n%2 == 0 {
				fields = append(fields, field("Cache-Control", "max-age=0"))
			}
			return jpegAnswer(b.([]byte), fields...) //nolint:errcheck // nothing else is stored
		})
	}
	var going sync.WaitGroup
	var over atomic.Bool
	for v := range viewers {
		going.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(v)))
			for !over.Load() && !t.Failed() {
				i := random.IntN(folders)
				least := purged[i].Load()
				accept := []string{takesWebP, takesJPEG, "Accept: image/webp"}[random.IntN(3)]
				a := r.get(fmt.Sprintf("/%d/a.jpg", i), accept)
				n, ok := numberOf(a.body)
				if a.StatusCode != http.StatusOK || !ok || n < least {
					t.Errorf("after the purge of picture %d a viewer got %d, picture %d (%v), X-Karui %s",
						least, a.StatusCode, n, ok, a.Header.Get(didHeader))
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(7, 7))
	for range changes {
		i := random.IntN(folders)
		n := shown[i].Add(1)
		prefix := []string{fmt.Sprintf("/%d/", i), fmt.Sprintf("/%d/a.jpg", i), fmt.Sprintf("/%%3%d", i)}[random.IntN(3)]
		if _, err := r.proxy.Purge(t.Context(), "shop", []string{prefix}); err != nil {
			t.Error(err)
		}
		purged[i].Store(n)
		for range random.IntN(8) { // so that something is under way at the next one
			r.get(fmt.Sprintf("/%d/a.jpg", i), takesWebP)
		}
		if random.IntN(3) == 0 {
			r.clock.passSeconds(3) // or stored
		}
	}
	over.Store(true)
	going.Wait()
	r.idle()
	for i := range folders {
		for _, accept := range []string{takesWebP, takesJPEG} {
			if n, _ := numberOf(r.get(fmt.Sprintf("/%d/a.jpg", i), accept).body); n != shown[i].Load() {
				t.Errorf("in the end picture %d of %d", n, shown[i].Load())
			}
		}
	}
	if _, err := r.proxy.Purge(t.Context(), "nobody", []string{"/"}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a site that there is not: %v", err)
	}
}

// What takes so long that a purge may be forgotten meanwhile is not stored.
func TestOverdueIsNotStored(t *testing.T) {
	r := newRig(t)
	r.origin.Set("/a.jpg", jpegAnswer(photo(t, 16, 1)))
	open := r.fake.gate()
	r.get("/a.jpg", takesWebP)
	r.clock.pass(cache.PurgeHold)
	open()
	r.idle()
	if e, ok := r.cache.Get(r.fetchOf("/a.jpg", http.Header{}).form("webp")); ok {
		closeEntry(e)
		t.Error("a variant is stored hours after its original was fetched")
	}
}

// A purge lets go of what failed before it: the next viewer has it tried again.
func TestPurgeEndsRests(t *testing.T) {
	r := newRig(t)
	purged, other := r.fetchOf("/a/1.jpg", http.Header{}), r.fetchOf("/b/1.jpg", http.Header{})
	for _, f := range []fetch{purged, other} {
		r.proxy.resting.rest(f.key, limit)
		r.proxy.resting.rest(f.form("webp"), limit)
	}
	if _, err := r.proxy.Purge(t.Context(), "shop", []string{"/a/"}); err != nil {
		t.Fatal(err)
	}
	if r.proxy.resting.rests(purged.key) || r.proxy.resting.rests(purged.form("webp")) {
		t.Error("what was purged still rests")
	}
	if !r.proxy.resting.rests(other.key) || !r.proxy.resting.rests(other.form("webp")) {
		t.Error("what was not purged is tried again")
	}
}

// What began before a purge and whose head leaves after it goes to its viewer, and no
// edge may keep it: not a picture, nor what passes through with the origin's own fields.
func TestNoEdgeKeepsWhatAPurgeOvertook(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/a/1.jpg", "/a/1.css", "/b/1.css", "/a/404.jpg"} {
		came, gate := make(chan struct{}), make(chan struct{})
		first := sync.OnceFunc(func() { close(came) })
		r.origin.SetFunc(path, func(origintest.Request) origintest.Answer {
			first()
			<-gate
			fields := []origintest.Field{field("Cache-Control", "max-age=86400"), field("Expires", "Thu, 01 Dec 2033 16:00:00 GMT"), field("CDN-Cache-Control", "max-age=9")}
			switch {
			case strings.HasSuffix(path, "404.jpg"):
				return origintest.Text(404, "text/plain", "no", fields...)
			case strings.HasSuffix(path, ".css"):
				return origintest.Image("text/css", []byte("a{}"), fields...)
			}
			return jpegAnswer(photo(t, 16, 1), fields...)
		})
		answered := make(chan *answer)
		go func() { answered <- r.get(path, takesJPEG) }()
		<-came
		if _, err := r.proxy.Purge(t.Context(), "shop", []string{"/a/"}); err != nil {
			t.Fatal(err)
		}
		close(gate)
		got := <-answered
		kept := strings.Contains(got.Header.Get("Cache-Control"), "max-age")
		if path == "/b/1.css" {
			if !kept {
				t.Errorf("%s was not purged: %v", path, got.Header)
			}
			continue
		}
		if kept || got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("Expires") != "" || got.Header.Get("CDN-Cache-Control") != "" {
			t.Errorf("%s: %v", path, got.Header)
		}
		if again := r.get(path, takesJPEG); !strings.Contains(again.Header.Get("Cache-Control"), "max-age") {
			t.Errorf("%s, asked for after the purge: %v", path, again.Header)
		}
	}
}
