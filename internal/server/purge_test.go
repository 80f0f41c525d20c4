package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"karui/internal/api"
	"karui/internal/origintest"
	"karui/internal/purging"
)

// purge asks for a purge as an operator does.
func (r *running) purge(token, body string) (status int, p purging.Purge, refusal api.Error) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.admin+api.Prefix+"/purge", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		purging.Purge
		Error api.Error
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, out.Purge, out.Error
}

func TestPurgesInTheServer(t *testing.T) {
	var config Config
	r := start(t, func(c *Config) {
		withTokens(c)
		c.Admin.Tokens[1].Rights = []string{"purge"}
		config = *c
	})
	picture := func(fill byte) origintest.Answer {
		return origintest.Text(200, "text/css", strings.Repeat(string(fill), 100), origintest.Field{Name: "Cache-Control", Value: "max-age=3600"})
	}
	r.origin.Set("/a.jpg", picture('a'))
	ask := func(host string) string {
		_, _, body, err := r.get(r.url+"/a.jpg", "X-Routing: "+host)
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes.TrimSpace(body[:1]))
	}
	for _, site := range []string{"shop", "blog"} {
		if got := ask(site); got != "a" {
			t.Fatalf("%s has %q", site, got)
		}
	}
	r.origin.Set("/a.jpg", picture('b'))
	if status, _, e := r.purge(staffToken, `{"site": "shop", "prefixes": ["/"]}`); status != 403 || e.Code != api.CodeForbidden {
		t.Errorf("staff of blog on shop: %d %+v", status, e)
	}
	if status, p, e := r.purge(staffToken, `{"site": "blog", "prefixes": ["/A.JPG"]}`); status != 200 || p.State != purging.Done || p.Edge.State != purging.None {
		t.Errorf("%d %+v %+v", status, p, e)
	}
	if got := ask("blog"); got != "b" {
		t.Errorf("blog has %q after its purge", got)
	}
	var list purging.List
	if status := r.operate("GET", "/purge", staffToken, &list); status != 200 || len(list.Sites) != 1 || list.Sites[0].ID != "blog" || len(list.Purges) != 1 {
		t.Errorf("%d %+v", status, list)
	}
	// The page is for everybody: it holds nothing.
	status, header, body, err := r.get(r.admin + "/purge")
	if err != nil || status != 200 || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") || bytes.Contains(body, []byte("blog")) {
		t.Errorf("%d %v %v", status, header, err)
	}
	// A reload changes what has an edge.
	config.Sites = slices.Clone(config.Sites)
	config.Sites[1].Distribution.ID = "E123"
	r.next = func() (Config, error) { return config, nil }
	r.hangup <- syscall.SIGHUP
	for list.Sites[0].Distribution == "" {
		if status := r.operate("GET", "/purge", staffToken, &list); status != 200 {
			t.Fatal(status)
		}
	}
	if list.Sites[0].Distribution != "E123" {
		t.Errorf("%+v", list.Sites)
	}
}

func TestRoutesOfPurgesAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range (&purging.Service{}).Routes() {
		if row := "`" + r.Method + " " + api.Prefix + r.Pattern + "`"; !strings.Contains(string(b), row) {
			t.Errorf("docs/metrics.md lacks %s", row)
		}
	}
}
