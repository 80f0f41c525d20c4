package acceptance

import (
	"bytes"
	"net/http"
	"slices"
	"testing"

	"karui/internal/origintest"
)

// settledPair gives the tags of the variant and of the original of one URL.
func settledPair(t *testing.T, k *instance, target string) (variant, original string) {
	t.Helper()
	v, o := k.settle(target, takesWebP), k.get(target, takesAny)
	variant, original = v.header.Get("Etag"), o.header.Get("Etag")
	if v.karui() != "hit" || variant == "" || original == "" || variant == original {
		t.Fatalf("variant %v\noriginal %v", v, o)
	}
	return variant, original
}

func TestIfNoneMatchIsJudgedByWhatWouldBeAnsweredNow(t *testing.T) {
	t.Parallel()
	k, origin := serveFiles(t, map[string][]byte{"/a.jpg": photo(t, 1)})
	variant, original := settledPair(t, k, "/a.jpg")
	requests := origin.Count("")
	for name, c := range map[string]struct {
		tag, accept string
		status      int
	}{
		"its own tag":               {variant, takesWebP, 304},
		"weak":                      {"W/" + variant, takesWebP, 304},
		"in a list":                 {`"x", W/` + variant + `,"y"`, takesWebP, 304},
		"in a list without spaces":  {`"a,b",` + variant, takesWebP, 304},
		"star":                      {"*", takesWebP, 304},
		"original's tag":            {original, takesWebP, 200},
		"foreign":                   {`"5f3c-1a2b"`, takesWebP, 200},
		"foreign weak list":         {`W/"1", "2"`, takesWebP, 200},
		"unquoted":                  {variant[1 : len(variant)-1], takesWebP, 200},
		"within another tag":        {`"x` + variant[1:], takesWebP, 200},
		"quoted star":               {`"*"`, takesWebP, 200},
		"empty":                     {"", takesWebP, 200},
		"plain: its own":            {original, takesAny, 304},
		"plain: weak":               {"W/" + original, takesAny, 304},
		"plain: the variant's":      {variant, takesAny, 200},
		"plain: star":               {"*", takesAny, 304},
		"plain: both":               {variant + ", " + original, takesAny, 304},
		"webp: both":                {original + ", " + variant, takesWebP, 304},
		"plain: foreign":            {`"nginx-1"`, takesAny, 200},
		"plain: broken":             {`"`, takesAny, 200},
		"plain: weak of the other":  {"W/" + variant, takesAny, 200},
		"webp: trailing rubbish":    {`"a" "b" ` + original, takesWebP, 200},
		"webp: weak of the other":   {"W/" + original, takesWebP, 200},
		"webp: lower-case weakness": {"w/" + original, takesWebP, 200},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			a := k.do(request{method: method, target: "/a.jpg", fields: []string{c.accept, "If-None-Match: " + c.tag}})
			if a.status != c.status {
				t.Errorf("%s (%s): status %d, want %d", name, method, a.status, c.status)
				continue
			}
			if a.status == 304 {
				want := original
				if c.accept == takesWebP {
					want = variant
				}
				if len(a.body) != 0 || a.header.Get("Etag") != want || !listed(a.header, "Vary", "Accept") || a.maxAge() < 86000 {
					t.Errorf("%s (%s): %v", name, method, a)
				}
			}
		}
	}
	if n := origin.Count(""); n != requests {
		t.Errorf("%d requests to the origin for what was fresh", n-requests)
	}
}

// A client that sends the JPEG's tag after the variant is ready gets the variant.
func TestTagOfTheFirstAnswerBringsTheVariantLater(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(t, 1), origintest.Field{Name: "ETag", Value: `"from-origin"`}))
	k := serve(t, origin)
	first := k.get("/a.jpg", takesWebP)
	k.settle("/a.jpg", takesWebP)
	for _, tag := range []string{first.header.Get("Etag"), `"from-origin"`, k.get("/a.jpg", takesAny).header.Get("Etag")} {
		if a := k.get("/a.jpg", takesWebP, "If-None-Match: "+tag); a.status != 200 || !a.webp() {
			t.Errorf("tag %q: %v", tag, a)
		}
	}
}

func TestDatesAreIgnoredOnConvertiblePaths(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(t, 1), origintest.Field{Name: "Last-Modified", Value: "Mon, 02 Jan 2006 15:04:05 GMT"}))
	k := serve(t, origin)
	k.settle("/a.jpg", takesWebP)
	for _, accept := range []string{takesWebP, takesAny} {
		for _, date := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Fri, 02 Jan 2099 15:04:05 GMT", "rubbish"} {
			for _, name := range []string{"If-Modified-Since", "If-Unmodified-Since"} {
				if a := k.get("/a.jpg", accept, name+": "+date); a.status != 200 || len(a.body) == 0 {
					t.Errorf("%s: %s: %v", name, date, a)
				}
			}
		}
	}
	for _, r := range origin.Requests("") {
		if r.Header.Get("If-Modified-Since") != "" {
			t.Errorf("a viewer's date reached the origin:\n%s", r.Head)
		}
	}
}

func TestRangeIsAnsweredOnlyUnderAStrongIfRange(t *testing.T) {
	t.Parallel()
	k, origin := serveFiles(t, map[string][]byte{"/a.jpg": photo(t, 1)})
	variant, original := settledPair(t, k, "/a.jpg")
	bodies := map[string][]byte{takesWebP: k.get("/a.jpg", takesWebP).body, takesAny: k.get("/a.jpg", takesAny).body}
	tags := map[string]string{takesWebP: variant, takesAny: original}
	for accept, body := range bodies {
		other := tags[takesAny]
		if accept == takesAny {
			other = tags[takesWebP]
		}
		for name, fields := range map[string][]string{
			"no condition":      nil,
			"the other's tag":   {"If-Range: " + other},
			"weak":              {"If-Range: W/" + tags[accept]},
			"foreign":           {`If-Range: "x"`},
			"date":              {"If-Range: Mon, 02 Jan 2006 15:04:05 GMT"},
			"star":              {"If-Range: *"},
			"list":              {`If-Range: ` + tags[accept] + `, "x"`},
			"empty":             {"If-Range: "},
			"matching If-Match": {"If-Match: " + tags[accept]},
		} {
			a := k.get("/a.jpg", append([]string{accept, "Range: bytes=10-19"}, fields...)...)
			if a.status != 200 || !bytes.Equal(a.body, body) {
				t.Errorf("%s: %v, want the whole", name, a)
			}
		}
		for rng, want := range map[string][]byte{
			"bytes=10-19":     body[10:20],
			"bytes=0-0":       body[:1],
			"bytes=100-":      body[100:],
			"bytes=-50":       body[len(body)-50:],
			"bytes=5-9999999": body[5:],
		} {
			a := k.get("/a.jpg", accept, "Range: "+rng, "If-Range: "+tags[accept])
			if a.status == 200 && bytes.Equal(a.body, body) {
				continue // the whole is always right
			}
			if a.status != 206 || !bytes.Equal(a.body, want) || a.header.Get("Content-Range") == "" || a.header.Get("Etag") != tags[accept] || !listed(a.header, "Vary", "Accept") {
				t.Errorf("%s: %v, want %d bytes", rng, a, len(want))
			}
		}
		for _, rng := range []string{"bytes=9999999-", "bytes=20-10", "bytes=a-b", "lines=1-2", "bytes=", "bytes=-0", "bytes=0-1,5-6", "bytes=18446744073709551616-"} {
			a := k.get("/a.jpg", accept, "Range: "+rng, "If-Range: "+tags[accept])
			whole := a.status == 200 && bytes.Equal(a.body, body)
			if !whole && !slices.Contains([]int{206, 416}, a.status) {
				t.Errorf("%s: %v", rng, a)
			}
		}
	}
	for _, r := range origin.Requests("/a.jpg") {
		if r.Header.Get("Range") != "" || r.Header.Get("If-Range") != "" {
			t.Errorf("a viewer's range reached the origin:\n%s", r.Head)
		}
	}
}

// A resume that began with the original must not be spliced with the variant.
func TestRangeOnAColdImageBringsTheWhole(t *testing.T) {
	t.Parallel()
	body := photo(t, 1)
	k, origin := serveFiles(t, map[string][]byte{"/a.jpg": body})
	a := k.get("/a.jpg", takesWebP, "Range: bytes=100-200")
	if a.status != 200 || !bytes.Equal(a.body, body) {
		t.Errorf("%v", a)
	}
	if r := firstRequest(t, origin, "/a.jpg"); r.Header.Get("Range") != "" {
		t.Errorf("the origin saw\n%s", r.Head)
	}
}
