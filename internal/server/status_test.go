package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/html"

	"karui/internal/origintest"
	"karui/internal/purging"
	"karui/internal/sample"
	"karui/internal/status"
	"karui/proxy"
	"karui/proxy/origin"
)

// words gives the text of the element with the id, its parts set apart by one space.
func wordsOf(t *testing.T, page []byte, id string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(string(page)))
	if err != nil {
		t.Fatal(err)
	}
	var found *html.Node
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "id" && a.Val == id {
				found = n
			}
		}
	}
	if found == nil {
		t.Fatalf("nothing on the page has the id %s", id)
	}
	var words []string
	for n := range found.Descendants() {
		if n.Type == html.TextNode {
			words = append(words, strings.Fields(n.Data)...)
		}
	}
	return strings.Join(words, " ")
}

// The page counts what viewers were answered, by what they were answered, and shows
// what operators have set. Takes about 3 s, since the page looks once a second.
func TestStatusPageShowsWhatHappened(t *testing.T) {
	away := origintest.New(t)
	away.Refuse()
	r := start(t, func(c *Config) {
		other := proxy.DefaultSite()
		other.ID, other.Hosts = "away", []string{"away.example"}
		place := origin.DefaultPlace()
		place.Name, place.URLs = "nowhere", []string{away.URL()}
		other.Origins = []origin.PlaceConfig{place}
		c.Sites = append(c.Sites, other)
	})
	r.origin.Set("/photo.jpg", origintest.Image("image/jpeg", sample.Photo()))
	r.origin.Set("/a.css", origintest.Text(200, "text/css", "a{}"))
	seen := map[string]int{}
	ask := func(path string, lines ...string) http.Header {
		t.Helper()
		status, h, _, err := r.get(r.url+path, lines...)
		if err != nil {
			t.Fatal(err)
		}
		word := h.Get("X-Karui")
		if status == http.StatusServiceUnavailable {
			word = "503_" + h.Get("X-Karui-Reason")
		}
		seen[word]++
		return h
	}
	for range 1000 {
		if ask("/photo.jpg", "Accept: image/webp").Get("X-Karui") == "hit" {
			break
		}
	}
	ask("/photo.jpg")
	ask("/photo.jpg")
	ask("/a.css")
	ask("/photo.jpg", "X-Routing: nobody")
	ask("/photo.jpg", "X-Routing: away", "Accept: image/webp")
	if status, _ := r.dials("PUT", "", &DialChange{Shed: "100%", Site: "shop", For: "1h"}); status != 200 {
		t.Fatalf("shedding could not be set: %d", status)
	}
	ask("/photo.jpg", "Accept: image/webp")
	if seen["hit"] != 1 || seen["503_shed"] != 1 || seen["503_route"] != 1 || seen["503_origin"] != 1 || seen["original"] != 2 || seen["bypass"] != 1 {
		t.Fatalf("the test did not cause what it means to: %v", seen)
	}

	var page []byte
	var header http.Header
	want := fmt.Sprintf("hit %d wait %d original %d miss %d bypass %d 503 3", seen["hit"], seen["wait"], seen["original"], seen["miss"], seen["bypass"])
	for began := time.Now(); ; {
		var err error
		if _, header, page, err = r.get(r.admin+status.Path, "Accept: text/html"); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(wordsOf(t, page, "requests"), want) {
			break
		}
		if time.Since(began) > limit {
			t.Fatalf("%s, want %s", wordsOf(t, page, "requests"), want)
		}
	}
	if got := wordsOf(t, page, "refused"); !strings.HasSuffix(got, "origin 1 shed 1 route 1") {
		t.Errorf("503 by reason: %s", got)
	}
	for id, parts := range map[string][]string{
		"verdict-title": {"looked at"},
		"verdict":       {"Operators have requests turned away: shop 100 %", "named no site or lacked the secret"},
		"sites":         {"shop 100 % turned away by an operator", "away"},
		"events":        {"karui was started", "An operator set the share of requests that is turned away to 100%, of site shop, for 1h", "100 % of requests are turned away"},
		"success":       {"shed an operator's word 1", "origin the origin could not be reached, or failed 1"},
		"places":        {"shop origin in", "away nowhere"},
		"volumes":       {"ok"}, "workers": {"WebP 1 1"}, "quarantine": {"Empty"}, "dial": {"full (level 0 of 0 to 3), by the load"},
	} {
		for _, part := range parts {
			if got := wordsOf(t, page, id); !strings.Contains(got, part) {
				t.Errorf("#%s lacks %q: %s", id, part, got)
			}
		}
	}
	if csp := header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
	_, _, body, err := r.get(r.admin + "/api/v1/events")
	var events status.Events
	if err != nil || json.Unmarshal(body, &events) != nil || len(events.Events) < 3 || events.Events[len(events.Events)-1].Kind != "start" {
		t.Errorf("%s %v", body, err)
	}
}

// A token for some sites gets a page about these, and none gets none.
func TestStatusPageWantsAToken(t *testing.T) {
	r := start(t, withTokens)
	if status, _, body, err := r.get(r.admin+status.Path, "Accept: text/html"); err != nil || status != http.StatusUnauthorized || !strings.Contains(string(body), `action="/status/enter"`) || strings.Contains(string(body), "shop") {
		t.Errorf("without a token: %d %v\n%s", status, err, body)
	}
	if status, _, body, err := r.get(r.admin+status.Path, "Authorization: Bearer "+opsToken); err != nil || status != http.StatusOK || !strings.Contains(string(body), `data-site="shop"`) {
		t.Errorf("with one: %d %v\n%s", status, err, body)
	}
	if status, _, body, err := r.get(r.admin+"/status/style.css", "Accept: text/css"); err != nil || status != http.StatusOK || !strings.Contains(string(body), "prefers-color-scheme: dark") {
		t.Errorf("the style: %d %v", status, err)
	}
}

// What operators do, and what becomes of the configuration, is told as events.
func TestStatusPageTellsEvents(t *testing.T) {
	var config Config
	r := start(t, func(c *Config) {
		second := origin.DefaultPlace()
		second.Name, second.URLs = "osaka", []string{"http://127.0.0.1:9"}
		c.Sites[0].Origins = append(c.Sites[0].Origins, second)
		config = *c
	})
	tell := func(words ...string) {
		t.Helper()
		for began := time.Now(); ; {
			_, _, page, err := r.get(r.admin + status.Path)
			if err != nil {
				t.Fatal(err)
			}
			got, missing := wordsOf(t, page, "events"), ""
			for _, w := range words {
				if !strings.Contains(got, w) {
					missing = w
				}
			}
			if missing == "" {
				return
			}
			if time.Since(began) > limit {
				t.Fatalf("no %q among the events: %s", missing, got)
			}
		}
	}
	tell("karui was started")
	if status, _, text := r.call("POST", "/purge", "", purging.Request{Site: "shop", Prefixes: []string{"/img/", "/b"}}); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if status, _, text := r.call("PUT", "/places/osaka", "", PlaceChange{State: "out", For: "1h"}); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if status, _, _ := r.call("PUT", "/places/nowhere", "", PlaceChange{State: "out"}); status != 404 {
		t.Fatalf("%d", status)
	}
	r.next = func() (Config, error) { return config, nil }
	r.hangup <- syscall.SIGHUP
	tell("shop : Purged /img/ and 1 more prefixes", "An operator had something purged", "shop : Place osaka is out an operator's word, until", "An operator asked in vain to take place nowhere out of use refused: no site has a place", "The configuration was reloaded")
	r.next = func() (Config, error) { return Config{}, errors.New("line 3: no") }
	r.hangup <- syscall.SIGHUP
	tell("The configuration cannot be used and stays as it was")
}
