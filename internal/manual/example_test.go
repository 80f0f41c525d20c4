package manual

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var skeletons = map[Program]string{
	Karui:    "log: { level: warn }\nsites: [{ id: shop, origins: [here] }]\n",
	Watchdog: "sites: [{ id: shop, ping_url: there }]\n",
}

func TestExamplesAreCompleted(t *testing.T) {
	p := Page{"docs/x.md", "# X\n```sh\nno: yaml\n```\n```yaml\nretry: { mode: off }\n```\ntext\n" +
		"  ```yaml\n  sites: [{ id: blog, quality: 50 }]\n  ```\n```yaml\norigins: [there]\n```\n```yaml\nmail: { from: a }\n```\n" +
		"```yaml\nedge: { secrets: [\"file:/run/a\"] }\n```\n```yaml\nservices: {}\n```\n```yaml\nwho: knows\n```\n```yaml\n[\n```\n"}
	want := []struct {
		program Program
		text    string
	}{
		{Karui, "{log: {level: warn}, retry: {mode: off}, sites: [{id: shop, origins: [here]}]}"},
		{Karui, "{log: {level: warn}, sites: [{id: blog, quality: 50, origins: [here]}]}"},
		{Karui, "{log: {level: warn}, sites: [{id: shop, origins: [there]}]}"},
		{Watchdog, "{mail: {from: a}, sites: [{id: shop, ping_url: there}]}"},
		{Karui, "{edge: {secrets: ['file:/tmp/s']}, log: {level: warn}, sites: [{id: shop, origins: [here]}]}"},
		{Foreign, ""},
		{"", ""},
		{"", ""},
	}
	all := p.Examples()
	if len(all) != len(want) || all[0].String() != "docs/x.md:6" {
		t.Fatalf("%d examples: %v", len(all), all)
	}
	for i, w := range want {
		whose, text, err := all[i].Whole(skeletons, func(string) string { return "/tmp/s" })
		if whose != w.program || (err == nil) != (w.program != "") {
			t.Errorf("%s: %q, %v", all[i], whose, err)
		}
		var got, expected any
		if yaml.Unmarshal([]byte(text), &got) != nil || yaml.Unmarshal([]byte(w.text), &expected) != nil {
			t.Fatal(text, w.text)
		}
		a, _ := yaml.Marshal(got)
		b, _ := yaml.Marshal(expected)
		if string(a) != string(b) {
			t.Errorf("%s:\n%s\nwant\n%s", all[i], a, b)
		}
	}
}

// Every example of the pages is somebody's; those of karui and of the watchdog are
// loaded by the tests of their packages.
func TestExamplesOfThePagesAreKnown(t *testing.T) {
	pages, err := Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	n := map[Program]int{}
	for _, p := range pages {
		for _, e := range p.Examples() {
			whose, _, err := e.Whole(skeletons, func(string) string { return "/tmp/s" })
			if err != nil {
				t.Error(err)
			}
			n[whose]++
		}
		if strings.Count(p.Text, "```yml") > 0 {
			t.Errorf("%s: mark YAML as yaml", p.Path)
		}
	}
	if n[Karui] < 8 || n[Watchdog] < 1 {
		t.Errorf("found only %v", n)
	}
}
