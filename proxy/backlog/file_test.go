package backlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A pipe in the place of the journal holds nobody up, and is replaced by one.
func TestAPipeIsNoJournal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backlog.journal")
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		b, log := open(t, file, small())
		if !strings.Contains(log.String(), "no regular file") {
			t.Errorf("log: %s", log)
		}
		b.Ask(key("shop", "/a.jpg"), Missing)
		if err := b.Flush(); err != nil {
			t.Error(err)
		}
		b.Close()
	}()
	select {
	case <-opened:
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for the pipe")
	}
	if again, log := open(t, file, small()); names(again) != "shop/a.jpg?0" || log.Len() > 0 {
		t.Errorf("after the restart: %s, log: %s", names(again), log)
	}
}

// A second file of somebody else does not take the place of the first.
func TestEachForeignFileIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backlog.journal")
	for i, name := range []string{".foreign", ".foreign.2"} {
		if err := os.WriteFile(file, fmt.Appendf(nil, "somebody's notes, part %d", i), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, log := open(t, file, small()); !strings.Contains(log.String(), file+name) || len(b.Counts()) > 0 {
			t.Errorf("log: %s", log)
		}
	}
	for i, name := range []string{".foreign", ".foreign.2"} {
		if b, err := os.ReadFile(file + name); err != nil || string(b) != fmt.Sprintf("somebody's notes, part %d", i) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
