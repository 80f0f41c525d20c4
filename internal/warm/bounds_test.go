package warm

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// tally counts what a walk finds.
type tally struct{ images, pages, foreign, leftOut, failures int }

func (s *tally) image(string)                  { s.images++ }
func (s *tally) page(string, []string)         { s.pages++ }
func (s *tally) known(string) ([]string, bool) { return nil, false }
func (s *tally) note(foreign, leftOut int)     { s.foreign += foreign; s.leftOut += leftOut }
func (s *tally) documents(int, int)            {}
func (s *tally) failed(string, error)          { s.failures++ }
func (s *tally) dead(string, error)            { s.failures++ }
func (s *tally) full() bool                    { return false }

// What sitemaps name elsewhere or beyond the limits is counted and not kept.
func TestNothingIsKeptOfWhatIsNotFetched(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{
		"/map": says("text/xml", "<urlset>"+many(5000, "<url><loc>http://f%d.example/</loc></url>")+many(5000, "<url><loc>/page%d</loc></url>")+"</urlset>"),
		"/all": says("text/xml", "<sitemapindex><sitemap><loc>/map</loc></sitemap>"+many(5000, "<sitemap><loc>http://m%d.example/</loc></sitemap>")+"</sitemapindex>"),
	})
	a, _ := resolve(address{}, s.URL)
	scope := &Scope{}
	scope.name(a.host)
	limits := DefaultLimits()
	limits.Pages = 10
	fetch := newFetcher(scope, limits)
	defer fetch.close()
	found := &tally{}
	w := walk{fetch: fetch, scope: scope, limits: limits, pages: true, sink: found, wait: func(context.Context) error { return nil }}
	if err := w.run(t.Context(), []Source{{Sitemap, s.URL + "/all"}}); err != nil {
		t.Fatal(err)
	}
	if found.foreign != 5000 || found.failures != 5000+5000 || w.read != 10 || w.sitemaps != 2 || len(w.seen) != 12 {
		t.Errorf("%+v; %d pages, %d sitemaps, %d are kept", found, w.read, w.sitemaps, len(w.seen))
	}
}

func many(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// All documents together are bounded, and so is what is kept of their images.
func TestTheWholeIsBounded(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{
		"/all": says("text/xml", "<sitemapindex>"+many(20, "<sitemap><loc>/map?%d</loc></sitemap>")+"</sitemapindex>"),
		"/map": says("text/xml", "<urlset>"+many(1000, "<url><loc>/%d.jpg</loc></url>")+"</urlset>"),
	})
	for name, tt := range map[string]struct {
		limit  func(*Limits)
		images int
		reason string
	}{
		"bytes":     {func(l *Limits) { l.Bytes = 100_000 }, 1000, "all documents together have over 100000 bytes"},
		"addresses": {func(l *Limits) { l.Addresses = 3500 }, 1000, "all documents together name over 3500 addresses"},
		"kept":      {func(l *Limits) { l.Kept = 80 }, 12, ""},
	} {
		o := from(Source{Sitemap, s.URL + "/all"})
		tt.limit(&o.Limits)
		report, found := find(t, o)
		if len(found) != tt.images || report.Good() || (tt.reason == "") != (report.Unread == 0) || tt.reason == "" && report.OverLimit == 0 {
			t.Errorf("%s: %d images, %+v", name, len(found), report)
		}
		for _, f := range report.Failures {
			if !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("%s: %s", name, f.Reason)
			}
		}
		if tt.reason != "" && report.Sitemaps > 10 {
			t.Errorf("%s: %d sitemaps were read", name, report.Sitemaps)
		}
	}
}
