package acceptance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"karui/internal/origintest"
)

func TestDiskCacheKeepsToItsCap(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := prepare(t, origin.URL())
	k.settings.set("cache.volumes", []any{map[string]any{"path": k.cache, "max_size": "1MiB"}})
	k.settings.set("cache.memory", "1MiB")
	k.write()
	k.start()
	n := 40
	bodies := map[string][]byte{}
	for i := range n {
		target := fmt.Sprintf("/%d.jpg", i)
		bodies[target] = encodeJPEG(t, scene(uint64(i), 700, 500), 93)
		origin.Set(target, origintest.Image("image/jpeg", bodies[target]))
	}
	total := 0
	for target, body := range bodies {
		total += len(body)
		if a := k.settle(target, takesWebP); a.karui() != "hit" {
			t.Errorf("%s: %v", target, a)
		}
	}
	if total < 2<<20 {
		t.Fatalf("%d bytes do not reach the cap", total)
	}
	eventually(t, 20*time.Second, "a volume within its cap", func() bool {
		size := int64(0)
		for _, n := range k.cacheFiles() {
			size += n
		}
		return size <= 1<<20
	})
	for target, body := range bodies {
		if a := k.get(target, takesAny); a.status != 200 || !bytes.Equal(a.body, body) {
			t.Errorf("%s: %v", target, a)
		}
	}
}

// A volume that vanishes costs work or a 503, never a broken answer.
func TestVolumeThatVanishesBreaksNoAnswer(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	k := serve(t, origin, with("cache.memory", "64KiB"))
	g := k.gallery(origin, 6)
	look := func(when string) {
		for target, original := range g.originals {
			for _, accept := range []string{takesWebP, takesAny} {
				a := k.get(target, accept)
				if a.status == 503 && a.header.Get("X-Karui-Reason") == "disk" {
					continue
				}
				if a.status != 200 || a.err != nil || !bytes.Equal(a.body, original) && (accept == takesAny || len(samePicture(original, a.body)) > 0) {
					t.Errorf("%s, %s: %v", when, target, a)
				}
			}
		}
	}
	if err := os.RemoveAll(k.cache); err != nil {
		t.Fatal(err)
	}
	look("removed")
	if err := os.WriteFile(k.cache, []byte("a file where the folder was"), 0o600); err != nil && !os.IsExist(err) && !strings.Contains(err.Error(), "is a directory") {
		t.Fatal(err)
	}
	look("replaced by a file")
	look("again")
	_ = os.RemoveAll(k.cache)
}

func TestUnusableVolumeIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	k := prepare(t, "http://"+origintest.ClosedAddr())
	if err := os.WriteFile(k.cache, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.settings.set("cache.volumes", []any{map[string]any{"path": filepath.Join(k.cache, "below"), "max_size": "1GiB"}})
	k.write()
	code, out, errs := command(t, nil, "serve", "--config", k.file)
	if code == 0 || !strings.Contains(out+errs, k.cache) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// Two processes must not share a volume.
func TestSecondProcessOnTheSameVolumeIsRefused(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	first := serve(t, origin)
	second := prepare(t, origin.URL())
	second.settings.set("cache.volumes", []any{map[string]any{"path": first.cache, "max_size": "1GiB"}})
	second.write()
	code, out, errs := command(t, nil, "serve", "--config", second.file)
	if code == 0 || !strings.Contains(out+errs, first.cache) {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if a := first.get("/a.jpg"); a.status != 404 {
		t.Errorf("the first one afterwards: %v", a)
	}
}

// An origin that stalls for longer than origin.idle is given up: the connection is aborted, and nothing is kept.
func TestOriginThatStallsTooLongIsGivenUp(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	stall := origintest.NewGate()
	defer stall.Open()
	body := photo(t, 1)
	for _, target := range []string{"/a.jpg", "/a.css"} {
		answer := origintest.Image("image/jpeg", body)
		answer.Stall, answer.StallAt = stall, 3000
		origin.Set(target, answer)
	}
	k := serve(t, origin, with("origin.idle", "1s"))
	for _, target := range []string{"/a.jpg", "/a.css"} {
		started := time.Now()
		a := k.try(request{target: target, fields: []string{takesAny}})
		if a.err == nil && a.status == 200 || time.Since(started) > 15*time.Second {
			t.Errorf("%s after %v: %v", target, time.Since(started), a)
		}
		origin.Set(target, origintest.Image("image/jpeg", body))
		if a := k.get(target, takesAny); a.status != 200 || !bytes.Equal(a.body, body) {
			t.Errorf("%s, whole again: %v", target, a)
		}
	}
}

// A dribble that would go on for ever ends with origin.total.
func TestOriginThatDribblesForEverIsGivenUp(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	answer := origintest.Image("image/jpeg", photo(t, 1))
	answer.Size, answer.Pace = 1<<20, 5*time.Millisecond
	origin.Set("/a.jpg", answer)
	k := serve(t, origin, with("origin.total", "3s"), with("origin.deadline", "2s"), with("origin.idle", "2s"))
	started := time.Now()
	a := k.try(request{target: "/a.jpg", fields: []string{takesAny}})
	if a.err == nil && a.status == 200 || time.Since(started) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(started), a)
	}
}

func TestManyViewersOfAFailingOriginCostOneRequest(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	hold := origintest.NewGate()
	answer := origintest.Text(500, "text/plain", "boom")
	answer.Hold = hold
	origin.Set("/a.jpg", answer)
	k := serve(t, origin)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if a := k.try(request{target: "/a.jpg", fields: []string{takesWebP}}); a.status != 503 {
				t.Errorf("%v", a)
			}
		})
	}
	origin.Await("/a.jpg", 1, 20*time.Second)
	pause(500 * time.Millisecond) // the others arrive meanwhile
	hold.Open()
	wg.Wait()
	if n := origin.Count("/a.jpg"); n > 3 {
		t.Errorf("%d requests for 100 viewers at once", n)
	}
}

func TestHTTP10ViewersGetWholeAnswers(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	answer := origintest.Image("image/jpeg", body)
	answer.Framing = origintest.Chunked
	origin.Set("/a.jpg", answer)
	origin.Set("/a.css", answer)
	k := serve(t, origin)
	for _, target := range []string{"/a.jpg", "/a.css", "/a.jpg"} {
		a := k.do(request{raw: "GET " + target + " HTTP/1.0\r\nHost: www.example.com\r\n\r\n", target: target})
		if a.status != 200 || !bytes.Equal(a.body, body) || a.header.Get("Transfer-Encoding") != "" {
			t.Errorf("%s: %v", target, a)
		}
	}
}

func TestInterimAnswersOfTheOriginAreNotTheAnswer(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 1)
	raw := "HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" +
		"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + string(body)
	for _, target := range []string{"/a.jpg", "/a.css"} {
		origin.Set(target, origintest.Answer{Raw: []byte(raw)})
	}
	k := serve(t, origin)
	for _, target := range []string{"/a.jpg", "/a.css"} {
		c := k.dial()
		q := request{target: target, host: "www.example.com", fields: []string{takesAny}}
		a := c.do(q)
		for a.status >= 100 && a.status < 200 {
			a = c.readHead(q)
			c.readBody(a)
		}
		if a.status != 200 || !bytes.Equal(a.body, body) {
			t.Errorf("%s: %v", target, a)
		}
	}
}

func TestOriginOverTLSIsVerified(t *testing.T) {
	t.Parallel()
	origin := origintest.NewTLS(t, "images.example.com")
	body := photo(t, 1)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	origin.Set("/a.css", origintest.Image("text/css", body))
	trusting := serve(t, origin, with("origin.ca_file", origin.CAFile()), withPlace("host", "images.example.com"))
	for _, target := range []string{"/a.jpg", "/a.css"} {
		if a := trusting.get(target, takesAny); a.status != 200 || !bytes.Equal(a.body, body) {
			t.Errorf("%v", a)
		}
	}
	if got := firstRequest(t, origin, "/a.jpg").Header.Get("Host"); got != "images.example.com" {
		t.Errorf("Host %q", got)
	}
	before := origin.Count("")
	unknown := serve(t, origin, withPlace("host", "images.example.com"))
	wrongName := serve(t, origin, with("origin.ca_file", origin.CAFile()), withPlace("host", "other.example.com"))
	for name, k := range map[string]*instance{"unknown authority": unknown, "wrong name": wrongName} {
		for _, target := range []string{"/a.jpg", "/a.css"} {
			if a := k.get(target, takesAny); a.status != 503 {
				t.Errorf("%s: %v", name, a)
			}
		}
	}
	if n := origin.Count("") - before; n != 0 {
		t.Errorf("%d requests over connections that cannot be trusted", n)
	}
}
