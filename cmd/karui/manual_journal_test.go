package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// systemd's own lines stand among karui's in the journal, and are no JSON.
func TestJournalCommandsOfThePagesPassOverOtherLines(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	filter := regexp.MustCompile(`\| (jq -\S+) '([^']+)'`)
	found := 0
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if !strings.HasPrefix(line, "journalctl ") || !strings.Contains(line, "| jq ") {
				continue
			}
			found++
			parts := filter.FindStringSubmatch(line)
			if parts == nil || !strings.Contains(parts[1], "R") || !strings.HasPrefix(parts[2], "fromjson? | ") {
				t.Errorf("%s: %q fails at a line that is no JSON: say jq -cR 'fromjson? | …'", page, line)
				continue
			}
			if _, err := exec.LookPath("jq"); err != nil {
				continue
			}
			cmd := exec.CommandContext(t.Context(), "jq", strings.Fields(parts[1])[1], parts[2])
			cmd.Stdin = strings.NewReader("Started karui.service - karui, the image proxy.\n" +
				`{"msg":"request","status":503,"outcome":"miss","ttfb_ms":7,"path":"/a.jpg"}` + "\n")
			if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "\n") != 1 {
				t.Errorf("%s: %q: %v %q, want one line", page, line, err, out)
			}
		}
	}
	if found == 0 {
		t.Error("no page shows how to read the journal")
	}
}
