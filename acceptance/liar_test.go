package acceptance

import (
	"bytes"
	"testing"
	"time"

	"karui/internal/origintest"
)

// A body that ends too early is never a short body that looks whole: the
// connection is aborted, nothing is kept, and the next answer is whole.
func TestCutOffBodiesAreAbortedAndNotKept(t *testing.T) {
	t.Parallel()
	body := photo(t, 1)
	longer := origintest.Image("image/jpeg", body)
	longer.Declare = int64(len(body)) + 1000
	chunked := origintest.Image("image/jpeg", body)
	chunked.Framing = origintest.Chunked
	half := int64(len(body) / 2)
	cases := map[string]origintest.Answer{
		"longer":       longer,
		"cut":          origintest.Image("image/jpeg", body).CutAt(half, false),
		"reset":        origintest.Image("image/jpeg", body).CutAt(half, true),
		"last-byte":    origintest.Image("image/jpeg", body).CutAt(int64(len(body)-1), false),
		"first-byte":   origintest.Image("image/jpeg", body).CutAt(1, false),
		"chunked":      chunked.CutAt(half, false),
		"chunked-end":  chunked.CutAt(int64(len(body)), false),
		"chunk-reset":  chunked.CutAt(half, true),
		"broken-chunk": {Raw: []byte("HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n\xff\xd8\xff\xe0\x00\r\nzzz\r\n")},
	}
	origin := origintest.New(t)
	for name, answer := range cases {
		for _, ext := range []string{".jpg", ".bin"} {
			for _, accept := range []string{"webp-", "plain-"} {
				origin.Set("/"+accept+name+ext, answer)
			}
		}
	}
	k := serve(t, origin)
	for name := range cases {
		for _, ext := range []string{".jpg", ".bin"} {
			for prefix, accept := range map[string]string{"webp-": takesWebP, "plain-": takesAny} {
				target := "/" + prefix + name + ext
				for range 2 {
					a := k.try(request{target: target, fields: []string{accept}})
					if a.status == 503 && len(a.body) < 2000 {
						continue // nothing had been sent yet
					}
					if a.err == nil {
						t.Errorf("%s: %v, looks whole", target, a)
					}
					if !bytes.HasPrefix(body, a.body) && name != "broken-chunk" {
						t.Errorf("%s: %d bytes that are not the original's", target, len(a.body))
					}
				}
				origin.Set(target, origintest.Image("image/jpeg", body))
				if a := k.get(target, accept); a.status != 200 || a.err != nil || !bytes.Equal(a.body, body) && !a.webp() {
					t.Errorf("%s, whole again: %v", target, a)
				}
			}
		}
	}
}

func TestCutOffBodyIsNotGivenToAViewerThatWaits(t *testing.T) {
	t.Parallel()
	body := photo(t, 1)
	origin := origintest.New(t)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body).CutAt(int64(len(body)-10), false))
	k := serve(t, origin, patient)
	a := k.get("/a.jpg", takesWebP)
	if a.status == 200 && a.err == nil {
		t.Errorf("%v, looks whole", a)
	}
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	if a := k.settle("/a.jpg", takesWebP); a.karui() != "hit" {
		t.Errorf("%v", a)
	}
}

// More bytes than declared: nothing of what follows gets into another answer.
func TestMoreBytesThanDeclaredPoisonNothing(t *testing.T) {
	t.Parallel()
	body, other := photo(t, 1), photo(t, 2)
	extra := "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: 4\r\n\r\nevil"
	shorter := origintest.Image("image/jpeg", append(bytes.Clone(body), extra...))
	shorter.Declare = int64(len(body))
	cut := origintest.Image("image/jpeg", body)
	cut.Declare = int64(len(body) / 2)
	origin := origintest.New(t)
	for _, ext := range []string{".jpg", ".bin"} {
		origin.Set("/shorter"+ext, shorter)
		origin.Set("/cut"+ext, cut)
		origin.Set("/other"+ext, origintest.Image("image/jpeg", other))
		origin.Set("/other2"+ext, origintest.Image("image/jpeg", other))
	}
	k := serve(t, origin)
	for _, ext := range []string{".jpg", ".bin"} {
		if a := k.get("/shorter"+ext, takesAny); a.status != 200 || !bytes.Equal(a.body, body) {
			t.Errorf("%v", a)
		}
		if a := k.get("/other"+ext, takesAny); !bytes.Equal(a.body, other) {
			t.Errorf("the next answer: %v", a)
		}
		// Half a picture with a length that fits it: it goes out as it is, and no variant is made of it.
		for range 3 {
			if a := k.get("/cut"+ext, takesWebP); a.status != 200 || !bytes.Equal(a.body, body[:len(body)/2]) {
				t.Errorf("%v", a)
			}
		}
		if a := k.get("/other2"+ext, takesAny); !bytes.Equal(a.body, other) {
			t.Errorf("the next answer: %v", a)
		}
	}
	if a := k.settle("/cut.jpg", takesWebP); a.karui() != "original" {
		t.Errorf("%v", a)
	}
}

// A body that ends with the connection proves its end only by its format's trailer.
func TestBodyWithoutLengthIsKeptOnlyWithItsTrailer(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	files := map[string][]byte{"/a.jpg": photo(t, 1), "/b.png": logo(t, 2), "/c.gif": animation(t, 4, 0)}
	set := func(target string, body []byte, proto string) {
		answer := origintest.Image(typeByName(target), body)
		answer.Framing, answer.Proto = origintest.Close, proto
		origin.Set(target, answer)
	}
	k := serve(t, origin)
	for target, body := range files {
		for _, proto := range []string{"HTTP/1.0", "HTTP/1.1"} {
			set(target, body[:len(body)*2/3], proto)
			for range 2 {
				// The fetch before may be just ending and take one more viewer.
				before := origin.Count(target)
				if !became(2*time.Second, func() bool {
					a := k.get(target, takesWebP)
					if a.err == nil && (a.status != 200 || !bytes.Equal(a.body, body[:len(body)*2/3])) {
						t.Errorf("%s: %v", target, a)
					}
					return origin.Count(target) > before
				}) {
					t.Errorf("%s: half a file was kept", target)
				}
			}
		}
		set(target, body, "HTTP/1.0")
		if a := k.settle(target, takesWebP); a.karui() != "hit" {
			t.Errorf("%s, whole: %v", target, a)
		}
		if a := k.get(target, takesAny); !bytes.Equal(a.body, body) {
			t.Errorf("%s, whole: %v", target, a)
		}
	}
}
