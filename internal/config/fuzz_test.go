package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"karui/internal/config"
)

// Whatever a file holds, loading it ends, and ends with a configuration that can
// be printed and loaded again, or with problems that have a text.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, `[{"id": "x"}]`)
	}
	f.Add([]byte("name: a\nsites: [{id: x, query: [a]}]\n"), `[[[`)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, list string) {
		file := filepath.Join(dir, "fuzz.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := config.Load(defaults(), options(file, []string{"T_SITES=" + list}))
		if err != nil {
			for _, p := range config.Problems(err) {
				if p.Error() == "" {
					t.Error("a problem without words")
				}
			}
			return
		}
		var out bytes.Buffer
		if err := r.Print(&out); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(defaults(), options(file, nil)); err != nil {
			t.Errorf("what was printed does not load: %s\n%s", err, &out)
		}
	})
}
