package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"karui/internal/command"
	"karui/internal/manual"
)

// notRun are commands of the pages that are not run here, and why.
var notRun = map[string]string{
	"run": "does not end; it has tests of its own", "check": "asks the addresses of the example", "rehearse": "asks CloudFront; it has tests against a double of it",
	"degrade": "asks CloudFront; it has tests against a double of it", "restore": "asks CloudFront; it has tests against a double of it",
}

// What the pages tell people to type works, as far as it can without a network.
func TestCommandLinesOfThePagesWork(t *testing.T) {
	example, err := os.ReadFile("../../docs/watchdog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "watchdog.yaml")
	text := strings.ReplaceAll(string(example), "/var/lib/karui-watchdog", t.TempDir())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	pages, err := manual.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]bool{}
	for _, p := range pages {
		typed, _ := p.Commands("karui-watchdog")
		for _, line := range typed {
			words := strings.Fields(line)[1:]
			if done[line] || strings.HasSuffix(line, " --help") || notRun[words[0]] != "" {
				continue
			}
			done[line] = true
			if at := slices.Index(words, "--config"); at >= 0 {
				words = slices.Delete(words, at, at+2)
			}
			if words[0] != "version" {
				words = append(words, "--config", file)
			}
			var stdout, stderr bytes.Buffer
			if code := command.Run(t.Context(), newRoot(), words, &stdout, &stderr); code != 0 {
				t.Errorf("%s: `%s` ended with %d:\n%s%s", p.Path, line, code, &stdout, &stderr)
			}
		}
	}
	if len(done) < 2 {
		t.Errorf("only %d command lines were run", len(done))
	}
}
