package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"karui/internal/origintest"
)

// backlog is what the API says of what is to be made.
type backlog struct {
	Entries int    `json:"entries"`
	Made    uint64 `json:"made"`
	Sites   []struct {
		Site     string `json:"site"`
		Entries  int    `json:"entries"`
		WaitsFor string `json:"waits_for"`
		Next     []struct {
			Path  string  `json:"path"`
			Asked float64 `json:"asked"`
		} `json:"next"`
	} `json:"sites"`
}

func (k *instance) backlog() (b backlog) {
	k.t.Helper()
	status, text := k.ask("/api/v1/backlog")
	if err := json.Unmarshal([]byte(text), &b); status != 200 || err != nil {
		k.t.Fatalf("backlog: %d %s", status, text)
	}
	return b
}

// first is the path that is made first, of the site of that name.
func (b backlog) first(site string) string {
	for _, s := range b.Sites {
		if s.Site == site && len(s.Next) > 0 {
			return s.Next[0].Path
		}
	}
	return ""
}

func (b backlog) paths() (all []string) {
	for _, s := range b.Sites {
		for _, e := range s.Next {
			all = append(all, s.Site+e.Path)
		}
	}
	return all
}

// What was not made since nothing new was being made outlives a crash, and is made
// without a viewer as soon as the dial allows: what was asked for most comes first.
func TestBacklogOutlivesACrashAndIsMadeWithoutAViewer(t *testing.T) {
	t.Parallel()
	const pictures, hot = 5, "/p/3.jpg"
	origin := origintest.New(t)
	originals := map[string][]byte{}
	for i := range pictures {
		target := fmt.Sprintf("/p/%d.jpg", i)
		originals[target] = photo(t, uint64(500+i))
		origin.Set(target, origintest.Image("image/jpeg", originals[target]))
	}
	k := serve(t, origin, with("sites", []any{
		site("shop", origin.URL(), map[string]any{"default": true}), site("blog", origin.URL(), map[string]any{"hosts": []any{"blog.example"}}),
	}))
	set := func(args ...string) string {
		t.Helper()
		code, out, errors := command(t, nil, append([]string{"dial", "--config", k.file}, args...)...)
		if code != 0 {
			t.Fatalf("karui dial %q: exit code %d: %s", args, code, errors)
		}
		return out
	}
	set("defer")
	ask := func(host, target string) {
		t.Helper()
		a := k.do(request{target: target, host: host, fields: []string{takesWebP}})
		if a.status != 200 || a.karui() != "miss" || !bytes.Equal(a.body, originals[target]) || a.maxAge() > 10 {
			t.Errorf("%s %s: %v", host, target, a)
		}
	}
	for range 6 {
		ask("www.example.com", hot)
	}
	for target := range originals {
		ask("www.example.com", target)
	}
	ask("blog.example", "/p/0.jpg")
	const entries = pictures + 1
	eventually(t, settleLimit, "everything on the list", func() bool {
		b := k.backlog()
		return b.Entries == entries && b.first("shop") == hot
	})
	k.written()
	before := k.backlog()
	k.kill()
	k.start()
	after := k.backlog()
	if !slices.Equal(after.paths(), before.paths()) || after.first("shop") != hot || after.Sites[0].WaitsFor != "dial" {
		t.Errorf("after the crash: %+v, before: %+v", after, before)
	}
	if out := set(); !strings.Contains(out, fmt.Sprintf("backlog: %d to be made at level 0 when workers are idle (blog 1, shop %d)", entries, pictures)) {
		t.Errorf("karui dial: %s", out)
	}
	set("auto")
	// One at a time, so what is gone from the list first was made first.
	var left backlog
	eventually(t, settleLimit, "the first of the shop's pictures made", func() bool {
		left = k.backlog()
		return left.first("shop") != hot
	})
	if slices.Contains(left.paths(), "shop"+hot) || left.Entries > entries {
		t.Errorf("after the first: %+v", left)
	}
	if n := len(left.paths()) + int(left.Made); n < entries-1 || n > entries {
		t.Errorf("made %d, left %q", left.Made, left.paths())
	}
	eventually(t, settleLimit, "an empty list", func() bool { b := k.backlog(); return b.Entries == 0 && b.Made == entries })
	for target, original := range originals {
		a := k.get(target, takesWebP)
		if a.karui() != "hit" || !a.webp() || a.maxAge() < 86400-300 {
			t.Errorf("%s: the first viewer afterwards got %v", target, a)
			continue
		}
		for _, problem := range samePicture(original, a.body) {
			t.Errorf("%s: %s", target, problem)
		}
	}
	for target := range originals {
		want := 1
		if target == "/p/0.jpg" {
			want = 2 // of two sites
		}
		if n := origin.Count(target); n != want {
			t.Errorf("%s: %d requests to the origin, want %d", target, n, want)
		}
	}
	k.written()
	k.kill()
	k.start()
	if b := k.backlog(); b.Entries != 0 {
		t.Errorf("what was made is to be made again after a crash: %+v", b)
	}
}

// What was made in a hurry is made again, without anybody asking for it.
func TestCheapVariantsAreMadeAgainWithoutAViewer(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	body := photo(t, 520)
	origin.Set("/a.jpg", origintest.Image("image/jpeg", body))
	k := serve(t, origin)
	set := func(level string) {
		t.Helper()
		if code, _, errors := command(t, nil, "dial", "--config", k.file, level); code != 0 {
			t.Fatalf("exit code %d: %s", code, errors)
		}
	}
	set("spare")
	var cheap *reply
	eventually(t, settleLimit, "a cheap variant", func() bool {
		cheap = k.get("/a.jpg", takesWebP)
		return cheap.karui() == "hit"
	})
	if !cheap.webp() || cheap.maxAge() > 600 {
		t.Fatalf("%v", cheap)
	}
	set("auto")
	began := time.Now()
	eventually(t, settleLimit, "nothing left to be made", func() bool { b := k.backlog(); return b.Entries == 0 && b.Made == 1 })
	a := k.get("/a.jpg", takesWebP)
	if a.karui() != "hit" || !a.webp() || a.maxAge() <= 600 || bytes.Equal(a.body, cheap.body) || len(a.body) <= len(cheap.body) {
		t.Errorf("after %v: %v, before: %d bytes", time.Since(began), a, len(cheap.body))
	}
	if n := origin.Count("/a.jpg"); n != 1 {
		t.Errorf("%d requests to the origin", n)
	}
}
