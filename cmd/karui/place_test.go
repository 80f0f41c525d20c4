package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"karui/internal/server"
	"karui/proxy/origin"
)

// operatorsSide answers as karui's admin listener would, and gives what it is asked.
func operatorsSide(t *testing.T) (url string, asked *string) {
	t.Helper()
	asked = new(string)
	answer := server.PlacesAnswer{Sites: []origin.PlacesStatus{
		{
			Site: "shop", Retries: "cut", Level: 2, Places: []origin.PlaceStatus{
				{Name: "tokyo", State: origin.StateOut, Until: time.Now().Add(time.Hour), Weight: 1, Addresses: 1},
				{Name: "osaka", State: origin.StateDown, InUse: true, Weight: 2.5, Addresses: 2, AddressesDown: 2, Tries: 7, Unavailable: 5, TimedOut: 1, Overloaded: 1},
			},
		},
		{Site: "other", Retries: "on", Places: []origin.PlaceStatus{{Name: "tokyo", State: origin.StateIn, InUse: true, Addresses: 2, AddressesDown: 1}}},
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*asked = strings.TrimSpace(r.Method + " " + r.RequestURI + " " + string(body))
		if strings.Contains(r.RequestURI, "nara") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error": {"code": "not_found", "message": "no site has a place \"nara\"", "remedy": "`+"`karui place` lists them"+`"}}`)
			return
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestPlaceAndRetry(t *testing.T) {
	url, asked := operatorsSide(t)
	for line, want := range map[string]string{
		"place":                         "GET /api/v1/places",
		"place tokyo out --for 90m":     `PUT /api/v1/places/tokyo {"state":"out","for":"1h30m0s"}`,
		"place tokyo out --site shop":   `PUT /api/v1/places/tokyo {"state":"out","site":"shop"}`,
		"place a/b in":                  `PUT /api/v1/places/a%2Fb {"state":"in"}`,
		"retry":                         "GET /api/v1/retry",
		"retry off --for 6h":            `PUT /api/v1/retry {"mode":"off","for":"6h0m0s"}`,
		"retry auto --site shop":        `PUT /api/v1/retry {"mode":"auto","site":"shop"}`,
		"retry off --json --site other": `PUT /api/v1/retry {"mode":"off","site":"other"}`,
		"place --site shop --for 1h":    "",
		"place tokyo":                   "",
		"place tokyo up":                "",
		"place tokyo in --for 1h":       "",
		"place tokyo out --for -1h":     "",
		"retry on":                      "",
		"retry off now":                 "",
		"retry --for 1h":                "",
	} {
		*asked = ""
		code, stdout, stderr := karui(t, append(strings.Fields(line), "--admin", url)...)
		if want == "" {
			if code != 2 || *asked != "" || stdout != "" || strings.Contains(stderr, "takes no argument") {
				t.Errorf("%s: %d, asked %q: %s%s", line, code, *asked, stdout, stderr)
			}
			continue
		}
		if code != 0 || *asked != want || stdout == "" || stderr != "" {
			t.Errorf("%s: %d, asked %q, want %q: %s%s", line, code, *asked, want, stdout, stderr)
		}
		if strings.Contains(line, "--site shop") && strings.Contains(stdout, "other: retries") {
			t.Errorf("%s tells of another site:\n%s", line, stdout)
		}
		if answer := (server.PlacesAnswer{}); strings.Contains(line, "--json") && (json.Unmarshal([]byte(stdout), &answer) != nil || len(answer.Sites) != 1) {
			t.Errorf("%s:\n%s", line, stdout)
		}
	}
	code, stdout, _ := karui(t, "place", "--admin", url)
	for _, part := range []string{
		"shop: retries cut, level 2", "tokyo                out until ", "osaka                down, asked all the same as there is no other; weight 2.5; last minute: 7 tries, 1 timed out, 5 unavailable, 1 overloaded",
		"tokyo                in, 1 of 2 addresses down",
	} {
		if code != 0 || !strings.Contains(stdout, part) {
			t.Errorf("%d, without %q:\n%s", code, part, stdout)
		}
	}
	if !regexp.MustCompile(`tokyo +out until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d;`).MatchString(stdout) {
		t.Errorf("the time bears no zone:\n%s", stdout)
	}
	if code, _, stderr := karui(t, "place", "nara", "out", "--admin", url); code != 2 || !strings.Contains(stderr, `no site has a place "nara"`) {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestSiteThatThereIsNot(t *testing.T) {
	url, _ := operatorsSide(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/dial") {
			_, _ = io.WriteString(w, `{"name": "full", "mode": "auto"}`)
			return
		}
		_, _ = io.WriteString(w, `{"sites": [{"site": "shop"}]}`)
	}))
	t.Cleanup(s.Close)
	for _, line := range []string{"place --site nope", "retry --site nope", "retry --json --site nope", "dial --site nope", "dial --json --site nope"} {
		if strings.HasPrefix(line, "dial") {
			url = s.URL
		}
		code, stdout, stderr := karui(t, append(strings.Fields(line), "--admin", url)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, `no site "nope"`) {
			t.Errorf("%s: %d %s%s", line, code, stdout, stderr)
		}
	}
	if code, stdout, stderr := karui(t, "dial", "--site", "shop", "--admin", s.URL); code != 0 || stderr != "" {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}
