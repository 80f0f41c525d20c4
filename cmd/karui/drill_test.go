package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karui/internal/drill"
)

func TestDrill(t *testing.T) {
	code, stdout, stderr := karui(t, "drill", "--fault", "reset", "--fault", "cut early", "--rate", "100%", "--level", "2", "--requests", "50", "--per-second", "500", "--json")
	if code != 0 || stderr != "" {
		t.Fatalf("%d %s", code, stderr)
	}
	var cells struct{ Cells []map[string]any }
	if err := json.Unmarshal([]byte(stdout), &cells); err != nil || len(cells.Cells) != 2 || cells.Cells[1]["fault"] != "cut early" {
		t.Errorf("%v:\n%s", err, stdout)
	}
	_, stdout, _ = karui(t, "drill", "--fault", "slow", "--rate", "100%", "--level", "2", "--requests", "20", "--per-second", "500")
	for line := range strings.Lines(stdout) {
		if n := len([]rune(line)); n > 81 || strings.ContainsAny(line, "│─┌") {
			t.Errorf("%d columns, without a terminal: %s", n, line)
		}
	}
	for _, args := range [][]string{
		{"--fault", "smoke"}, {"--rate", "0%"}, {"--rate", "half"}, {"--level", "7"}, {"--requests", "-3"}, {"--limit", "0s"}, {"--config", "/dev/null"},
	} {
		if code, stdout, stderr := karui(t, append([]string{"drill"}, args...)...); code != 2 || stdout != "" || stderr == "" {
			t.Errorf("%q: %d %s%s", args, code, stdout, stderr)
		}
	}
	code, _, stderr = karui(t, "drill", "--fault", "hang", "--rate", "100%", "--level", "0", "--limit", "100ms")
	if code != 1 || !strings.Contains(stderr, "--limit (100ms) ran out") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestDrillDryRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "karui.yaml")
	text := "sites:\n  - id: shop\n    origins: [{name: tokyo, urls: [https://a.example]}, {name: osaka, urls: [https://b.example]}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := karui(t, "drill", "--config", file, "--dry-run")
	if code != 0 || stderr != "" || strings.ContainsRune(stdout, '│') || strings.Count(stdout, "shop  tokyo  ") != len(drill.Faults()) || !strings.Contains(stdout, "another place") {
		t.Errorf("%d %s\n%s", code, stderr, stdout)
	}
	code, stdout, _ = karui(t, "drill", "--config", file, "--dry-run", "--json")
	var steps []map[string]any
	if err := json.Unmarshal([]byte(stdout), &steps); code != 0 || err != nil || len(steps) != 2*len(drill.Faults()) {
		t.Errorf("%d, %d steps, %v", code, len(steps), err)
	}
}
