package manual

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	pages, err := Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, p := range pages {
		n, broken := p.BrokenLinks("../..")
		links += n
		for _, b := range broken {
			t.Error(b)
		}
	}
	if len(pages) < 5 || links < 10 {
		t.Errorf("only %d links on %d pages", links, len(pages))
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte("# What it's for: `this`, and that\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := Page{"docs/page.md", "## Here\n[a](../README.md) [b](../README.md#what-its-for-this-and-that) [c](#here) [d](https://example.com/x)\n" +
		"[e](README.md) [f](../README.md#nowhere) [g](#there)\n```\n[h](in-code.md)\n```\n"}
	links, broken := p.BrokenLinks(root)
	want := []string{"docs/page.md: README.md is not there", "docs/page.md: ../README.md#nowhere has no such heading", "docs/page.md: #there has no such heading"}
	if links != 6 || !slices.Equal(broken, want) {
		t.Errorf("%d links, broken: %q", links, broken)
	}
}

func TestCommandLinesAreFoundAndParsed(t *testing.T) {
	p := Page{"README.md", "`karui` is run by `karui try\n  FILE --level 2`, not `karui-watchdog try x`.\n\n```sh\nkarui try a   # as it is\n$ karui try b | jq .\nsudo karui try c\nkarui-watchdog run\n```\n"}
	typed, mentioned := p.Commands("karui")
	if !slices.Equal(typed, []string{"karui try a", "karui try b"}) || !slices.Equal(mentioned, []string{"karui try FILE --level 2"}) {
		t.Errorf("%q, %q", typed, mentioned)
	}
	newRoot := func() *cobra.Command {
		root := &cobra.Command{Use: "karui", Args: cobra.NoArgs}
		try := &cobra.Command{Use: "try", Args: cobra.ExactArgs(1), Run: func(*cobra.Command, []string) {}}
		try.Flags().Int("level", 0, "")
		root.AddCommand(try)
		return root
	}
	for line, right := range map[string]bool{
		"karui try a":             true,
		"karui try a --level 2":   true,
		"karui try --help":        true,
		"karui completion SHELL":  true,
		"karui completion bash":   true,
		"karui try":               false,
		"karui try a b":           false,
		"karui try a --level two": false,
		"karui try a --nosuch":    false,
		"karui nosuch":            false,
	} {
		if err := Parse(newRoot, line, false); (err == nil) != right {
			t.Errorf("%s: %v", line, err)
		}
	}
	for line, right := range map[string]bool{"karui try": true, "karui try a b": false, "karui try --nosuch": false} {
		if err := Parse(newRoot, line, true); (err == nil) != right {
			t.Errorf("%s, mentioned: %v", line, err)
		}
	}
}
