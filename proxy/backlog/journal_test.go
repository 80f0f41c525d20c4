package backlog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"karui/cache"
)

// open gives a list with its journal in a file, and what it logs.
func open(t *testing.T, name string, limits Limits) (*Backlog, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	b := Open(Options{
		File: name, Limits: limits, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Now: func() time.Time { return epoch },
	})
	t.Cleanup(b.Close)
	return b, &log
}

func flush(t *testing.T, b *Backlog) {
	t.Helper()
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
}

func names(b *Backlog) string {
	var all []string
	for _, s := range b.Status(1000).Sites {
		for _, e := range s.Next {
			all = append(all, fmt.Sprintf("%s%s?%d", s.Site, e.Key.Path, e.Tries))
		}
	}
	return strings.Join(all, " ")
}

func TestARestartShowsWhatWasThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "backlog.journal")
	b, log := open(t, file, small())
	for range 3 {
		b.Ask(key("shop", "/hot.jpg"), Missing)
	}
	b.Ask(key("shop", "/cold.jpg"), Degraded)
	b.Ask(key("shop", "/never.jpg"), Again)
	b.Ask(key("blog", "/a.jpg"), Missing)
	b.Ask(key("blog", "/gone.jpg"), Missing)
	flush(t, b)
	b.Drop(func(k cache.Key) bool { return k.Path == "/gone.jpg" }, Cleared)
	b.mu.Lock()
	it := b.queue.next(epoch, func(s string) bool { return s == "shop" })
	b.queue.failed(it, epoch)
	b.mu.Unlock()
	flush(t, b)
	want := names(b)
	b.Close()
	again, log2 := open(t, file, small())
	if got := names(again); got != want || got != "blog/a.jpg?0 shop/cold.jpg?0 shop/hot.jpg?1" {
		t.Errorf("after the restart: %s, before: %s", got, want)
	}
	if log.Len()+log2.Len() > 0 {
		t.Errorf("logged: %s%s", log, log2)
	}
	// What was there goes on as it was: the bounds of asks and of attempts.
	if s := again.Status(10); s.Sites[1].Next[0].Asked != 0.25 || s.Sites[1].Next[1].After != epoch.Add(time.Minute).Local() {
		t.Errorf("%+v", s.Sites[1].Next)
	}
}

func TestATornTailIsCutOff(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backlog.journal")
	b, _ := open(t, file, small())
	for i := range 5 {
		b.Ask(key("shop", fmt.Sprintf("/%d.jpg", i)), Missing)
		flush(t, b)
	}
	b.Close()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		if err := os.WriteFile(file, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		torn, _ := open(t, file, small())
		n := torn.Counts()["shop"]
		torn.Ask(key("shop", "/new.jpg"), Missing)
		flush(t, torn)
		torn.Close()
		again, log := open(t, file, small())
		if got := again.Counts()["shop"]; got != n+1 || log.Len() > 0 {
			t.Fatalf("cut at %d: %d entries, then one more, then %d; log %s", cut, n, got, log)
		}
		again.Close()
		_ = os.Remove(file + ".foreign")
	}
}

func TestDamageIsLoggedAndTheRestKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backlog.journal")
	b, _ := open(t, file, small())
	for i := range 5 {
		b.Ask(key("shop", fmt.Sprintf("/%d.jpg", i)), Missing)
		flush(t, b)
	}
	b.Close()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole[len(magic)+3*(len(whole)-len(magic))/5+20] ^= 1
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	again, log := open(t, file, small())
	if n := again.Counts()["shop"]; n != 3 || !strings.Contains(log.String(), "damaged record") {
		t.Errorf("%d entries, log %s", n, log)
	}
}

func TestAForeignFileIsLeftToItsOwner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backlog.journal")
	text := []byte("somebody's notes, and a long text of these\n")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b, log := open(t, file, small())
	b.Ask(key("shop", "/a.jpg"), Missing)
	flush(t, b)
	b.Close()
	if got, err := os.ReadFile(file + ".foreign"); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the file has become %q, %v", got, err)
	}
	if !strings.Contains(log.String(), "no backlog of this version") {
		t.Errorf("log: %s", log)
	}
	if again, _ := open(t, file, small()); names(again) != "shop/a.jpg?0" {
		t.Errorf("after the restart: %s", names(again))
	}
}

func TestAJournalThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "state")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	now := epoch
	b := Open(Options{File: filepath.Join(blocked, "backlog.journal"), Limits: small(), Now: func() time.Time { return now }})
	t.Cleanup(b.Close)
	b.Ask(key("shop", "/a.jpg"), Missing)
	if b.Flush() == nil {
		t.Fatal("no error")
	}
	b.Ask(key("shop", "/b.jpg"), Missing)
	if b.Flush() == nil {
		t.Error("the error is forgotten")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	now = now.Add(repairAfter)
	flush(t, b)
	b.Close()
	if again, _ := open(t, filepath.Join(blocked, "backlog.journal"), small()); again.Counts()["shop"] != 2 {
		t.Errorf("after the restart: %s", names(again))
	}
}

func TestTheJournalDoesNotGrowForEver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backlog.journal")
	b, _ := open(t, file, small())
	largest := int64(0)
	for round := range 400 {
		for i := range 100 {
			b.Ask(key("shop", fmt.Sprintf("/%d/%d.jpg", round, i)), Missing)
		}
		flush(t, b)
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
	}
	if largest < slack/2 || largest > slack+200_000 {
		t.Errorf("it had up to %d bytes", largest)
	}
	b.Close()
	if again, _ := open(t, file, small()); again.Counts()["shop"] != 100 {
		t.Errorf("%d entries", again.Counts()["shop"])
	}
}

func TestTooMuchOfAJournalIsNotTakenIn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "backlog.journal")
	large := small()
	large.Entries = 1000
	b, _ := open(t, file, large)
	for i := range 1000 {
		b.Ask(key("shop", fmt.Sprintf("/%d.jpg", i)), Missing)
	}
	flush(t, b)
	b.Close()
	again, _ := open(t, file, small())
	if n := again.Counts()["shop"]; n != small().Entries {
		t.Errorf("%d entries", n)
	}
}

func FuzzJournal(f *testing.F) {
	b := []byte(magic)
	b = appendRecord(b, record{kind: recordPut, site: "shop", name: nameOf(key("shop", "/a.jpg")), heat: 5, first: 1, last: 2, after: 3, tries: 1})
	b = appendRecord(b, record{kind: recordGone, site: "shop", name: nameOf(key("shop", "/a.jpg"))})
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add([]byte(magic))
	f.Add([]byte("something else"))
	f.Add(append([]byte(magic), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1))
	f.Fuzz(func(t *testing.T, journal []byte) {
		var records []record
		good, err := readJournal(bytes.NewReader(journal), func(r record) { records = append(records, r) })
		if good < 0 || good > int64(len(journal)) {
			t.Fatalf("%d bytes of %d are good", good, len(journal))
		}
		if err != nil && !errors.Is(err, errDamaged) && !errors.Is(err, ErrForeign) {
			t.Fatalf("another error: %v", err)
		}
		q := newQueue(small())
		for _, r := range records {
			q.restore(r, epoch)
		}
		q.shrink()
		check(t, q)
		q.takeAll(epoch.Add(100 * time.Hour))
		// What was read can be written, and read again.
		again := []byte(magic)
		for _, r := range records {
			again = appendRecord(again, r)
		}
		n := 0
		if _, err := readJournal(bytes.NewReader(again), func(r record) {
			if r != records[n] {
				t.Fatalf("%+v became %+v", records[n], r)
			}
			n++
		}); err != nil || n != len(records) {
			t.Fatalf("%d of %d records read again: %v", n, len(records), err)
		}
	})
}

// A whole journal that could not be written leaves nothing to be written on: what came
// meanwhile is in no other.
func TestAJournalThatCouldNotBeReplacedIsWrittenWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(dir, "backlog.journal")
	now := epoch
	b := Open(Options{File: file, Limits: small(), Now: func() time.Time { return now }})
	t.Cleanup(b.Close)
	b.Ask(key("shop", "/a.jpg"), Missing)
	flush(t, b)
	b.fileMu.Lock()
	b.journal.size = 1 << 40 // as after much that came and went
	b.fileMu.Unlock()
	aside := dir + ".aside"
	if err := errors.Join(os.Rename(dir, aside), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	b.Ask(key("shop", "/b.jpg"), Missing)
	if b.Flush() == nil {
		t.Fatal("no error")
	}
	if err := errors.Join(os.Remove(dir), os.Rename(aside, dir)); err != nil {
		t.Fatal(err)
	}
	b.fileMu.Lock()
	b.journal.size = 0 // so that it need not be replaced any more
	b.fileMu.Unlock()
	now = now.Add(repairAfter)
	b.Ask(key("shop", "/c.jpg"), Missing)
	flush(t, b)
	b.Close()
	if again, _ := open(t, file, small()); again.Counts()["shop"] != 3 {
		t.Errorf("after the restart: %s", names(again))
	}
}
