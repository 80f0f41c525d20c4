package warm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"karui/internal/statefile"
)

func open(t *testing.T, file string) *State {
	t.Helper()
	s, err := OpenState(file, "shop", []Source{{List, "-"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// saved writes a state, and opens what was written.
func saved(t *testing.T, s *State) *State {
	t.Helper()
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	return open(t, s.file)
}

// Images that many pages have are written once.
func TestTheStateOfPagesWithTheSameImages(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := open(t, filepath.Join(t.TempDir(), "state.json"))
	var images []string
	for i := range 2000 {
		images = append(images, fmt.Sprintf("/%s/%d.jpg?a=1&b=2", strings.Repeat("p", 180), i))
	}
	for p := range 100 {
		s.readPage(fmt.Sprintf("https://www.example.com/%d", p), images, now)
	}
	s.settle("/gone.jpg", avif, now.Add(-time.Hour))
	s.settle(images[7], webp, now)
	s.settle(images[7], avif, now.Add(-time.Hour))
	s.readPage("https://www.example.com/old", []string{"/old.jpg"}, now.Add(-time.Hour))
	s.forget(now)
	s = saved(t, s)
	info, err := os.Stat(s.file)
	if err != nil || info.Size() > 2_000_000 {
		t.Errorf("%v, %d bytes", err, info.Size())
	}
	for p := range 100 {
		if got, ok := s.pageSince(fmt.Sprintf("https://www.example.com/%d", p), now); !ok || !slices.Equal(got, images) {
			t.Fatalf("page %d: %t, %d images", p, ok, len(got))
		}
	}
	_, old := s.pageSince("https://www.example.com/old", time.Time{})
	if old || len(s.targets) != 2000 || !s.settledSince(images[7], webp, now) || s.settledSince(images[7], avif, time.Time{}) || s.settledSince(images[8], webp, time.Time{}) {
		t.Errorf("%t %d", old, len(s.targets))
	}
}

// What a run writes can be read: without its pages where it would be too large.
func TestTheStateIsNeverTooLargeToBeRead(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := open(t, filepath.Join(t.TempDir(), "state.json"))
	s.most = 2000
	s.settle("/1.jpg", webp, now)
	for p := range 50 {
		s.readPage(fmt.Sprintf("https://www.example.com/%d", p), []string{"/1.jpg", "/2.jpg"}, now)
	}
	s = saved(t, s)
	if len(s.pages) != 0 || !s.settledSince("/1.jpg", webp, now) || s.Moved() != "" {
		t.Errorf("%d pages, %q", len(s.pages), s.Moved())
	}
	s.named = maxNamed - 1
	s.readPage("https://www.example.com/", []string{"/1.jpg", "/2.jpg"}, now)
	s.named, s.pageBytes = 0, maxPageURL
	s.readPage("https://www.example.com/", []string{"/1.jpg", "/2.jpg"}, now)
	if len(s.pages) != 0 {
		t.Error("a page is kept beyond the bounds")
	}
}

// A state that cannot be read is moved aside, and the work begins anew; what is none of
// karui's is left alone.
func TestAStateThatCannotBeRead(t *testing.T) {
	head := `{"karui_warm":2,"site":"shop","sources":["list -"]}` + "\n"
	usual := StateName("shop", []Source{{List, "-"}})
	for name, tt := range map[string]struct {
		file, text string
		size       int64
		refused    bool
	}{
		"whole":            {"s", head, 0, false},
		"too large":        {"s", head, maxState + 1, false},
		"another version":  {"s", `{"karui_warm":1,"site":"shop","sources":["list -"],"done":{}}`, 0, false},
		"cut":              {"s", head + `{"i":"/a.jpg","do`, 0, false},
		"cut in the head":  {"s", head[:20], 0, false},
		"no such image":    {"s", head + `{"p":"https://a/","read":1,"has":[4294967295]}`, 0, false},
		"twice":            {"s", head + `{"i":"/a"}` + "\n" + `{"i":"/a"}`, 0, false},
		"a long line":      {"s", head + `{"i":"` + strings.Repeat("a", maxLine), 0, false},
		"nothing":          {"s", head + "{}", 0, false},
		"many formats":     {"s", head + `{"i":"/a","done":{` + many(20, `"f%d":1,`) + `"z":1}}`, 0, false},
		"zeros":            {usual, strings.Repeat("\x00", 500), 0, false},
		"somebody's":       {"s", `{"name": "somebody's"}`, 0, true},
		"somebody's zeros": {"s", strings.Repeat("\x00", 500), 0, true},
		"another site":     {"s", strings.Replace(head, "shop", "news", 1), 0, true},
	} {
		file := filepath.Join(t.TempDir(), tt.file)
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.size > 0 { // the file has a hole
			if err := os.Truncate(file, tt.size); err != nil {
				t.Fatal(err)
			}
		}
		s, err := OpenState(file, "shop", []Source{{List, "-"}}, false)
		if tt.refused {
			if _, gone := os.Stat(file); err == nil || gone != nil {
				t.Errorf("%s: %v, %v", name, err, gone)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, kept := os.Stat(file + statefile.Aside)
		if moved := name != "whole"; moved != (s.Moved() != "") || moved != (kept == nil) || len(s.targets)+len(s.pages)+len(s.done) != 0 {
			t.Errorf("%s: %q, %v", name, s.Moved(), kept)
		}
		s.settle("/a.jpg", webp, time.Unix(5, 0))
		if s = saved(t, s); s.Moved() != "" || !s.settledSince("/a.jpg", webp, time.Unix(5, 0)) {
			t.Errorf("%s: what was written anew: %s", name, s.Moved())
		}
	}
}

func FuzzState(f *testing.F) {
	f.Add(`{"karui_warm":2,"site":"shop","sources":["list -"]}` + "\n" + `{"i":"/a","done":{"webp":5}}` + "\n" + `{"p":"https://a/","read":1,"has":[0]}`)
	f.Add(`{"karui_warm":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "s")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenState(file, "shop", []Source{{List, "-"}}, false)
		if err != nil {
			return
		}
		s.forget(time.Unix(3, 0))
		s.settle("/b.jpg", webp, time.Unix(5, 0))
		if s = saved(t, s); s.Moved() != "" || !s.settledSince("/b.jpg", webp, time.Unix(5, 0)) {
			t.Error(s.Moved())
		}
	})
}
