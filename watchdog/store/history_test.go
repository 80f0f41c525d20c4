package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/machine"
)

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	site := s.Site("shop")
	h := site.History("a")
	if len(h.Rounds)+len(h.Told) > 0 {
		t.Fatalf("%+v", h)
	}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range maxMarks + 10 {
		h.Mark(Mark{At: start.Add(time.Duration(i) * time.Minute), Verdict: machine.VerdictUp, Order: event.OrderProxy, Asked: 1})
	}
	for i := range maxTold + 5 {
		h.Tell(Told{ID: fmt.Sprint(i), Kind: event.Degrade, At: start})
		h.Tell(Told{ID: fmt.Sprint(i), Kind: event.Degrade, At: start}) // told again after a crash
	}
	if err := site.SaveHistory(h); err != nil {
		t.Fatal(err)
	}
	got := At(dir).Site("shop").History("a")
	if len(got.Rounds) != maxMarks || !got.Rounds[0].At.Equal(start.Add(10*time.Minute)) || len(got.Told) != maxTold || got.Told[maxTold-1].ID != fmt.Sprint(maxTold+4) {
		t.Errorf("%d rounds from %v, %d told", len(got.Rounds), got.Rounds[0].At, len(got.Told))
	}
	if got := site.History("b"); len(got.Rounds) > 0 || got.Target != "b" {
		t.Errorf("that of another target: %+v", got)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "sites", "shop"))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	for _, broken := range []string{"", "{", `{"version":99}`, "[]"} {
		if err := os.WriteFile(filepath.Join(dir, "sites", "shop", "history.json"), []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := site.History("a"); len(got.Rounds) > 0 || got.Version != version {
			t.Errorf("%q: %+v", broken, got)
		}
	}
	if err := site.SaveHistory(got); err != nil || len(site.History("a").Rounds) != maxMarks {
		t.Errorf("after a broken one: %v", err)
	}
}
