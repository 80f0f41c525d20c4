package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karui/internal/manual"
)

// What the pages show of karui.yaml can be loaded.
func TestExamplesOfThePages(t *testing.T) {
	const skeleton = `sites: [{ id: shop, hosts: [www.example.com], origins: [{ name: main, urls: [https://origin.example.com] }] }]`
	pages, err := manual.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	secret := func(path string) string {
		file := filepath.Join(dir, strings.ReplaceAll(path, "/", "-"))
		if err := os.WriteFile(file, []byte("0123456789abcdef"+filepath.Base(file)), 0o600); err != nil {
			t.Error(err)
		}
		return file
	}
	n := 0
	for _, p := range pages {
		for _, e := range p.Examples() {
			whose, text, err := e.Whole(map[manual.Program]string{manual.Karui: skeleton, manual.Watchdog: "sites: [{}]"}, secret)
			if err != nil || whose != manual.Karui {
				continue // the tests of package manual and of the watchdog's settings look at these
			}
			n++
			file := filepath.Join(dir, "karui.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(file, nil); err != nil {
				t.Errorf("%s: %v\n%s", e, err, text)
			}
		}
	}
	if n < 8 {
		t.Errorf("there are only %d", n)
	}
}
