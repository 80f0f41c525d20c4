package purging

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"karui/internal/api"
)

// who are the tokens of the tests: of each set of sites, with and without the right.
func who() []api.Token {
	var tokens []api.Token
	for name, sites := range map[string][]string{"shop": {"shop"}, "blog": {"blog"}, "both": {"shop", "blog"}, "gone": {"gone"}, "all": nil} {
		for right, rights := range map[string][]api.Right{
			"may": {api.Purge}, "not": {api.Read, api.Dial}, "any": {api.Read, api.Purge, api.Dial},
		} {
			tokens = append(tokens, api.Token{Name: name + "-" + right, Secret: "token-" + name + "-" + right, Rights: rights, Sites: sites})
		}
	}
	return tokens
}

// ask sends one request with a token.
func ask(h http.Handler, token, method, path, body string) (int, string) {
	r := httptest.NewRequest(method, api.Prefix+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// Every token with every right and every set of sites, on every site, for every
// route: the staff of one site purges its own pictures and sees nothing else.
func TestTokens(t *testing.T) {
	inLab(t, func(l *lab) {
		h := api.New(api.Options{Routes: l.Routes(), Tokens: who(), Log: slog.New(slog.DiscardHandler)})
		owned := map[string]string{}
		for _, site := range []string{"shop", "blog", "plain"} {
			owned[site] = l.purge(site, "/secret-of-"+site+"/").ID
		}
		for _, token := range who() {
			name, right, _ := strings.Cut(token.Name, "-")
			for _, site := range []string{"shop", "blog", "plain", "nowhere"} {
				before := len(l.proxy.asked)
				mine := len(token.Sites) == 0 || slices.Contains(token.Sites, site)
				want := map[bool]int{true: 200, false: 403}[right != "not" && mine]
				if want == 200 && site == "nowhere" {
					want = 404 // who may purge all sites is told that there is none
				}
				for _, edge := range []bool{true, false} {
					status, body := ask(h, token.Secret, "POST", "/purge", fmt.Sprintf(`{"site": %q, "prefixes": ["/x/"], "edge": %v}`, site, edge))
					if status != want {
						t.Errorf("%s purges %s: %d %s, want %d", token.Name, site, status, body, want)
					}
				}
				if n := len(l.proxy.asked) - before; n != map[bool]int{true: 2, false: 0}[want == 200] {
					t.Errorf("%s purges %s: the proxy was asked %d times", token.Name, site, n)
				}
				if site == "nowhere" {
					continue
				}
				if status, body := ask(h, token.Secret, "GET", "/purge/"+owned[site], ""); want == 200 && status != 200 || want != 200 && (status == 200 || strings.Contains(body, "secret-of")) {
					t.Errorf("%s looks at a purge of %s: %d %s", token.Name, site, status, body)
				}
			}
			status, body := ask(h, token.Secret, "GET", "/purge", "")
			if want := map[bool]int{true: 200, false: 403}[right != "not"]; status != want {
				t.Errorf("%s lists: %d", token.Name, status)
			}
			for site := range owned {
				mine := right != "not" && (name == "all" || slices.Contains(token.Sites, site))
				if strings.Contains(body, "secret-of-"+site) != mine || strings.Contains(body, `"id": "`+site+`"`) != mine {
					t.Errorf("%s lists what is of %s: %s", token.Name, site, body)
				}
			}
			l.settle()
		}
		for _, token := range []string{"", "wrong-token"} {
			for _, c := range [][2]string{{"GET", "/purge"}, {"GET", "/purge/" + owned["shop"]}, {"POST", "/purge"}} {
				if status, body := ask(h, token, c[0], c[1], ""); status != 401 || strings.Contains(body, "secret-of") {
					t.Errorf("%q %v: %d %s", token, c, status, body)
				}
			}
		}
	})
}

// settle lets all purges end, so that bounds are not what a test meets.
func (l *lab) settle() {
	for _, p := range l.List(func(string) bool { return true }, 2*maxRecords).Purges {
		l.ended(p.ID)
	}
}

func TestRequests(t *testing.T) {
	inLab(t, func(l *lab) {
		h := api.New(api.Options{Routes: l.Routes(), Tokens: who(), Log: slog.New(slog.DiscardHandler)})
		for name, c := range map[string]struct {
			body   string
			status int
			want   string
		}{
			"no site":       {`{"prefixes": ["/"]}`, 422, `such as \"site\": \"shop\"`},
			"no prefixes":   {`{"site": "shop"}`, 422, "there is no prefix"},
			"one string":    {`{"site": "shop", "prefixes": "/"}`, 422, `prefixes is a string`},
			"edge is text":  {`{"site": "shop", "prefixes": ["/"], "edge": "no"}`, 422, "edge is a string"},
			"unknown field": {`{"site": "shop", "paths": ["/"]}`, 422, "there is no field"},
			"no slash":      {`{"site": "shop", "prefixes": ["/a", "b"]}`, 422, "does not begin with a slash"},
			"no path":       {`{"site": "shop", "prefixes": ["https://x"]}`, 422, "is a URL without a path"},
			"nothing":       {"", 422, "there is no site"},
			"too large":     {`{"site": "shop", "prefixes": ["/` + strings.Repeat("x", maxBody) + `"]}`, 413, "over"},
			"good":          {`{"site": "plain", "prefixes": ["/"], "exact": true, "edge": true}`, 200, `"state": "none"`},
		} {
			if status, body := ask(h, "token-all-may", "POST", "/purge", c.body); status != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%s: %d %s, want %d %q", name, status, body, c.status, c.want)
			}
		}
		l.proxy.before = func() error { return errDisk }
		if status, body := ask(h, "token-all-may", "POST", "/purge", `{"site": "shop", "prefixes": ["/"]}`); status != 503 || !strings.Contains(body, `"code": "not_purged"`) {
			t.Errorf("%d %s", status, body)
		}
		if status, body := ask(h, "token-all-may", "GET", "/purge/nothing", ""); status != 404 || !strings.Contains(body, "karui purge --list") {
			t.Errorf("%d %s", status, body)
		}
		for limit, want := range map[string]int{"0": 422, "501": 422, "x": 422, "500": 200} {
			if status, body := ask(h, "token-all-may", "GET", "/purge?limit="+limit, ""); status != want {
				t.Errorf("limit %s: %d %s", limit, status, body)
			}
		}
		l.proxy.before = nil
		l.purge("plain", "/newest/")
		if _, body := ask(h, "token-all-may", "GET", "/purge?limit=1", ""); strings.Count(body, `"prefixes"`) != 1 || !strings.Contains(body, "/newest/") {
			t.Errorf("%s", body)
		}
		var list List
		if _, body := ask(h, "token-all-may", "GET", "/purge", ""); json.Unmarshal([]byte(body), &list) != nil || len(list.Sites) != 4 || len(list.Purges) != 2 || list.Purges[1].By != "all-may" {
			t.Errorf("%+v", list)
		}
	})
}
