package purging

import (
	"log/slog"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	h, err := Page(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	get := func(path, tongue string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept-Language", tongue)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for tongue, want := range map[string][2]string{
		"": {"en", "Purge pictures"}, "ja,en;q=0.5": {"ja", "画像のキャッシュを消す"}, "de, en;q=0.8": {"en", "Purge pictures"}, "fr": {"en", "Purge pictures"}, "ja-JP": {"ja", "パージする"},
	} {
		w := get(Path, tongue)
		body := w.Body.String()
		if w.Code != 200 || !strings.Contains(body, `<html lang="`+want[0]+`">`) || !strings.Contains(body, want[1]) {
			t.Errorf("%q: %d %s", tongue, w.Code, body)
		}
		head := w.Header()
		policy := head.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || head.Get("X-Frame-Options") != "DENY" ||
			head.Get("Cache-Control") != "no-store" || head.Get("Vary") != "Accept-Language" {
			t.Errorf("header %v", head)
		}
		// Nothing from elsewhere, nothing inline.
		if strings.Contains(body, "<style") || strings.Contains(body, " style=") || regexp.MustCompile(`(?i)<script[^>]*>[^<]|\son[a-z]+=|(src|href)="(https?:)?//`).MatchString(body) {
			t.Errorf("%q: %s", tongue, body)
		}
		for _, address := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(body, -1) {
			if address[1] == "/status" {
				continue // another page of the same listener
			}
			if w := get(address[1], ""); w.Code != 200 || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %d", address[1], w.Code)
			}
		}
	}
	if w := get(Path+"/else", ""); w.Code != 404 {
		t.Errorf("%d", w.Code)
	}
}

func TestBothLanguagesSayTheSame(t *testing.T) {
	en, _, err := texts("en")
	if err != nil {
		t.Fatal(err)
	}
	ja, _, err := texts("ja")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := slices.Sorted(maps.Keys(en)), slices.Sorted(maps.Keys(ja)); !slices.Equal(a, b) {
		t.Errorf("%v, %v", a, b)
	}
	hole := regexp.MustCompile(`\{\w+\}`)
	used := map[string]bool{}
	for _, name := range []string{"purge.html", "purge.js"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\.T\.(\w+)|words\.(\w+)`).FindAllStringSubmatch(string(b), -1) {
			used[m[1]+m[2]] = true
		}
	}
	for key, text := range en {
		a, b := hole.FindAllString(text, -1), hole.FindAllString(ja[key], -1)
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) || ja[key] == "" || text == "" {
			t.Errorf("%s: %q, %q", key, text, ja[key])
		}
		if !used[key] {
			t.Errorf("%s is not used", key)
		}
		delete(used, key)
	}
	for key := range used {
		t.Errorf("there are no words for %s", key)
	}
}
