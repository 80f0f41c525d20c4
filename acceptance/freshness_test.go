package acceptance

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"karui/internal/origintest"
)

func cc(value string) field { return field{Name: "Cache-Control", Value: value} }

// The remainder of the origin's own lifetime is what is sent, capped and never below a second.
func TestLifetimesFollowTheOrigin(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	type answer struct {
		fields []field
		// long is the settled lifetime in seconds, short that of an answer to be replaced; -1 where any short time will do.
		long, short int
	}
	cases := map[string]answer{
		"none":              {nil, 86400, 10},
		"max-age":           {[]field{cc("max-age=5000")}, 5000, 10},
		"s-maxage":          {[]field{cc("max-age=100, s-maxage=7000")}, 7000, 10},
		"s-maxage smaller":  {[]field{cc("s-maxage=100, max-age=7000")}, 100, 10},
		"quoted":            {[]field{cc(`max-age="5000"`)}, 5000, 10},
		"case":              {[]field{cc("Public, Max-Age=5000")}, 5000, 10},
		"capped":            {[]field{cc("max-age=31536000")}, 2592000, 10},
		"absurd":            {[]field{cc("max-age=99999999999999999999")}, 2592000, 10},
		"age":               {[]field{cc("max-age=5000"), {Name: "Age", Value: "1000"}}, 4000, 10},
		"expires":           {[]field{{Name: "Date", Value: date(0)}, {Name: "Expires", Value: date(3000 * time.Second)}}, 3000, 10},
		"expires less date": {[]field{{Name: "Date", Value: date(-time.Hour)}, {Name: "Expires", Value: date(-time.Hour + 3000*time.Second)}}, 3000, 10},
		"expires and age":   {[]field{{Name: "Date", Value: date(0)}, {Name: "Expires", Value: date(3000 * time.Second)}, {Name: "Age", Value: "1000"}}, 2000, 10},
		"max-age wins":      {[]field{cc("max-age=5000"), {Name: "Expires", Value: date(-time.Hour)}}, 5000, 10},
		"negative":          {[]field{cc("max-age=-5")}, -1, 10},
		"rubbish":           {[]field{cc("max-age=soon")}, -1, 10},
		"two lines":         {[]field{cc("public"), cc("max-age=4000")}, 4000, 10},
		"short one":         {[]field{cc("max-age=5")}, 5, 5},
	}
	origin := origintest.New(t)
	for name, c := range cases {
		origin.Set("/"+dashed(name)+".jpg", origintest.Image("image/jpeg", photo(t, uint64(len(name))), c.fields...))
	}
	k := serve(t, origin)
	for name, c := range cases {
		target := "/" + dashed(name) + ".jpg"
		first := k.get(target, takesWebP)
		if got := first.maxAge(); c.long > 0 && first.karui() == "miss" && (got > c.short || got < c.short-3) {
			t.Errorf("%s: first answer for %d s, want %d", name, got, c.short)
		}
		plain := k.get(target, takesAny)
		if got := plain.maxAge(); c.long > 0 && (got > c.long || got < c.long-30 && got != 1) || got < 1 {
			t.Errorf("%s: settled for %d s, want %d: %v", name, got, c.long, plain)
		}
		if plain.header.Get("Expires") != "" {
			t.Errorf("%s: Expires %q beside max-age", name, plain.header.Get("Expires"))
		}
	}
}

func dashed(name string) string {
	return string(bytes.ReplaceAll([]byte(name), []byte(" "), []byte("-")))
}

func TestOriginsFreshnessCanBeIgnoredAndTheCapSet(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(t, 1), cc("max-age=50")))
	ignoring := serve(t, origin, with("ttl.respect_origin", false), with("ttl.long", "2h"))
	if a := ignoring.get("/a.jpg", takesAny); a.maxAge() != 7200 {
		t.Errorf("respect_origin false: %v", a)
	}
	origin.Set("/b.jpg", origintest.Image("image/jpeg", photo(t, 1), cc("max-age=5000")))
	capped := serve(t, origin, with("ttl.max", "1000s"), with("ttl.long", "900s"), with("ttl.short", "3s"))
	if a := capped.get("/b.jpg", takesAny); a.maxAge() != 1000 {
		t.Errorf("ttl.max: %v", a)
	}
	if a := capped.get("/c.jpg", takesAny); a.status != 404 || a.maxAge() != 3 {
		t.Errorf("ttl.short: %v", a)
	}
}

func TestRemainderCountsDown(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(t, 1), cc("max-age=600")))
	k := serve(t, origin)
	k.settle("/a.jpg", takesWebP)
	for _, accept := range []string{takesWebP, takesAny} {
		first := k.get("/a.jpg", accept).maxAge()
		eventually(t, 10*time.Second, "a smaller max-age", func() bool {
			got := k.get("/a.jpg", accept).maxAge()
			if got > first {
				t.Errorf("max-age grew from %d to %d", first, got)
			}
			return got < first
		})
	}
	if n := origin.Count("/a.jpg"); n != 1 {
		t.Errorf("%d requests to the origin while fresh", n)
	}
}

// versions is a picture that changes when told to, with validators.
type versions struct {
	mu     sync.Mutex
	body   []byte
	tag    string
	fields []field
	status int
}

func (v *versions) set(body []byte, tag string, fields ...field) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.body, v.tag, v.fields, v.status = body, tag, fields, 0
}

func (v *versions) fail(status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status = status
}

func (v *versions) answer(origintest.Request) origintest.Answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.status != 0 {
		return origintest.Text(v.status, "text/plain", "no")
	}
	a := origintest.Image("image/jpeg", v.body, append([]field{{Name: "ETag", Value: v.tag}}, v.fields...)...)
	a.Validate = true
	return a
}

// awaitStale waits until the variant's lifetime is over.
func (k *instance) awaitStale(target string) {
	k.t.Helper()
	eventually(k.t, 20*time.Second, target+" is stale", func() bool { return k.get(target, takesWebP).karui() == "stale" })
}

func TestStaleVariantIsAnsweredForShortAndExtendedBy304(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	v := &versions{}
	body := photo(t, 1)
	v.set(body, `"one"`, cc("max-age=2"))
	origin.SetFunc("/a.jpg", v.answer)
	k := serve(t, origin, patient)
	first := k.get("/a.jpg", takesWebP)
	if first.karui() != "wait" || first.maxAge() > 2 {
		t.Fatalf("%v", first)
	}
	var stale *reply
	eventually(t, 20*time.Second, "stale", func() bool {
		stale = k.get("/a.jpg", takesWebP)
		return stale.karui() == "stale"
	})
	if !bytes.Equal(stale.body, first.body) || stale.maxAge() > 2 || stale.header.Get("Etag") != first.header.Get("Etag") {
		t.Errorf("%v", stale)
	}
	eventually(t, 10*time.Second, "fresh again", func() bool { return k.get("/a.jpg", takesWebP).karui() == "hit" })
	requests := origin.Requests("/a.jpg")
	for _, r := range requests[1:] {
		if r.Header.Get("If-None-Match") != `"one"` {
			t.Errorf("the refresh was not conditional:\n%s", r.Head)
		}
	}
	if a := k.get("/a.jpg", takesWebP); !bytes.Equal(a.body, first.body) {
		t.Errorf("the variant changed by a 304")
	}
	if a := k.get("/a.jpg", takesAny); !bytes.Equal(a.body, body) {
		t.Errorf("a plain viewer: %v", a)
	}
}

func TestChangedPictureAppearsAfterItsLifetime(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	v := &versions{}
	v.set(photo(t, 1), `"one"`, cc("max-age=2"))
	origin.SetFunc("/a.jpg", v.answer)
	k := serve(t, origin)
	old := k.settle("/a.jpg", takesWebP)
	fresh := photo(t, 2)
	v.set(fresh, `"two"`, cc("max-age=100"))
	eventually(t, settleLimit, "the new picture", func() bool {
		a := k.get("/a.jpg", takesWebP)
		return a.karui() == "hit" && !bytes.Equal(a.body, old.body)
	})
	a := k.get("/a.jpg", takesWebP)
	for _, problem := range samePicture(fresh, a.body) {
		t.Error(problem)
	}
	if a.header.Get("Etag") == old.header.Get("Etag") {
		t.Error("two pictures with one tag")
	}
	if a := k.get("/a.jpg", takesAny); !bytes.Equal(a.body, fresh) {
		t.Errorf("a plain viewer got %v", a)
	}
}

func TestRefreshWithoutValidatorsStillFindsChanges(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", photo(t, 1), cc("max-age=1")))
	k := serve(t, origin)
	k.settle("/a.jpg", takesWebP)
	fresh := photo(t, 2)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", fresh, cc("max-age=100")))
	eventually(t, settleLimit, "the new original", func() bool { return bytes.Equal(k.get("/a.jpg", takesAny).body, fresh) })
	eventually(t, settleLimit, "its variant", func() bool { return k.get("/a.jpg", takesWebP).karui() == "hit" })
	for _, problem := range samePicture(fresh, k.get("/a.jpg", takesWebP).body) {
		t.Error(problem)
	}
}

func TestRefreshThatFindsItGoneDeletesTheVariant(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 401, 403, 404, 410, 451} {
		t.Run(itoa(status), func(t *testing.T) {
			t.Parallel()
			origin := origintest.New(t)
			v := &versions{}
			v.set(photo(t, 1), `"one"`, cc("max-age=1"))
			origin.SetFunc("/a.jpg", v.answer)
			k := serve(t, origin, with("ttl.short", "1s"))
			k.settle("/a.jpg", takesWebP)
			v.fail(status)
			for _, accept := range []string{takesWebP, takesAny} {
				eventually(t, 20*time.Second, fmt.Sprint(status), func() bool { return k.get("/a.jpg", accept).status == status })
			}
			// It is gone for good, not only as long as the origin says so.
			origin.Refuse()
			eventually(t, 20*time.Second, "503", func() bool { return k.get("/a.jpg", takesWebP).status == 503 })
		})
	}
}

func TestStaleGoesOnWhileTheOriginIsAway(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	v := &versions{}
	body := photo(t, 1)
	v.set(body, `"one"`, cc("max-age=1"))
	origin.SetFunc("/a.jpg", v.answer)
	k := serve(t, origin)
	variant := k.settle("/a.jpg", takesWebP)
	k.get("/a.jpg", takesAny)
	check := func(why string) {
		t.Helper()
		k.awaitStale("/a.jpg")
		for range 10 {
			a := k.get("/a.jpg", takesWebP)
			if a.status != 200 || !bytes.Equal(a.body, variant.body) {
				t.Errorf("%s: %v", why, a)
			}
			if p := k.get("/a.jpg", takesAny); p.status != 200 || !bytes.Equal(p.body, body) {
				t.Errorf("%s: a plain viewer got %v", why, p)
			}
			pause(20 * time.Millisecond)
		}
	}
	for _, status := range []int{500, 503, 429} {
		v.fail(status)
		check(itoa(status))
	}
	origin.Refuse()
	check("refused")
	v.set(body, `"one"`, cc("max-age=100"))
	origin.Resume()
	eventually(t, 30*time.Second, "fresh again", func() bool { return k.get("/a.jpg", takesWebP).karui() == "hit" })
}

func TestMustRevalidateIsNotAnsweredStaleWithoutTheOrigin(t *testing.T) {
	t.Parallel()
	for _, directive := range []string{"must-revalidate", "proxy-revalidate", "no-cache"} {
		t.Run(directive, func(t *testing.T) {
			t.Parallel()
			origin := origintest.New(t)
			v := &versions{}
			v.set(photo(t, 1), `"one"`, cc("max-age=1, "+directive))
			origin.SetFunc("/a.jpg", v.answer)
			k := serve(t, origin)
			if a := k.get("/a.jpg", takesWebP); a.status != 200 {
				t.Fatalf("%v", a)
			}
			eventually(t, settleLimit, "a variant", func() bool { return k.get("/a.jpg", takesWebP).webp() })
			origin.Refuse()
			eventually(t, 20*time.Second, "503", func() bool { return k.get("/a.jpg", takesWebP).status == 503 })
			pause(100 * time.Millisecond)
			if a := k.get("/a.jpg", takesWebP); a.status != 503 {
				t.Errorf("afterwards: %v", a)
			}
			if a := k.get("/a.jpg", takesAny); a.status != 503 {
				t.Errorf("a plain viewer: %v", a)
			}
		})
	}
}

func TestStaleEndsAfterTTLStale(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	v := &versions{}
	v.set(photo(t, 1), `"one"`, cc("max-age=1"))
	origin.SetFunc("/a.jpg", v.answer)
	k := serve(t, origin, with("ttl.stale", "3s"))
	k.settle("/a.jpg", takesWebP)
	origin.Refuse()
	k.awaitStale("/a.jpg")
	eventually(t, 20*time.Second, "503", func() bool { return k.get("/a.jpg", takesWebP).status == 503 })
}

// One refresh serves all who meet a stale entry at the same time.
func TestRefreshIsSharedAndDoesNotHoldViewersBack(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	v := &versions{}
	v.set(photo(t, 1), `"one"`, cc("max-age=1"))
	hold := origintest.NewGate()
	defer hold.Open()
	var mu sync.Mutex
	held := false
	origin.SetFunc("/a.jpg", func(r origintest.Request) origintest.Answer {
		mu.Lock()
		defer mu.Unlock()
		a := v.answer(r)
		if held {
			a.Hold = hold
		}
		return a
	})
	k := serve(t, origin)
	k.settle("/a.jpg", takesWebP)
	mu.Lock()
	held = true
	mu.Unlock()
	k.awaitStale("/a.jpg")
	before := origin.Count("/a.jpg")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			started := time.Now()
			a := k.get("/a.jpg", takesWebP)
			if a.status != 200 || a.karui() != "stale" || time.Since(started) > 5*time.Second {
				t.Errorf("after %v: %v", time.Since(started), a)
			}
		})
	}
	wg.Wait()
	if n := origin.Count("/a.jpg"); n > before+1 {
		t.Errorf("%d refreshes at once", n-before+1)
	}
}
