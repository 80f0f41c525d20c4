package mail

import (
	"os"
	"slices"
	"strings"
	"testing"

	"karui/internal/manual"
	"karui/watchdog/event"
	"karui/watchdog/settings"
)

// Every kind of mail has an entry in the runbook of its language, which it names, and
// every entry about mails is that of a kind.
func TestMailsAreThoseOfTheRunbook(t *testing.T) {
	for language, page := range map[string]struct{ file, section string }{
		settings.English:  {"docs/runbook.md", "Mails"},
		settings.Japanese: {"docs/runbook.ja.md", "メール"},
	} {
		b, err := os.ReadFile("../../" + page.file)
		if err != nil {
			t.Fatal(err)
		}
		entries := manual.Page{Path: page.file, Text: string(b)}.Entries(page.section)
		var want []string
		for _, kind := range event.Kinds() {
			if states[kind] == "" {
				t.Fatalf("%s has no word for the subject", kind)
			}
			want = append(want, states[kind])
			_, body, err := Text(sample(kind), language, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(body, page.file) || !strings.Contains(body, states[kind]) {
				t.Errorf("the mail about %s does not name its entry in %s:\n%s", kind, page.file, body)
			}
		}
		slices.Sort(want)
		slices.Sort(entries)
		if !slices.Equal(entries, want) {
			t.Errorf("%s has entries for %q, mails are %q", page.file, entries, want)
		}
	}
	if _, body, err := Text(event.Event{Kind: "new"}, settings.English, nil); err != nil || strings.Contains(body, "runbook") {
		t.Errorf("a mail of an unknown kind names an entry: %v\n%s", err, body)
	}
}
