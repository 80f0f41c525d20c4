package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"karui/watchdog/event"
	"karui/watchdog/machine"
	"karui/watchdog/store"
)

func open(t *testing.T) (*store.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func record() store.Record {
	return store.Record{Target: "E1/images", State: machine.State{
		Health: machine.Down, Since: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Order: event.OrderDirect, Known: true,
		Episode: &machine.Episode{ID: "x"}, Intent: &machine.Intent{ID: "y", To: event.OrderProxy},
	}, Pending: []event.Event{{ID: "x", Kind: event.Degrade}}}
}

func TestStateSurvives(t *testing.T) {
	s, _ := open(t)
	site := s.Site("shop")
	rec, note, err := site.Load("E1/images")
	if err != nil || note != "" || rec.State.Health != machine.Unknown {
		t.Fatalf("%+v %q %v", rec, note, err)
	}
	if err := site.Save(record()); err != nil {
		t.Fatal(err)
	}
	rec, note, err = site.Load("E1/images")
	if err != nil || note != "" {
		t.Fatalf("%q %v", note, err)
	}
	want := record()
	want.Version = rec.Version
	a, _ := json.Marshal(rec)
	b, _ := json.Marshal(want)
	if !bytes.Equal(a, b) {
		t.Errorf("%s\n%s", a, b)
	}
}

func TestBrokenStateIsKeptAside(t *testing.T) {
	for name, text := range map[string]string{
		"torn":    `{"version": 1, "state": {"health": "do`,
		"empty":   ``,
		"newer":   `{"version": 99}`,
		"foreign": `[1, 2]`,
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := open(t)
			site := s.Site("shop")
			if err := site.Save(record()); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "sites", "shop", "state.json")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			rec, note, err := site.Load("E1/images")
			if err != nil || rec.State.Health != machine.Unknown || !strings.Contains(note, "cannot be used") {
				t.Fatalf("%+v %q %v", rec, note, err)
			}
			if kept, err := os.ReadFile(file + ".broken"); err != nil || string(kept) != text {
				t.Errorf("%q %v", kept, err)
			}
			if err := site.Save(rec); err != nil {
				t.Fatal(err)
			}
			if _, note, err = site.Load("E1/images"); err != nil || note != "" {
				t.Errorf("%q %v", note, err)
			}
		})
	}
}

func TestAnotherTargetBeginsAnew(t *testing.T) {
	s, _ := open(t)
	site := s.Site("shop")
	if err := site.Save(record()); err != nil {
		t.Fatal(err)
	}
	rec, note, err := site.Load("E2/images")
	if err != nil || rec.State.Known || len(rec.Pending) != 1 || !strings.Contains(note, "E2/images") {
		t.Errorf("%+v %q %v", rec, note, err)
	}
}

func TestOneHoldsTheLock(t *testing.T) {
	s, _ := open(t)
	site := s.Site("shop")
	ctx := t.Context()
	first, err := site.Lock(ctx, "run", 0)
	if err != nil {
		t.Fatal(err)
	}
	var busy *store.BusyError
	if _, err = site.Lock(ctx, "degrade shop", 0); !errors.As(err, &busy) || busy.Holder.PID != os.Getpid() || busy.Holder.What != "run" {
		t.Fatalf("%v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err = site.Lock(gone, "degrade shop", time.Hour); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	other, err := s.Site("blog").Lock(ctx, "run", 0)
	if err != nil {
		t.Fatal(err)
	}
	other.Unlock()
	got := make(chan error, 1)
	go func() {
		l, err := site.Lock(ctx, "degrade shop", time.Minute)
		if err == nil {
			l.Unlock()
		}
		got <- err
	}()
	first.Unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestAuditLinesDoNotMix(t *testing.T) {
	s, _ := open(t)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for range 20 {
				if err := s.Site(fmt.Sprint("site", i)).Audit(store.Entry{Action: "degrade", Why: strings.Repeat("x", 5000), Outcome: "ok"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	data, err := os.ReadFile(s.AuditFile())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(data) {
		var e store.Entry
		if err := json.Unmarshal(line, &e); err != nil || e.Site == "" {
			t.Fatalf("%v: %s", err, line)
		}
		n++
	}
	if n != 160 {
		t.Errorf("%d lines", n)
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	s, dir := open(t)
	site := s.Site("shop")
	for i := range 60 {
		names, err := site.KeepDocuments(fmt.Sprintf("202601%02d", i), []byte("<a/>"), []byte("<b/>"))
		if err != nil || len(names) != 2 {
			t.Fatal(names, err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "sites", "shop", "documents"))
	if err != nil || len(entries) != 100 || entries[0].Name() != "20260110-after.xml" {
		t.Errorf("%d %v %v", len(entries), entries[0], err)
	}
}

func TestUnusableDirectoryIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(filepath.Join(file, "state")); err == nil || !strings.Contains(err.Error(), "state_dir "+file) {
		t.Error(err)
	}
}

// A command of root's must not lock the daemon out of what it made.
func TestWhatRootMakesBelongsToTheDaemon(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const daemon = 65534
	dir := t.TempDir()
	if err := os.Chown(dir, daemon, daemon); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	site := s.Site("shop")
	for _, take := range []func() (*store.Lock, error){
		func() (*store.Lock, error) { return site.Lock(t.Context(), "degrade shop", 0) },
		func() (*store.Lock, error) { return site.LockEdge(t.Context(), "degrade shop", 0) },
		func() (*store.Lock, error) { return s.LockRun(t.Context(), 0) },
	} {
		lock, err := take()
		if err != nil {
			t.Fatal(err)
		}
		lock.Unlock()
	}
	_, keeping := site.KeepDocuments("e1", []byte("a"), []byte("b"))
	if err := errors.Join(keeping, site.Save(store.Record{Target: "x"}), site.Audit(store.Entry{Action: "degrade"})); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || owner.Uid != daemon || owner.Gid != daemon {
			t.Errorf("%s belongs to %d", path, owner.Uid)
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Errorf("%d files, %v", files, err)
	}
}
