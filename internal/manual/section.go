package manual

import (
	"fmt"
	"os"
	"strings"
)

// UpdateVariable is the environment variable that, set to anything, lets Section
// write instead of compare.
const UpdateVariable = "KARUI_UPDATE_DOCS"

// Section compares the part of a file between two lines of its own, the marks, with
// what it should be: text that a test computed from the program. With update it
// writes it instead. The error says how to write it anew; it is also given where a
// mark is missing or not the only one.
func Section(file, begin, end, text string, update bool) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	before, rest, ok := strings.Cut(string(b), begin+"\n")
	had, after, ok2 := strings.Cut(rest, end+"\n")
	if !ok || !ok2 || strings.Contains(rest, begin+"\n") {
		return fmt.Errorf("%s has not one place between the lines %q and %q", file, begin, end)
	}
	text = "\n" + strings.Trim(text, "\n") + "\n\n"
	switch {
	case had == text:
		return nil
	case !update:
		return fmt.Errorf("%s is not as the program is; write it anew with %s=1 before the same test. The first difference: %s", file, UpdateVariable, difference(had, text))
	}
	if err := os.WriteFile(file, []byte(before+begin+"\n"+text+end+"\n"+after), 0o600); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// difference shows the first line that differs.
func difference(had, want string) string {
	a, b := strings.Split(had, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("the page lacks %q", b[i])
		case i >= len(b):
			return fmt.Sprintf("the page has %q too many", a[i])
		case a[i] != b[i]:
			return fmt.Sprintf("the page has %q and should have %q", a[i], b[i])
		}
	}
	return "none"
}
