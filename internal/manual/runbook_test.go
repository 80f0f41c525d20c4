package manual

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every entry of the runbook says all six things, in their order.
func TestEntriesOfTheRunbookAreWhole(t *testing.T) {
	for file, parts := range map[string][]string{
		"runbook.md":    {"Means:", "Viewers:", "Look:", "Do:", "Do not:", "Over:"},
		"runbook.ja.md": {"意味:", "閲覧者への影響:", "確認:", "対応:", "してはいけないこと:", "終了の目安:"},
	} {
		b, err := os.ReadFile(filepath.Join("..", "..", "docs", file))
		if err != nil {
			t.Fatal(err)
		}
		entries := strings.Split(string(b), "\n### ")[1:]
		if len(entries) < 10 {
			t.Errorf("%s has %d entries", file, len(entries))
		}
		for _, entry := range entries {
			entry, _, _ = strings.Cut(entry, "\n## ")
			var got []string
			for line := range strings.Lines(entry) {
				if rest, ok := strings.CutPrefix(line, "* **"); ok {
					name, text, _ := strings.Cut(rest, "**")
					got = append(got, name)
					if len(strings.TrimSpace(text)) < 5 {
						t.Errorf("%s: %.30q has nothing under %q", file, entry, name)
					}
				}
			}
			if !slices.Equal(got, parts) {
				t.Errorf("%s: %.30q has %q", file, entry, got)
			}
		}
	}
}

func TestEntries(t *testing.T) {
	p := Page{Text: "### Zero\n## One\n### A\n```\n### not this\n```\n### B b\n## Two\n### C\n"}
	if got := p.Entries("One"); !slices.Equal(got, []string{"A", "B b"}) {
		t.Errorf("%q", got)
	}
}
