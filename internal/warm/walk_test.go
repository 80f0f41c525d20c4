package warm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// site is a site's own server.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
}

func newSite(t *testing.T, pages map[string]http.HandlerFunc) *site {
	s := &site{asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.URL.Path]++
		s.mu.Unlock()
		if page := pages[r.URL.Path]; page != nil {
			page(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) times(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

func says(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

// find runs without a proxy, and gives what was found.
func find(t *testing.T, o Options) (*Report, []string) {
	t.Helper()
	var found []string
	o.DryRun, o.Found = true, func(target string) { found = append(found, target) }
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report, found
}

func from(sources ...Source) Options {
	o := options("")
	o.Sources, o.Rate = sources, 10_000
	o.State = Memory("shop", sources)
	return o
}

func TestSources(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{
		"/list":  says("text/plain", "/1.jpg\n# no\n/2.png?a=1\n/2.png?a=1#x\n"),
		"/page":  says("text/html", "<base href=/sub/><img src=3.gif><img src=https://elsewhere.example/x.jpg><img src=/note.txt>"),
		"/pdf":   says("application/pdf", "<img src=no.jpg>"),
		"/moved": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/page", http.StatusFound) },
		"/map": says("text/xml", "<urlset><url><loc>/page</loc></url><url><loc>/pdf</loc></url><url><loc>/moved</loc></url><url><loc>/4.jpg</loc></url>"+
			"<url><loc>/none</loc></url><url><loc>https://elsewhere.example/page</loc></url></urlset>"),
	})
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte("<img src=5.jpg><img src=https://www.example.com/6.jpg>"), 0o600); err != nil {
		t.Fatal(err)
	}
	report, found := find(t, from(Source{Sitemap, s.URL + "/map"}, Source{List, s.URL + "/list"}, Source{Page, file}))
	slices.Sort(found)
	if want := []string{"/1.jpg", "/2.png?a=1", "/4.jpg", "/5.jpg", "/6.jpg", "/sub/3.gif"}; !slices.Equal(found, want) {
		t.Errorf("%q", found)
	}
	if report.Foreign != 3 || report.LeftOut != 2 || report.Unread != 0 || report.Sitemaps != 1 || report.Pages != 4 || report.DeadLinks != 1 || report.Dead[0].Reason != "it was answered with 404 Not Found" {
		t.Errorf("%+v", report)
	}
	o := from(Source{Sitemap, s.URL + "/map"})
	o.Pages = false
	if _, found := find(t, o); !slices.Equal(found, []string{"/4.jpg"}) || s.times("/none") != 1 {
		t.Errorf("without pages: %q", found)
	}
	o = from(Source{List, s.URL + "/list"})
	o.Scope.Keyed = func(string) string { return "" }
	if _, found := find(t, o); !slices.Equal(found, []string{"/1.jpg", "/2.png"}) {
		t.Errorf("where the query is not keyed: %q", found)
	}
	o = from(Source{Page, s.URL + "/page"})
	o.Scope.Extensionless, o.Scope.Exclude = true, []string{"*.txt"}
	if _, found := find(t, o); !slices.Equal(found, []string{"/sub/3.gif"}) {
		t.Errorf("where every path may be an image: %q", found)
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	var s *site
	index := func(to ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<sitemapindex>")
			for _, path := range to {
				_, _ = fmt.Fprintf(w, "<sitemap><loc>%s%s</loc></sitemap>", s.URL, path)
			}
			_, _ = io.WriteString(w, "</sitemapindex>")
		}
	}
	leave := make(chan struct{})
	pages := map[string]http.HandlerFunc{
		"/loop":  index("/loop", "/loop?", "/loop#x"),
		"/many":  index("/1", "/2", "/3", "/4", "/5", "/6"),
		"/large": says("text/xml", "<urlset>"+strings.Repeat(" ", 1<<20)+"</urlset>"),
		"/hang":  func(http.ResponseWriter, *http.Request) { <-leave },
		"/around": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/around?"+r.URL.RawQuery+"x", http.StatusFound)
		},
		"/away": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
	}
	for i := range 10 {
		pages[fmt.Sprintf("/deep%d", i)] = index(fmt.Sprintf("/deep%d", i+1))
	}
	s = newSite(t, pages)
	t.Cleanup(func() { close(leave) })
	for path, want := range map[string]string{
		"/loop": "", "/many": "one of more than 4 sitemaps", "/large": "over 1000000 bytes", "/hang": "no whole answer within",
		"/around": "more than 5 redirects", "/away": "which is none of the site's hosts", "/deep0": "more than 4 sitemaps deep", "/none": "404",
	} {
		o := from(Source{Sitemap, s.URL + path})
		o.Sitemap, o.Sitemaps, o.Fetch = 1_000_000, 4, 5*time.Second
		if path == "/deep0" {
			o.Sitemaps = 100
		}
		if path == "/hang" {
			o.Fetch = 50 * time.Millisecond
		}
		report, _ := find(t, o)
		words := ""
		for _, f := range report.Failures {
			words += f.Reason + "\n"
		}
		if (want == "") != (words == "") || !strings.Contains(words, want) {
			t.Errorf("%s: %s", path, words)
		}
	}
	if n := s.times("/loop"); n != 2 { // with a question mark it is another address
		t.Errorf("the loop was asked %d times", n)
	}
	if n := s.times("/deep6"); n != 0 {
		t.Error("went too deep")
	}
}

// Pages that a sitemap names are not read again while what was found in them is warm;
// those on the command line are.
func TestPagesAreReadOnce(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{
		"/map": says("text/xml", "<urlset><url><loc>/a</loc></url><url><loc>/b</loc></url></urlset>"),
		"/a":   says("text/html", "<img src=/1.jpg>"), "/b": says("text/html", "<img src=/2.jpg>"), "/c": says("text/html", "<img src=/3.jpg>"),
	})
	proxy := newSite(t, map[string]http.HandlerFunc{})
	proxy.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Routing") != "shop" || r.Header.Get("X-Karui-Key") != "hush" || r.Host != "www.example.com" || r.Header.Get("Accept") != "image/webp" {
			http.Error(w, fmt.Sprint(r.Host, r.Header), http.StatusTeapot)
			return
		}
		w.Header().Set("X-Karui", "original")
		_, _ = io.WriteString(w, "an image")
	})
	base, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a", "state.json")
	sources := []Source{{Sitemap, s.URL + "/map"}, {Page, s.URL + "/c"}}
	for range 2 {
		o := from(sources...)
		o.Proxy.URL, o.Proxy.Host, o.Proxy.KeyHeader, o.Proxy.Key = base, "www.example.com", "X-Karui-Key", "hush"
		if o.State, err = OpenState(file, "shop", sources, false); err != nil {
			t.Fatal(err)
		}
		// Nobody else may be at the same work meanwhile.
		if _, err := OpenState(file, "shop", sources, false); err == nil || !strings.Contains(err.Error(), "is in use") {
			t.Errorf("opened twice: %v", err)
		}
		report, err := Run(context.Background(), o)
		if err != nil || report.Images != 3 || report.Forms[0].Kept+report.Forms[0].Before != 3 || !report.Good() {
			t.Fatalf("%v %+v", err, report)
		}
		_ = o.State.Close()
	}
	if s.times("/a") != 1 || s.times("/b") != 1 || s.times("/c") != 2 || s.times("/map") != 2 {
		t.Errorf("%v", s.asked)
	}
	for name, try := range map[string]struct {
		site    string
		sources []Source
		word    string
	}{"site": {"news", sources, "another work"}, "sources": {"shop", sources[:1], "another work"}} {
		if _, err := OpenState(file, try.site, try.sources, true); err == nil || !strings.Contains(err.Error(), try.word) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(file, []byte(`{"name": "somebody's"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenState(file, "shop", sources, true); err == nil || !strings.Contains(err.Error(), "not a state file") {
		t.Error(err)
	}
}

// A site of which no host is known has its paths warmed; of URLs the report says why they
// are left out, and nothing is fetched for it.
func TestASiteWithoutHosts(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	list, urls := file("list", "/1.jpg\n/sub/../2.png?a=1\n"), file("urls", "https://www.example.com/3.jpg\n")
	o := from(Source{List, list}, Source{Sitemap, file("map", "<urlset><url><loc>/page</loc></url><url><loc>/4.jpg</loc></url></urlset>")}, Source{List, urls})
	o.Scope.Hosts = nil
	report, found := find(t, o)
	slices.Sort(found)
	if !slices.Equal(found, []string{"/1.jpg", "/2.png?a=1", "/4.jpg"}) || report.LeftOut != 0 || report.Foreign != 2 || report.Unread != 0 {
		t.Errorf("%q %+v", found, report)
	}
	if words := report.Found(); !strings.Contains(words, "2 left out since they are on other hosts: site shop has no hosts") || !strings.Contains(words, "--host") {
		t.Error(words)
	}
	o = from(Source{List, list}, Source{List, urls})
	o.Scope.Hosts = []string{"www.example.com"}
	if report, found := find(t, o); len(found) != 3 || report.Foreign != 0 || report.Hostless || strings.Contains(report.Found(), "--host") {
		t.Errorf("%q %+v", found, report)
	}
}
