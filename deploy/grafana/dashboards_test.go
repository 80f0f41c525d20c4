package grafana

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"karui/internal/promql"
)

// dashboard is what these tests look at of Grafana's model.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type variable struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	Query      json.RawMessage `json:"query"`
	Definition string          `json:"definition"`
	AllValue   string          `json:"allValue"`
	Datasource source          `json:"datasource"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Datasource  source `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	GridPos struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
		Datasource   source `json:"datasource"`
	} `json:"targets"`
}

func read(t *testing.T, file string) dashboard {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return d
}

// catalogue is what a scrape has: the page's metrics, and those of the process and of
// the Go runtime.
func catalogue(t *testing.T) *promql.Catalogue {
	t.Helper()
	c, err := promql.Read("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		c.Record(f.GetName())
	}
	return c
}

var (
	legendLabel = regexp.MustCompile(`{{(\w+)}}`)
	labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
)

func TestDashboards(t *testing.T) {
	c := catalogue(t)
	for _, file := range []string{"karui.json", "karui-watchdog.json"} {
		t.Run(file, func(t *testing.T) {
			d := read(t, file)
			if d.UID+".json" != file || d.Title == "" || d.SchemaVersion < 36 {
				t.Errorf("uid %q, title %q, schema %d", d.UID, d.Title, d.SchemaVersion)
			}
			variables := []string{"__rate_interval"}
			for i, v := range d.Templating.List {
				variables = append(variables, v.Name)
				if i == 0 {
					if v.Name != "datasource" || v.Type != "datasource" || string(v.Query) != `"prometheus"` {
						t.Errorf("the first variable is %+v", v)
					}
					continue
				}
				m := labelValues.FindStringSubmatch(v.Definition)
				if m == nil || !slices.Contains(c.Labels(m[1]), m[2]) || v.AllValue != ".*" || v.Datasource.UID != "${datasource}" {
					t.Errorf("variable %+v", v)
				}
			}
			if !slices.Contains(variables, "site") {
				t.Error("there is no variable for the site")
			}
			panels(t, d, c, variables)
		})
	}
}

func panels(t *testing.T, d dashboard, c *promql.Catalogue, variables []string) {
	t.Helper()
	ids, cells := map[int]bool{}, map[[2]int]string{}
	asked := 0
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %d %q", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" {
					t.Fatalf("%q lies upon %q", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%q is at %+v", p.Title, p.GridPos)
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" {
			t.Errorf("%q lacks an expression, a unit or the data source", p.Title)
		}
		for _, target := range p.Targets {
			asked++
			if target.Datasource != p.Datasource {
				t.Errorf("%q asks %+v", p.Title, target.Datasource)
			}
			metrics, problems := c.Check(plain(t, target.Expr, variables))
			for _, problem := range problems {
				t.Errorf("%q: %v", p.Title, problem)
			}
			var labels []string
			for _, m := range metrics {
				labels = append(labels, c.Labels(m)...)
			}
			for _, m := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.Contains(labels, m[1]) {
					t.Errorf("%q has %q in its legend, and no such label", p.Title, m[0])
				}
			}
		}
	}
	if asked < 15 {
		t.Errorf("only %d expressions", asked)
	}
}

var dollar = regexp.MustCompile(`\$(\w+)`)

// plain checks the variables of an expression, and takes those out that Prometheus
// does not know.
func plain(t *testing.T, expression string, variables []string) string {
	t.Helper()
	for _, m := range dollar.FindAllStringSubmatch(expression, -1) {
		if !slices.Contains(variables, m[1]) {
			t.Errorf("there is no variable %s, in %q", m[0], expression)
		}
	}
	return strings.ReplaceAll(expression, "$__rate_interval", "5m")
}

// Prometheus' own parser takes every expression, where it is at hand.
func TestPromtoolAgrees(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool (Debian's package prometheus) is not installed")
	}
	type record struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var all []record
	for _, file := range []string{"karui.json", "karui-watchdog.json"} {
		for _, p := range read(t, file).Panels {
			for _, target := range p.Targets {
				all = append(all, record{fmt.Sprintf("dashboard:%d", len(all)), strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")})
			}
		}
	}
	// JSON is YAML.
	b, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboards", "rules": all}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
