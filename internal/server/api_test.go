package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"karui/convert"
	"karui/internal/api"
	"karui/internal/origintest"
	"karui/internal/sample"
)

const (
	opsToken   = "ops-token-0123"
	staffToken = "staff-token-0123"
)

func withTokens(c *Config) {
	c.Admin.Tokens = []TokenConfig{
		{Name: "ops", Token: opsToken, Rights: []string{"read", "dial"}},
		{Name: "staff", Token: staffToken, Rights: []string{"read"}, Sites: []string{"blog"}},
	}
	blog := c.Sites[0]
	blog.ID, blog.Default, blog.Hosts = "blog", false, []string{"blog.example.com"}
	c.Sites = append(c.Sites, blog)
}

// operate asks the API and reads the answer into out, unless that is nil.
func (r *running) operate(method, path, token string, out any) (status int) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.admin+api.Prefix+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if out != nil {
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
			r.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return resp.StatusCode
}

func TestStats(t *testing.T) {
	r := start(t, withTokens)
	r.origin.Set("/photo.jpg", origintest.Image("image/jpeg", sample.Photo()))
	r.until(r.url+"/photo.jpg", func(_ int, h http.Header) bool { return h.Get("X-Karui") == "hit" }, "Accept: image/webp")
	var all, own api.Stats
	// An answer is counted when it has been sent, so its viewer may be here first.
	for began := time.Now(); time.Since(began) < limit && (len(all.Sites) == 0 || all.Sites[0].Requests["hit"] == 0); {
		all = api.Stats{}
		if status := r.operate("GET", "/stats", opsToken, &all); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
	if all.Since.IsZero() || len(all.Sites) != 2 || all.Sites[0].ID != "shop" || all.Workers == nil || all.Cache == nil || all.Flights == nil {
		t.Fatalf("%+v", all)
	}
	shop := all.Sites[0]
	if shop.Requests["hit"] == 0 || shop.Variants["webp"] == 0 || shop.SavedBytes == 0 ||
		shop.Decisions["webp"]["converted"] != 1 {
		t.Errorf("%+v", shop)
	}
	if w := all.Workers; w.Fast.Workers != 1 || w.Decisions["converted"] != 1 || w.Fast.CPUSeconds <= 0 {
		t.Errorf("%+v", w)
	}
	if len(all.Cache.Volumes) != 1 || all.Cache.Volumes[0].State != "ok" || all.Cache.HitsMemory+all.Cache.HitsDisk == 0 {
		t.Errorf("%+v", all.Cache)
	}
	if status := r.operate("GET", "/stats", staffToken, &own); status != 200 {
		t.Fatalf("status %d", status)
	}
	if len(own.Sites) != 1 || own.Sites[0].ID != "blog" || own.Workers != nil || own.Cache != nil || own.Flights != nil {
		t.Errorf("a token for one site sees %+v", own)
	}
	if status := r.operate("GET", "/stats", "", nil); status != 401 {
		t.Errorf("without a token: %d", status)
	}
}

func TestQuarantineByAPI(t *testing.T) {
	digest := convert.Digest(bytes.Repeat([]byte{0xab}, 32))
	var pool *convert.Pool
	r := startWith(t, func(c *Config) { withTokens(c) }, func(o *Options) {
		o.Routes = func(p Parts) []api.Route {
			pool = p.Pool
			if p.Origin("shop") == nil || p.Origin("nowhere") != nil || p.Config().Sites[0].ID != "shop" {
				t.Error("the parts are not those of the configuration")
			}
			return []api.Route{{Method: http.MethodGet, Pattern: "/more", Right: api.Read, Handle: func(c *api.Call) (any, error) {
				return map[string]bool{"shop": c.May("shop"), "blog": c.May("blog")}, nil
			}}}
		}
	})
	pool.RestoreQuarantine([]convert.Quarantine{{Digest: digest, Cause: convert.CauseCrash, Until: time.Now().Add(time.Hour), Strikes: 1}})
	var list api.Quarantine
	if status := r.operate("GET", "/quarantine", opsToken, &list); status != 200 || len(list.Items) != 1 {
		t.Fatalf("%d %+v", status, list)
	}
	if q := list.Items[0]; q.Digest != strings.Repeat("ab", 32) || q.Cause != "crash" || !q.Held || q.Until.IsZero() {
		t.Errorf("%+v", q)
	}
	for path, want := range map[string]int{
		"/quarantine/zz": 422, "/quarantine/" + strings.Repeat("cd", 32): 404,
		"/quarantine/" + strings.Repeat("AB", 32): 204,
	} {
		if status := r.operate("DELETE", path, opsToken, nil); status != want {
			t.Errorf("DELETE %s: %d, want %d", path, status, want)
		}
	}
	if status := r.operate("GET", "/quarantine", opsToken, &list); status != 200 || len(list.Items) != 0 {
		t.Errorf("%d %+v", status, list)
	}
	for _, path := range []string{"/quarantine", "/quarantine/" + strings.Repeat("ab", 32)} {
		method := map[bool]string{true: "GET", false: "DELETE"}[path == "/quarantine"]
		if status := r.operate(method, path, staffToken, nil); status != 403 {
			t.Errorf("%s %s with a token for one site: %d", method, path, status)
		}
	}
	var may map[string]bool
	if status := r.operate("GET", "/more", staffToken, &may); status != 200 || may["shop"] || !may["blog"] {
		t.Errorf("%d %v", status, may)
	}
	if !strings.Contains(r.log.String(), `"token":"ops"`) || strings.Contains(r.log.String(), opsToken) {
		t.Error("the log does not say who released it, or tells the token")
	}
}
