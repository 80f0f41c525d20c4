package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"karui/internal/server"
	"karui/proxy/dial"
)

func TestDial(t *testing.T) {
	asked := ""
	at := time.Date(2026, 8, 1, 18, 0, 0, 0, time.Local)
	answer := server.DialAnswer{
		Status: dial.Status{
			Level: 2, Name: "spare", Mode: "pinned", Until: at.Add(2 * time.Hour), Busy: 0.456, Levels: []string{"full", "lean", "spare", "defer"},
			Sites:   map[string]dial.Pin{"blog": {Level: 3}, "shop": {Level: 0}},
			History: []dial.Move{{At: at, FromName: "full", ToName: "spare", Cause: "pin", Detail: "an operator has set it, until " + at.Add(time.Hour).UTC().Format(time.RFC3339)}},
		},
		Shed: map[string]server.ShedShare{"shop": {Percent: 30, First: 10}},
		Stress: []server.StressGroup{
			{Group: "misses", Site: "shop", Shedding: true, Since: at}, {Group: "hits", MeanSeconds: 0.001, Requests: 9},
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = strings.TrimSpace(r.Method + " " + r.RequestURI + " " + string(body))
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	for line, want := range map[string]string{
		"dial":                                 "GET /api/v1/dial",
		"dial --json":                          "GET /api/v1/dial",
		"dial 2 --for 2h":                      `PUT /api/v1/dial {"level":"2","for":"2h0m0s"}`,
		"dial spare --site shop":               `PUT /api/v1/dial {"level":"spare","site":"shop"}`,
		"dial 2 --for 3d":                      `PUT /api/v1/dial {"level":"2","for":"72h0m0s"}`,
		"dial auto":                            `PUT /api/v1/dial {"level":"auto"}`,
		"dial --shed 30% --site shop --for 1h": `PUT /api/v1/dial {"shed":"30%","for":"1h0m0s","site":"shop"}`,
		"dial 1 --shed 0%":                     `PUT /api/v1/dial {"level":"1","shed":"0%"}`,
		"dial auto --for 1h":                   "",
		"dial --for 1h":                        "",
		"dial 2 3":                             "",
		"dial --shed=":                         "",
	} {
		asked = ""
		code, stdout, stderr := karui(t, append(strings.Fields(line), "--admin", s.URL)...)
		if want == "" {
			if code != 2 || asked != "" || stdout != "" {
				t.Errorf("%s: %d, asked %q: %s%s", line, code, asked, stdout, stderr)
			}
			continue
		}
		if code != 0 || asked != want || stdout == "" || stderr != "" {
			t.Errorf("%s: %d, asked %q, want %q: %s%s", line, code, asked, want, stdout, stderr)
		}
		if got := (server.DialAnswer{}); strings.Contains(line, "--json") && (json.Unmarshal([]byte(stdout), &got) != nil || got.Name != "spare") {
			t.Errorf("%s:\n%s", line, stdout)
		}
		if strings.Contains(line, "--site shop") && strings.Contains(stdout, "blog") {
			t.Errorf("%s tells of another site:\n%s", line, stdout)
		}
	}
	_, stdout, _ := karui(t, "dial", "--admin", s.URL)
	const want = `level 2 (spare) by an operator until 2026-08-01 20:00:00 +00:00; workers 46 % busy; levels: full, lean, spare, defer
blog: level 3 (defer) by an operator
shop: level 0 (full) by an operator
shop: 30 % of requests are turned away, those of its classes first (10 %)
fetches for shop are turned away since 2026-08-01 18:00:00 +00:00: they took too long to their first byte
  2026-08-01 18:00:00 +00:00  full -> spare: pin, an operator has set it, until 2026-08-01 19:00:00 +00:00
`
	if stdout != strings.ReplaceAll(want, "+00:00", at.Format("-07:00")) {
		t.Errorf("got\n%s\nwant\n%s", stdout, want)
	}
}
