package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"karui/internal/manual"
	"karui/internal/sample"
	"karui/internal/server"
)

// notRun are commands of the pages that are not run here, and why.
var notRun = map[string]string{
	"serve": "does not end; it is what the others are run against", "demo": "does not end; it has tests of its own",
	"drill": "takes a minute; it has tests of its own", "purge": "asks CloudFront; it has tests against a double of it",
	"audit": "reads the site of the example; it has tests of its own",
}

// rig is a server for commands to be run against.
type rig struct {
	config, admin, public, origin, photo, state string
}

func startRig(t *testing.T) rig {
	t.Helper()
	dir := t.TempDir()
	pictures := sample.New()
	var r rig
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/sitemap.xml" {
			_, _ = fmt.Fprintf(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">`+
				`<url><loc>https://www.example.com/</loc><image:image><image:loc>https://www.example.com%s</image:loc></image:image></url></urlset>`, sample.PhotoPath)
			return
		}
		pictures.ServeHTTP(w, q)
	}))
	t.Cleanup(origin.Close)
	r.origin, r.photo, r.state = origin.URL, filepath.Join(dir, "photo.jpg"), filepath.Join(dir, "warm.state")
	if err := os.WriteFile(r.photo, sample.Photo(), 0o600); err != nil {
		t.Fatal(err)
	}
	r.config = file(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: "127.0.0.1:0" }
convert: { workers: 1 }
cache: { volumes: [{ path: %q }] }
sites:
  - id: shop
    hosts: [www.example.com]
    default: true
    origins: [{ name: tokyo, urls: [%q] }, { name: osaka, urls: [%q] }]
`, filepath.Join(dir, "cache"), r.origin, r.origin))
	loaded, err := server.Load(r.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{Config: loaded.Value, Log: t.Output(), Started: func(public, admin net.Addr) {
			r.public, r.admin = "http://"+public.String(), "http://"+admin.String()
			close(started)
		}})
	}()
	t.Cleanup(func() {
		cancel()
		http.DefaultClient.CloseIdleConnections()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-started:
	case err := <-ended:
		ended <- err
		t.Fatalf("did not start: %v", err)
	}
	return r
}

// line makes the arguments of a command line of the pages such that it works here;
// nil for one that is not run.
func (r rig) line(t *testing.T, line string) []string {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(line, "https://www.example.com/sitemap.xml", r.origin+"/sitemap.xml"))[1:]
	if why := notRun[words[0]]; why != "" {
		return nil
	}
	if at := slices.Index(words, "--config"); at >= 0 {
		words = slices.Delete(words, at, at+2)
	}
	switch words[0] {
	case "convert":
		for i, word := range words {
			if strings.HasSuffix(word, ".jpg") {
				words[i] = r.photo
			}
		}
		return append(words, "-o", filepath.Join(t.TempDir(), "variants"))
	case "version":
		return words
	case "config":
		return append(words, "--config", r.config)
	case "warm":
		return append(words, "--config", r.config, "--proxy", r.public, "--admin", r.admin, "--state", r.state, "--rate", "1000/s", "--patience", "30s")
	case "dial", "place", "retry", "healthcheck":
		return append(words, "--admin", r.admin)
	}
	t.Errorf("%q: say here how it is run, or why not", line)
	return nil
}

// What the pages tell people to type works, as far as it can without a network.
func TestCommandLinesOfThePagesWork(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	pages, err := manual.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := startRig(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	on := map[string]string{} // the pages by what they say
	for _, p := range pages {
		typed, _ := p.Commands("karui")
		for _, line := range typed {
			if !strings.HasSuffix(line, " --help") {
				on[line] = p.Path
			}
		}
	}
	lines := slices.Sorted(maps.Keys(on))
	// Filling the cache comes first: others turn requests away, as they are told.
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(strings.TrimPrefix(a, "karui warm"), strings.TrimPrefix(b, "karui warm"))
	})
	done := 0
	for _, line := range lines {
		args := r.line(t, line)
		if args == nil {
			continue
		}
		done++
		if code, stdout, stderr := karui(t, args...); code != 0 {
			t.Errorf("%s: `%s` ended with %d:\n%s%s", on[line], line, code, stdout, stderr)
		}
	}
	if done < 10 {
		t.Errorf("only %d command lines were run", done)
	}
}
