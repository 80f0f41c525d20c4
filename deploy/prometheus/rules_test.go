package prometheus

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"karui/internal/manual"
	"karui/internal/promql"
)

const (
	rulesFile = "karui.rules.yml"
	testsFile = "karui.rules.test.yml"
	runbook   = "docs/runbook.md"
)

// rule is one of the file; Alert or Record is empty.
type rule struct {
	Alert       string            `yaml:"alert"`
	Record      string            `yaml:"record"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	f, err := os.Open(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 30 {
		t.Fatalf("only %d rules", len(all))
	}
	return all
}

func TestRulesNameWhatThereIs(t *testing.T) {
	c, err := promql.Read("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules(t) {
		if r.Record != "" {
			c.Record(r.Record, "site")
		}
		if _, problems := c.Check(r.Expr); len(problems) > 0 {
			t.Errorf("%s%s: %v", r.Alert, r.Record, problems)
		}
	}
}

// labelUse is how an annotation names a label of what fires.
var labelUse = regexp.MustCompile(`\$labels\.(\w+)`)

func TestAlertsSayWhatToDo(t *testing.T) {
	c, err := promql.Read("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rules(t) {
		if r.Record != "" {
			c.Record(r.Record, "site")
			continue
		}
		if seen[r.Alert] {
			t.Errorf("there are two %s", r.Alert)
		}
		seen[r.Alert] = true
		if !slices.Contains([]string{"page", "ticket", "info"}, r.Labels["severity"]) || len(r.Labels) != 1 {
			t.Errorf("%s has the labels %v", r.Alert, r.Labels)
		}
		if want := runbook + "#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want || len(r.Annotations) != 3 {
			t.Errorf("%s needs a summary, a description and the runbook_url %s, and has %v", r.Alert, want, r.Annotations)
		}
		metrics, _ := c.Check(r.Expr)
		var labels []string
		for _, m := range metrics {
			labels = append(labels, c.Labels(m)...)
		}
		for _, text := range []string{r.Annotations["summary"], r.Annotations["description"]} {
			if text == "" {
				t.Errorf("%s has an empty text", r.Alert)
			}
			for _, m := range labelUse.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(labels, m[1]) {
					t.Errorf("%s says %q, which what it fires for has not: %v", r.Alert, m[0], labels)
				}
			}
		}
	}
}

// Every alert has an entry in the runbook, and every entry below that heading is an
// alert's.
func TestAlertsAreThoseOfTheRunbook(t *testing.T) {
	b, err := os.ReadFile("../../" + runbook)
	if err != nil {
		t.Fatal(err)
	}
	entries := manual.Page{Path: runbook, Text: string(b)}.Entries("Alerts")
	var names []string
	for _, r := range rules(t) {
		if r.Alert != "" {
			names = append(names, r.Alert)
		}
	}
	slices.Sort(names)
	slices.Sort(entries)
	if !slices.Equal(names, entries) {
		t.Errorf("alerts are\n%q,\nentries of the runbook\n%q", names, entries)
	}
}

// The Japanese runbook has a line about each, too.
func TestAlertsAreInTheJapaneseRunbook(t *testing.T) {
	b, err := os.ReadFile("../../docs/runbook.ja.md")
	if err != nil {
		t.Fatal(err)
	}
	var names, lines []string
	for _, r := range rules(t) {
		if r.Alert != "" {
			names = append(names, r.Alert)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(Karui\\w+)` \\|").FindAllStringSubmatch(string(b), -1) {
		lines = append(lines, m[1])
	}
	slices.Sort(names)
	slices.Sort(lines)
	if !slices.Equal(names, lines) {
		t.Errorf("alerts are\n%q,\nlines of the Japanese runbook\n%q", names, lines)
	}
}

func TestPromtoolAgrees(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool (Debian's package prometheus) is not installed")
	}
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", testsFile}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
