package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"karui/internal/origintest"
	"karui/proxy"
	"karui/proxy/origin"
)

// call speaks to the operators' API.
func (r *running) call(method, path, token string, in any) (status int, answer PlacesAnswer, text string) {
	r.t.Helper()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			r.t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, r.admin+"/api/v1"+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK && path != "/success" {
		if err := json.Unmarshal(b, &answer); err != nil {
			r.t.Fatalf("%s: %v", b, err)
		}
	}
	return resp.StatusCode, answer, string(b)
}

// twoPlaces makes the places tokyo and osaka of the one site, and a site that has
// tokyo alone.
func twoPlaces(t *testing.T, c *Config) (osaka *origintest.Origin) {
	osaka = origintest.New(t)
	tokyo := c.Sites[0].Origins[0]
	tokyo.Name = "tokyo"
	second := tokyo
	second.Name, second.URLs = "osaka", []string{osaka.URL()}
	other := c.Sites[0]
	other.ID, other.Default, other.Origins = "other", false, []origin.PlaceConfig{tokyo}
	c.Sites[0].Origins = []origin.PlaceConfig{tokyo, second}
	c.Sites = append([]proxy.SiteConfig(nil), c.Sites[0], other)
	return osaka
}

func state(t *testing.T, a PlacesAnswer, site, place string) origin.PlaceStatus {
	t.Helper()
	for _, s := range a.Sites {
		for _, p := range s.Places {
			if s.Site == site && p.Name == place {
				return p
			}
		}
	}
	t.Fatalf("no %s of %s in %+v", place, site, a)
	return origin.PlaceStatus{}
}

func TestPlacesAndRetriesAtRunTime(t *testing.T) {
	var osaka *origintest.Origin
	var kept Config
	r := start(t, func(c *Config) {
		osaka = twoPlaces(t, c)
		kept = *c
	})
	for _, o := range []*origintest.Origin{r.origin, osaka} {
		o.SetDefault(func(origintest.Request) origintest.Answer {
			return origintest.Text(http.StatusOK, "text/plain", "hello")
		})
	}
	ask := func(n int) {
		t.Helper()
		for i := range n {
			if status, _, _, err := r.get(fmt.Sprintf("%s/%d.txt", r.url, i)); status != http.StatusOK {
				t.Fatalf("%d, %v", status, err)
			}
		}
	}
	if status, a, text := r.call("GET", "/places", "", nil); status != 200 || !state(t, a, "shop", "tokyo").InUse || len(a.Sites) != 2 {
		t.Fatalf("%d %s", status, text)
	}
	// Out, where there is another one; the site that has tokyo alone keeps it.
	status, a, text := r.call("PUT", "/places/tokyo", "", PlaceChange{State: "out", For: "1h"})
	if status != 200 || state(t, a, "shop", "tokyo").State != origin.StateOut || state(t, a, "other", "tokyo").State != origin.StateIn {
		t.Fatalf("%d %s", status, text)
	}
	ask(20)
	if a, b := r.origin.Count(""), osaka.Count(""); a != 0 || b != 20 {
		t.Errorf("tokyo, which is out, got %d requests, osaka %d", a, b)
	}
	// The last one is never taken out.
	if status, _, text := r.call("PUT", "/places/osaka", "", PlaceChange{State: "out"}); status != 409 || !strings.Contains(text, "never left") {
		t.Errorf("%d %s", status, text)
	}
	if status, _, text := r.call("PUT", "/places/tokyo", "", PlaceChange{State: "out", Site: "other"}); status != 409 {
		t.Errorf("%d %s", status, text)
	}
	if status, a, text := r.call("PUT", "/retry", "", RetryChange{Mode: "off", For: "6h"}); status != 200 || a.Sites[0].Retries != "off" || a.Sites[1].Retries != "off" {
		t.Errorf("%d %s", status, text)
	}
	for path, change := range map[string]any{
		"/places/nara": PlaceChange{State: "out"}, "/places/tokyo": PlaceChange{State: "up"},
		"/places/osaka": PlaceChange{State: "out", For: "a while"}, "/places/tokyo?x": PlaceChange{State: "in", For: "1h"},
		"/retry": RetryChange{Mode: "on"}, "/retry?a": RetryChange{Mode: "off", For: "-1h"}, "/retry?b": RetryChange{Mode: "off", For: "100000h"},
		"/retry?c": RetryChange{Mode: "off", Site: "nosuch"}, "/retry?d": RetryChange{Mode: "auto", For: "3s"},
		"/retry?e": map[string]any{"mode": "off", "for": 3},
	} {
		if status, _, text := r.call("PUT", path, "", change); status != 404 && status != 422 || strings.Contains(text, "RetryChange") {
			t.Errorf("%s %+v: %d %s", path, change, status, text)
		}
	}
	if _, _, body, err := r.get(r.admin + "/metrics"); err != nil ||
		!bytes.Contains(body, []byte(`karui_origin_place_state{place="tokyo",site="shop",state="out"} 1`)) ||
		!bytes.Contains(body, []byte(`karui_origin_tries_total{place="osaka",result="answered",site="shop"} 20`)) ||
		!bytes.Contains(body, []byte(`karui_origin_retries_on{site="shop"} 0`)) {
		t.Errorf("metrics: %v\n%s", err, body)
	}

	// What was set outlives the process, and a reload.
	r.stop()
	err := <-r.ended
	r.ended <- err // for the clean-up
	again := start(t, func(c *Config) { *c = kept })
	_, a, _ = again.call("GET", "/places", "", nil)
	if p := state(t, a, "shop", "tokyo"); p.State != origin.StateOut || p.Until.IsZero() || a.Sites[0].Retries != "off" {
		t.Errorf("after a restart: %+v", a)
	}
	if status, a, text := again.call("PUT", "/places/tokyo", "", PlaceChange{State: "in"}); status != 200 || state(t, a, "shop", "tokyo").State != origin.StateIn {
		t.Errorf("%d %s", status, text)
	}
	if status, a, text := again.call("PUT", "/retry", "", RetryChange{Mode: "auto"}); status != 200 || a.Sites[0].Retries != "on" {
		t.Errorf("%d %s", status, text)
	}
}

func TestTokensOfASiteSetThatSiteOnly(t *testing.T) {
	r := start(t, func(c *Config) {
		twoPlaces(t, c)
		second := c.Sites[0].Origins[1]
		c.Sites[1].Origins = append(c.Sites[1].Origins, second)
		c.Admin.Tokens = []TokenConfig{
			{Name: "all", Token: "all-0123456789", Rights: []string{"read", "dial"}},
			{Name: "shop", Token: "shop-0123456789", Rights: []string{"read", "dial"}, Sites: []string{"shop"}},
			{Name: "look", Token: "look-0123456789", Rights: []string{"read"}},
		}
	})
	if status, _, _ := r.call("PUT", "/places/tokyo", "look-0123456789", PlaceChange{State: "out"}); status != 403 {
		t.Errorf("a token that may only read: %d", status)
	}
	if status, _, _ := r.call("PUT", "/places/tokyo", "shop-0123456789", PlaceChange{State: "out", Site: "other"}); status != 403 {
		t.Errorf("another site's token: %d", status)
	}
	if status, a, text := r.call("PUT", "/places/tokyo", "shop-0123456789", PlaceChange{State: "out"}); status != 200 || len(a.Sites) != 1 {
		t.Errorf("%d %s", status, text)
	}
	if status, _, text := r.call("PUT", "/retry", "shop-0123456789", RetryChange{Mode: "off"}); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	_, a, text := r.call("GET", "/retry", "all-0123456789", nil)
	if state(t, a, "shop", "tokyo").State != origin.StateOut || state(t, a, "other", "tokyo").State != origin.StateIn ||
		a.Sites[0].Site != "other" || a.Sites[0].Retries != "on" || a.Sites[1].Retries != "off" {
		t.Errorf("%s", text)
	}
}
