package promql

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const page = "## Metrics\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n" +
	"| `karui_requests_total` | counter | site, outcome | Requests. |\n| `karui_took_seconds` | histogram | outcome | Time. |\n| `karui_flights` | gauge |  | Fetches. |\n" +
	"\n## Words of labels\n\n| label | words |\n|---|---|\n| `outcome` | `hit`, `503_disk` and so on |\n| `outcome` | of heartbeats: `ok` |\n\n## More\n\n| `site` | `never` |\n"

func read(t *testing.T, text string) (*Catalogue, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "metrics.md")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(file)
}

func TestExpressions(t *testing.T) {
	c, err := read(t, page)
	if err != nil {
		t.Fatal(err)
	}
	c.Record("karui:bad:rate5m", "site")
	for expression, want := range map[string]string{
		`sum by (site) (rate(karui_requests_total{outcome=~"503_.+|hit",site=~"$site"}[5m])) > 0.5`: "",
		`histogram_quantile(0.95, sum by (le, outcome) (rate(karui_took_seconds_bucket[5m])))`:      "",
		`karui_flights > on (instance) group_left () (3 * karui_flights)`:                           "",
		`up{job="karui"} == 0 or absent(up{job="karui"})`:                                           "",
		`karui:bad:rate5m{site="shop"} > 2`:                                                         "",
		`karui_requests_total{outcome="ok"}`:                                                        "",
		`sum(rate(karui_requests_total[5m])`:                                                        "parse",
		`karui_request_total`:                                                                       `no metric "karui_request_total"`,
		`karui_took_seconds`:                                                                        `no metric "karui_took_seconds"`,
		`karui_flights{site="shop"}`:                                                                `no label "site"`,
		`sum by (place) (karui_requests_total)`:                                                     `groups by "place"`,
		`karui_requests_total{outcome="503_disc"}`:                                                  `never outcome="503_disc"`,
		`karui_requests_total{outcome=~"hit|stale"}`:                                                `never outcome=~"stale"`,
		`rate(karui_requests_total)`:                                                                "wants a range",
		`range_first(karui_flights)`:                                                                "known functions",
		`{site="shop"}`:                                                                             "names no metric",
		`sum by (le) (rate(karui_took_seconds_bucket{outcome="hit"}[5m])) / on (zone) (karui_flights)`: `groups by "zone"`,
	} {
		_, problems := c.Check(expression)
		switch {
		case want == "" && len(problems) > 0:
			t.Errorf("%s: %v", expression, problems)
		case want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), want)):
			t.Errorf("%s: %v, want one with %q", expression, problems, want)
		}
	}
}

func TestPagesWithoutTables(t *testing.T) {
	for _, text := range []string{"", "## Words of labels\n", strings.ReplaceAll(page, "Words of", "Signs of")} {
		if _, err := read(t, text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
