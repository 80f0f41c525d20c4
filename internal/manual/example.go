package manual

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Program is whose configuration an example is.
type Program string

// The programs, and what is neither's.
const (
	Karui    Program = "karui"
	Watchdog Program = "karui-watchdog"
	Foreign  Program = "another program"
)

// Example is a code block marked yaml: a configuration, or a part of one.
type Example struct {
	Page string
	// Line counts from 1.
	Line int
	Text string
}

// String names the place.
func (e Example) String() string { return fmt.Sprintf("%s:%d", e.Page, e.Line) }

var yamlFence = regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```")

// Examples lists the examples of a page.
func (p Page) Examples() []Example {
	var all []Example
	for _, m := range yamlFence.FindAllStringSubmatchIndex(p.Text, -1) {
		all = append(all, Example{p.Path, 2 + strings.Count(p.Text[:m[0]], "\n"), p.Text[m[2]:m[3]]})
	}
	return all
}

// Keys by which an example is told to be whose: those at the top, those of a site, and
// those of other programs that the pages speak of.
var (
	karuiKeys = []string{
		"listen", "drain", "log", "limits", "admin", "edge", "ping", "first_response", "ttl", "convert", "cache", "cluster", "disk",
		"stress", "origin", "retry", "dial",
	}
	karuiSite    = []string{"hosts", "origins", "formats", "quality", "png", "query", "cookies", "classes", "include", "exclude", "keep", "distribution"}
	watchdogKeys = []string{"interval", "state_dir", "deploy_timeout", "proxy_deadline", "heartbeat_url", "control_urls", "mail"}
	watchdogSite = []string{"ping_url", "ping_headers", "origin_url", "viewer_url", "distribution_id", "degrade", "restore", "after_restore"}
	foreignKeys  = []string{"scrape_configs", "rule_files", "services"} // of Prometheus, and of compose
)

// Whole completes an example to a configuration that can be loaded, with what lacks
// from skeleton, which has one site: whole keys, and keys of sites. An example of keys
// of a site alone is put into that site. Each secret in a file is looked for where
// secret says for its path. It also says whose configuration it is; the error is for one of nobody.
func (e Example) Whole(skeletons map[Program]string, secret func(path string) string) (Program, string, error) {
	var given map[string]any
	if err := yaml.Unmarshal([]byte(e.Text), &given); err != nil {
		return "", "", fmt.Errorf("%s: %w", e, err)
	}
	whose, insideSite := e.whose(given)
	switch whose {
	case "":
		return "", "", fmt.Errorf("%s: neither karui's configuration, nor the watchdog's, nor one that is known to be another program's", e)
	case Foreign:
		return Foreign, "", nil
	}
	var base map[string]any
	if err := yaml.Unmarshal([]byte(skeletons[whose]), &base); err != nil {
		return "", "", fmt.Errorf("skeleton of %s: %w", whose, err)
	}
	site, err := onlySite(base)
	if err != nil {
		return "", "", err
	}
	if insideSite {
		given = map[string]any{"sites": []any{given}}
	}
	for key, value := range given {
		base[key] = value
	}
	sites, _ := base["sites"].([]any)
	for _, s := range sites {
		if s, ok := s.(map[string]any); ok {
			for key, value := range site {
				if _, has := s[key]; !has {
					s[key] = value
				}
			}
		}
	}
	b, err := yaml.Marshal(base)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", e, err)
	}
	return whose, secretFile.ReplaceAllStringFunc(string(b), func(found string) string {
		return "file:" + secret(strings.TrimPrefix(found, "file:"))
	}), nil
}

var secretFile = regexp.MustCompile(`file:/[^\s"',\]}]+`)

// whose tells whose the example is, and whether its keys are those of a site.
func (Example) whose(given map[string]any) (p Program, insideSite bool) {
	has := func(in map[string]any, keys []string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { _, ok := in[k]; return ok })
	}
	first := map[string]any{}
	if sites, ok := given["sites"].([]any); ok && len(sites) > 0 {
		first, _ = sites[0].(map[string]any)
	}
	switch {
	case has(given, foreignKeys):
		return Foreign, false
	case has(given, watchdogKeys), has(first, watchdogSite):
		return Watchdog, false
	case has(given, karuiKeys), has(first, karuiSite):
		return Karui, false
	case has(given, watchdogSite):
		return Watchdog, true
	case has(given, karuiSite):
		return Karui, true
	}
	return "", false
}

func onlySite(skeleton map[string]any) (map[string]any, error) {
	if sites, ok := skeleton["sites"].([]any); ok && len(sites) == 1 {
		if site, ok := sites[0].(map[string]any); ok {
			return site, nil
		}
	}
	return nil, fmt.Errorf("the skeleton needs one site")
}
