package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// purgedSide answers as karui's admin listener would about purges, and gives what it
// is asked.
func purgedSide(t *testing.T) (url string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	answers := map[string]string{
		"done":    `{"id": "abc", "site": "shop", "prefixes": ["/a"], "count": 1, "at": "2026-08-01T10:00:00Z", "state": "done", "edge": {"state": "done", "distribution": "E1", "paths": 2, "completed": 2, "batches": 1, "ended": "2026-08-01T10:00:12Z", "remarks": ["the edge is told /*"]}}`,
		"running": `{"id": "def", "site": "shop", "prefixes": ["/a"], "count": 9, "at": "2026-08-01T10:00:00Z", "state": "running", "edge": {"state": "running", "distribution": "E1", "paths": 20, "completed": 15, "batches": 2}}`,
		"failed":  `{"id": "ghi", "site": "blog", "prefixes": ["/b"], "count": 1, "by": "staff", "at": "2026-08-01T10:00:00Z", "state": "failed", "edge": {"state": "failed", "distribution": "E2", "paths": 1, "failure": {"kind": "denied", "message": "no right", "remedy": "give it"}}}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*asked = append(*asked, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
		answer := answers["done"]
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/api/v1/purge":
			answer = `{"sites": [], "purges": [` + answers["running"] + "," + answers["failed"] + "," + answers["done"] + `]}`
		case strings.HasSuffix(r.URL.Path, "/ghi"), strings.Contains(string(body), "/fail/"):
			answer = answers["failed"]
		case strings.Contains(string(body), `"nix"`):
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error": {"code": "not_found", "message": "there is no site \"nix\"", "remedy": "send one that GET /api/v1/purge lists"}}`
		case strings.HasSuffix(r.URL.Path, "/gone"):
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error": {"code": "not_found", "message": "there is no purge \"gone\" that this token may see"}}`
		case strings.HasSuffix(r.URL.Path, "/jkl"), strings.Contains(string(body), "/full/"):
			answer = strings.Replace(answers["done"], `"count"`, `"remark": "it holds until the next start only: the disk is full; make room", "volatile": true, "count"`, 1)
		case strings.Contains(string(body), "/foreign/"):
			answer = strings.Replace(answers["done"], `"count"`, `"remark": "x is in no sites[].hosts", "count"`, 1)
		case strings.Contains(string(body), "/slow/"):
			answer = answers["running"]
		case strings.Contains(string(body), "/many/"):
			answer = strings.Replace(answers["running"], `"batches": 2`, `"batches": 7`, 1)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestPurge(t *testing.T) {
	url, asked := purgedSide(t)
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte("/from-file/\n\n# a word\nhttps://www.example.com/x.png?v=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sjis := filepath.Join(t.TempDir(), "sjis")
	if err := os.WriteFile(sjis, []byte("/\x8e\xca\x90^/\n/\x95\x5c.gif\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("/good\nimages/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct {
		code   int
		asked  string
		stdout string
		stderr string
	}{
		"--site shop /a": {0, `POST /api/v1/purge {"site":"shop","prefixes":["/a"],"edge":true}`, "edge: distribution E1, 2 paths in 1 invalidation\nedge: done after 12s\n", "note: the edge is told /*\n"},
		"--site shop /b/* https://x/a": {
			0, `POST /api/v1/purge {"site":"shop","prefixes":["/b/","https://x/a"],"edge":true}`, " has purged 2 prefixes of site shop\n", "note",
		},
		"--site shop /写真":             {0, `POST /api/v1/purge {"site":"shop","prefixes":["/%E5%86%99%E7%9C%9F"],"edge":true}`, "has purged", "note"},
		"--site shop /\x8e\xca\x90^/": {0, `POST /api/v1/purge {"site":"shop","prefixes":["/%8E%CA%90^/"],"edge":true}`, "has purged", "note"}, // a terminal in Shift_JIS
		"--site shop --file " + sjis:  {0, `POST /api/v1/purge {"site":"shop","prefixes":["/%8E%CA%90^/","/%95\\.gif"],"edge":true}`, "has purged 2", "note"},
		"--site shop --no-edge --exact /a?v=1": {
			0, `POST /api/v1/purge {"site":"shop","prefixes":["/a?v=1"],"edge":false,"exact":true}`, "has purged", "note",
		},
		"--site shop --file " + list: {0, `POST /api/v1/purge {"site":"shop","prefixes":["/from-file/","https://www.example.com/x.png"],"edge":true}`, "has purged 2", "note"},
		"--site shop /":              {0, `POST /api/v1/purge {"site":"shop","prefixes":["/"],"edge":true}`, "has purged", "note"},
		"--site shop --no-wait /slow/": {
			0, `POST /api/v1/purge {"site":"shop","prefixes":["/slow/"],"edge":true}`, "edge: under way; `karui purge --follow def` waits for it\n", "",
		},
		"--site shop --no-wait /many/": {
			0, `POST /api/v1/purge {"site":"shop","prefixes":["/many/"],"edge":true}`, "7 invalidations", "note: CloudFront takes 15 prefixes at a time, so these go in 7 turns",
		},
		"--site shop /fail/": {1, `POST /api/v1/purge {"site":"shop","prefixes":["/fail/"],"edge":true}`, "has purged", "the proxy has purged, the edge has not: no right\n  remedy: give it\n"},
		"--site shop /full/": {
			1, `POST /api/v1/purge {"site":"shop","prefixes":["/full/"],"edge":true}`, "edge: done after 12s\n",
			"karui: " + url + ": it holds until the next start only: the disk is full; make room\n",
		},
		"--site shop /foreign/": {0, `POST /api/v1/purge {"site":"shop","prefixes":["/foreign/"],"edge":true}`, "edge: done", "note: " + url + ": x is in no sites[].hosts\n"},
		"--follow jkl":          {1, "GET /api/v1/purge/jkl", "edge: done", "it holds until the next start only"},
		"--follow ghi":          {1, "GET /api/v1/purge/ghi", "", "remedy: give it"},
		"--site nix /a":         {2, `POST /api/v1/purge {"site":"nix","prefixes":["/a"],"edge":true}`, "", "has not purged: there is no site \"nix\": name one of those that `karui place` lists"},
		"--follow gone":         {2, "GET /api/v1/purge/gone", "", `there is no purge "gone"`},
		"--list":                {0, "GET /api/v1/purge", "def  ", ""},

		"":                                      {2, "", "", "--site is missing"},
		"/a":                                    {2, "", "", "--site is missing"},
		"--site shop":                           {2, "", "", "say what to purge"},
		"--site shop https://x":                 {2, "", "", "is a URL without a path: write a slash after the host"},
		"--site shop https://x?a /b":            {2, "", "", "is a URL without a path"},
		"--site shop a":                         {2, "", "", "does not begin with a slash"},
		"--site shop --file " + bad:             {2, "", "", bad + `:2: prefix "images/" does not begin`},
		"--site shop --file /dev/null":          {2, "", "", "--file holds no prefix"},
		"--site shop /a --timeout 0s":           {2, "", "", "--timeout is 0s"},
		"--site shop /a --timeout 5":            {2, "", "", "for seconds, write 5s"},
		"--list --follow x":                     {2, "", "", "--list and --follow"},
		"--list /a":                             {2, "", "", "--list and --follow"},
		"--site shop /a --admin " + url:         {2, "", "", "twice"},
		"--site shop /a --admin nowhere":        {2, "", "", "must be an address"},
		"--site shop --no-wait --timeout 1m /a": {2, "", "", "--no-wait"},
	} {
		*asked = nil
		code, stdout, stderr := karui(t, append(append([]string{"purge"}, strings.Fields(line)...), "--admin", url)...)
		if code != want.code || strings.Join(*asked, ";") != want.asked || !strings.Contains(stdout, want.stdout) || !strings.Contains(stderr, want.stderr) || want.stderr == "" && stderr != "" {
			t.Errorf("%s: %d, asked %q\nstdout: %s\nstderr: %s", line, code, *asked, stdout, stderr)
		}
	}
	_, stdout, _ := karui(t, "purge", "--list", "--admin", url, "--site", "blog")
	if want := " blog: /b by staff; edge E2 FAILED\n  no right\n  remedy: give it\n"; !strings.HasPrefix(stdout, "ghi  ") || !strings.HasSuffix(stdout, want) {
		t.Errorf("%q", stdout)
	}
	_, stdout, _ = karui(t, "purge", "--list", "--admin", url)
	if !strings.Contains(stdout, "shop: /a and 8 more; edge E1: 15 of 20 paths in 2 invalidations\n") || !strings.Contains(stdout, "edge E1 done in 12s\n") {
		t.Errorf("%q", stdout)
	}
}

func TestPurgeAsJSON(t *testing.T) {
	url, _ := purgedSide(t)
	for line, want := range map[string]int{"--site shop /a": 0, "--site shop /full/": 1, "--site shop /fail/": 1, "--site shop --no-wait /slow/": 0} {
		code, stdout, _ := karui(t, append(append([]string{"purge", "--json"}, strings.Fields(line)...), "--admin", url)...)
		var out struct {
			Site   string
			Nodes  []struct{ Admin string }
			Purges []struct{ ID, State string }
		}
		if err := json.Unmarshal([]byte(stdout), &out); err != nil || code != want || out.Site != "shop" || len(out.Nodes) != 1 || out.Nodes[0].Admin != url || len(out.Purges) != 1 {
			t.Errorf("%s: %d %v\n%s", line, code, err, stdout)
		}
	}
}
