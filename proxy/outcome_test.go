package proxy

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every word for what happened to a request is in the documentation: operators read
// it in metrics, in the access log and in answers.
func TestOutcomesAreDocumented(t *testing.T) {
	source, err := os.ReadFile("outcome.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	words := regexp.MustCompile(`(?m)^\s+(did|because)\w+\s+(?:outcome|reason)\s+= "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(words) < 15 {
		t.Fatalf("only %d words found", len(words))
	}
	for _, w := range words {
		word := w[2]
		if w[1] == "because" {
			word = string(reason(word).outcome())
		}
		if !strings.Contains(string(page), "`"+word+"`") {
			t.Errorf("docs/metrics.md does not name %s", word)
		}
	}
}
