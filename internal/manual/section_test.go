package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# Page\n<!-- a -->\n\nold\n\n<!-- b -->\nThe end.\n")
	if err := Section(file, "<!-- a -->", "<!-- b -->", "old\n", false); err != nil {
		t.Error(err)
	}
	err := Section(file, "<!-- a -->", "<!-- b -->", "new", false)
	if err == nil || !strings.Contains(err.Error(), `has "old" and should have "new"`) || !strings.Contains(err.Error(), UpdateVariable) {
		t.Errorf("%v", err)
	}
	if err := Section(file, "<!-- a -->", "<!-- b -->", "new", true); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(file)
	if want := "# Page\n<!-- a -->\n\nnew\n\n<!-- b -->\nThe end.\n"; err != nil || string(b) != want {
		t.Errorf("%v: %q", err, b)
	}
	for _, text := range []string{"", "<!-- a -->\n", "<!-- b -->\n<!-- a -->\n", "<!-- a -->\n<!-- a -->\n<!-- b -->\n"} {
		write(text)
		if err := Section(file, "<!-- a -->", "<!-- b -->", "new", true); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
