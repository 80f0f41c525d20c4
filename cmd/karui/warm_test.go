package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const warmConfig = `
edge: { secrets: [a-secret-of-the-edge-1234], routing_header: X-Site }
sites:
  - { id: shop, hosts: [www.example.com], formats: [avif, webp], query: [v], origins: [{ name: main, urls: ["https://origin.example.com"] }] }
  - { id: news, origins: [{ name: main, urls: ["https://origin.example.com"] }] }
`

func TestWarmUsage(t *testing.T) {
	dir := t.TempDir()
	file, list := filepath.Join(dir, "karui.yaml"), filepath.Join(dir, "list.txt")
	for name, text := range map[string]string{file: warmConfig, list: "/a.jpg\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"":                                            "--site is missing",
		"--site shop":                                 "name a --sitemap, a --page or a --list",
		"--site shp --list LIST":                      `no site has the id "shp"; the configuration has shop, news`,
		"--site shop --list nowhere.txt":              "nowhere.txt: no such file",
		"--site shop --list /":                        "/ is a folder",
		"--site shop --list - --page -":               "can be read only once",
		"--site shop --list LIST -c none":             "none",
		"--site shop --list LIST --rate 5":            `--rate is "5"`,
		"--site shop --list LIST --rate 5/d":          `--rate is "5/d"`,
		"--site shop --list LIST --rate 0/s":          `--rate is "0/s"`,
		"--site shop --list LIST --rate NaN/s":        `--rate is "NaN/s"`,
		"--site shop --list LIST --parallel 0":        "--parallel is 0",
		"--site shop --list LIST --max-images 0":      "--max-images is 0",
		"--site shop --list LIST --patience -1s":      "must be more than 0",
		"--site shop --list LIST --format heic":       "the formats of site shop are avif, webp",
		"--site shop --list LIST --proxy example.com": `--proxy is "example.com"`,
		"--site shop --list LIST --proxy http://a/b":  `--proxy is "http://a/b"`,
		"--site shop --list LIST extra":               `takes no argument, but "extra" is one`,
	} {
		args := []string{"warm"}
		if !strings.Contains(line, "-c ") {
			args = append(args, "--config", file)
		}
		for word := range strings.FieldsSeq(strings.ReplaceAll(line, "LIST", list)) {
			args = append(args, word)
		}
		if code, stdout, stderr := karui(t, args...); code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s%s", line, code, stdout, stderr)
		}
	}
}

// What the configuration says of the edge and of the site is what the proxy is asked with.
func TestWarmAsksAsTheEdge(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "www.example.com" || r.Header.Get("X-Site") != "shop" || r.Header.Get("X-Karui-Key") != "a-secret-of-the-edge-1234" {
			w.Header().Set("X-Karui-Reason", "secret")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		asked = append(asked, r.Header.Get("Accept")+" "+r.RequestURI)
		w.Header().Set("X-Karui", "original")
		_, _ = w.Write([]byte("an image"))
	}))
	defer proxy.Close()
	dir := t.TempDir()
	_, port, err := net.SplitHostPort(proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	file, list := filepath.Join(dir, "karui.yaml"), filepath.Join(dir, "list.txt")
	for name, text := range map[string]string{
		file: "listen: \":" + port + "\"\nadmin: { listen: \"127.0.0.1:1\" }\n" + warmConfig,
		list: "/a.jpg?v=1&x=2\nhttps://www.example.com/a.jpg?x=3&v=1\nhttps://elsewhere.example/b.jpg\n//c.jpg\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"warm", "--config", file, "--site", "shop", "--list", list, "--state", filepath.Join(dir, "state"), "--parallel", "1", "--rate", "1000/s", "--json"}
	code, stdout, stderr := karui(t, args...)
	var report struct {
		Images  int `json:"images"`
		Foreign int `json:"other_hosts"`
		Formats []struct{ Kept int }
	}
	if err := json.Unmarshal([]byte(stdout), &report); code != 0 || err != nil || report.Images != 1 || report.Foreign != 2 || len(report.Formats) != 2 || report.Formats[0].Kept != 1 {
		t.Fatalf("%d %v %s%s", code, err, stdout, stderr)
	}
	if len(asked) != 2 || asked[0] != "image/avif /a.jpg?v=1" || asked[1] != "image/webp /a.jpg?v=1" {
		t.Errorf("%q", asked)
	}
	// Without the admin listener it is said once that nobody knows the load.
	if strings.Count(stderr, "the proxy's load is not known") > 1 {
		t.Error(stderr)
	}
	if code, stdout, stderr := karui(t, append(args[:len(args)-1:len(args)-1], "--dry-run", "--again")...); code != 0 || stdout != "/a.jpg?v=1\n" || !strings.Contains(stderr, "1 image of the site") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	// Another key than the proxy's ends it at once.
	t.Setenv("KARUI_EDGE_SECRETS", `["another-secret-of-the-edge"]`)
	if code, _, stderr := karui(t, append(args, "--again")...); code != 1 || !strings.Contains(stderr, "edge.secrets") || !strings.Contains(stderr, "without --again goes on") {
		t.Errorf("%d %s", code, stderr)
	}
}

// A site without hosts has its paths warmed, and says of URLs what helps.
func TestWarmWithoutHosts(t *testing.T) {
	dir := t.TempDir()
	file, paths, urls := filepath.Join(dir, "karui.yaml"), filepath.Join(dir, "paths.txt"), filepath.Join(dir, "urls.txt")
	for name, text := range map[string]string{file: warmConfig, paths: "/a.jpg\n", urls: "https://www.example.com/a.jpg\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"warm", "--config", file, "--site", "news", "--dry-run", "--list"}
	if code, stdout, stderr := karui(t, append(args, paths)...); code != 0 || stdout != "/a.jpg\n" {
		t.Errorf("%d %q %s", code, stdout, stderr)
	}
	if code, _, stderr := karui(t, append(args, urls)...); code != 1 || !strings.Contains(stderr, "karui: no image of site news was found: site news has no hosts in the configuration") {
		t.Errorf("%d %s", code, stderr)
	}
	if code, stdout, stderr := karui(t, append(args, urls, "--host", "www.example.com")...); code != 0 || stdout != "/a.jpg\n" {
		t.Errorf("%d %q %s", code, stdout, stderr)
	}
}
