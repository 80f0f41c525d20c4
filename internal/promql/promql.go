// Package promql checks expressions for Prometheus against the metrics that
// docs/metrics.md lists, which tests of karui and of karui-watchdog keep true.
//
// Guaranteed: an expression passes only if it parses, every metric in it exists,
// every label that it selects or groups by is one of a metric in it, and every value
// that it compares a label with is one of the words that the page gives for that
// label, where it gives any. Functions that only some of Prometheus' relatives have are
// refused, and so are ranges without a length.
//
// Not guaranteed: that an expression says what its author means, nor that Prometheus
// takes every one that passes: the parser is that of a relative. Tests ask promtool as
// well, where there is one.
package promql

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/VictoriaMetrics/metricsql"
)

// Catalogue is what an expression may name.
type Catalogue struct {
	// labels are those of each metric, and words the values of each label that has
	// only some.
	labels map[string][]string
	words  map[string][]string
}

// scraped are labels that Prometheus adds.
var scraped = []string{"instance", "job"}

var (
	row      = regexp.MustCompile("(?m)^\\| `(karui_\\w+)` \\| (counter|gauge|histogram) \\| ([\\w, ]*) \\|")
	wordsRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$")
	span     = regexp.MustCompile("`([^`]+)`")
)

// Read reads the tables of docs/metrics.md.
func Read(file string) (*Catalogue, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	c := &Catalogue{labels: map[string][]string{"up": scraped}, words: map[string][]string{}}
	for _, m := range row.FindAllStringSubmatch(string(b), -1) {
		labels := append(strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' || r == ' ' }), scraped...)
		if m[2] != "histogram" {
			c.labels[m[1]] = labels
			continue
		}
		c.labels[m[1]+"_bucket"] = append(slices.Clone(labels), "le")
		c.labels[m[1]+"_sum"], c.labels[m[1]+"_count"] = labels, labels
	}
	if len(c.labels) == 1 {
		return nil, fmt.Errorf("%s lists no metrics", file)
	}
	_, after, ok := strings.Cut(string(b), "\n## Words of labels\n")
	if !ok {
		return nil, fmt.Errorf("%s has no section %q", file, "Words of labels")
	}
	section, _, _ := strings.Cut(after, "\n## ")
	for _, m := range wordsRow.FindAllStringSubmatch(section, -1) {
		for _, word := range span.FindAllStringSubmatch(m[2], -1) {
			c.words[m[1]] = append(c.words[m[1]], word[1])
		}
	}
	return c, nil
}

// Record adds a metric that a recording rule makes.
func (c *Catalogue) Record(name string, labels ...string) {
	c.labels[name] = append(labels, scraped...)
}

// Has tells whether there is a metric of the name.
func (c *Catalogue) Has(name string) bool { return c.labels[name] != nil }

// Metrics lists all names.
func (c *Catalogue) Metrics() []string {
	var all []string
	for name := range c.labels {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Labels gives the labels of a metric, those that Prometheus adds included.
func (c *Catalogue) Labels(metric string) []string { return c.labels[metric] }

// ranged are the functions used here that want a range, plain those that do not.
var (
	ranged = []string{"rate", "increase", "changes", "delta", "avg_over_time", "max_over_time", "min_over_time", "sum_over_time"}
	plain  = []string{"histogram_quantile", "time", "absent", "clamp_min", "clamp_max", "label_replace", "vector", "timestamp", "sort_desc"}
	groups = []string{"sum", "avg", "max", "min", "count", "topk"}
)

// Check gives all that is wrong with an expression, and the metrics that it names.
func (c *Catalogue) Check(expression string) (metrics []string, problems []error) {
	parsed, err := metricsql.Parse(expression)
	if err != nil {
		return nil, []error{fmt.Errorf("parse %q: %w", expression, err)}
	}
	k := check{catalogue: c}
	metricsql.VisitAll(parsed, k.visit)
	for _, label := range k.grouped {
		if !slices.Contains(k.known, label) {
			k.refuse("groups by %q, which no metric in it has", label)
		}
	}
	for i, problem := range k.problems {
		k.problems[i] = fmt.Errorf("%w, in %q", problem, expression)
	}
	return k.metrics, k.problems
}

// check is one expression being checked.
type check struct {
	catalogue *Catalogue
	metrics   []string
	known     []string // labels of the metrics so far
	grouped   []string // labels that it groups or joins by
	problems  []error
}

func (k *check) refuse(format string, args ...any) {
	k.problems = append(k.problems, fmt.Errorf(format, args...))
}

func (k *check) visit(e metricsql.Expr) {
	switch e := e.(type) {
	case *metricsql.MetricExpr:
		k.metric(e)
	case *metricsql.FuncExpr:
		k.function(e)
	case *metricsql.AggrFuncExpr:
		if !slices.Contains(groups, e.Name) {
			k.refuse("%q is not among the known aggregations", e.Name)
		}
		k.grouped = append(k.grouped, e.Modifier.Args...)
	case *metricsql.BinaryOpExpr:
		k.grouped = append(append(k.grouped, e.GroupModifier.Args...), e.JoinModifier.Args...)
	}
}

func (k *check) function(e *metricsql.FuncExpr) {
	switch {
	case slices.Contains(ranged, e.Name):
		r, ok := e.Args[0].(*metricsql.RollupExpr)
		if !ok || r.Window == nil {
			k.refuse("%s wants a range such as [5m]", e.Name)
		}
	case !slices.Contains(plain, e.Name):
		k.refuse("%q is not among the known functions", e.Name)
	}
}

func (k *check) metric(e *metricsql.MetricExpr) {
	if len(e.LabelFilterss) != 1 || len(e.LabelFilterss[0]) == 0 || e.LabelFilterss[0][0].Label != "__name__" {
		k.refuse("a selector names no metric")
		return
	}
	name := e.LabelFilterss[0][0].Value
	k.metrics = append(k.metrics, name)
	labels := k.catalogue.labels[name]
	if labels == nil {
		k.refuse("there is no metric %q", name)
		return
	}
	k.known = append(k.known, labels...)
	for _, f := range e.LabelFilterss[0][1:] {
		if !slices.Contains(labels, f.Label) {
			k.refuse("%s has no label %q", name, f.Label)
			continue
		}
		k.value(name, f)
	}
}

// value checks what a label is compared with.
func (k *check) value(name string, f metricsql.LabelFilter) {
	words := k.catalogue.words[f.Label]
	if len(words) == 0 || strings.HasPrefix(f.Value, "$") {
		return
	}
	if !f.IsRegexp {
		if !slices.Contains(words, f.Value) {
			k.refuse("%s is never %s=%q", name, f.Label, f.Value)
		}
		return
	}
	for alternative := range strings.SplitSeq(f.Value, "|") {
		form, err := regexp.Compile("^(?:" + alternative + ")$")
		if err != nil {
			k.refuse("%s is compared with %q: %v", f.Label, f.Value, err)
			continue
		}
		if !slices.ContainsFunc(words, form.MatchString) {
			k.refuse("%s is never %s=~%q", name, f.Label, alternative)
		}
	}
}
