package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karui/convert"
	"karui/internal/sample"
)

func TestMain(m *testing.M) {
	// The pool starts this very binary as its workers.
	if len(os.Args) > 1 && os.Args[1] == convert.WorkerCommand {
		os.Exit(convert.WorkerMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func TestConvertCommand(t *testing.T) {
	dir := t.TempDir()
	photo := filepath.Join(dir, "photo.jpg")
	if err := os.WriteFile(photo, sample.Photo(), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "variants")
	code, stdout, stderr := karui(t, "convert", photo, "-o", out, "--json")
	if code != 0 || stderr != "" {
		t.Fatalf("%d %s", code, stderr)
	}
	var document struct {
		Files []struct{ Path, Out, Code, Reason string } `json:"files"`
	}
	if err := json.Unmarshal([]byte(stdout), &document); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if f := document.Files[0]; len(document.Files) != 1 || f.Path != photo || f.Code != "converted" || f.Reason == "" || f.Out != filepath.Join(out, "photo.webp") {
		t.Errorf("%+v", f)
	}
	if _, err := os.Stat(filepath.Join(out, "photo.webp")); err != nil {
		t.Error(err)
	}

	code, stdout, stderr = karui(t, "convert", photo)
	if code != 0 || !strings.Contains(stdout, "1 converted, 0 kept") || stderr != "" {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	// Of a folder, the variant is no input.
	if code, stdout, _ = karui(t, "convert", dir); code != 0 || !strings.HasSuffix(stdout, "\n1 other file left out\n") {
		t.Errorf("%d %s", code, stdout)
	}
	// The variant of the first run is in the way.
	code, stdout, stderr = karui(t, "convert", photo, "-o", out)
	if code != 1 || !strings.Contains(stdout, "exists already") || !strings.Contains(stderr, "1 of 1 files could not be read or written, 1 of them since a file is there already, which --overwrite replaces") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
}

func TestConvertCommandRefuses(t *testing.T) {
	for want, test := range map[string]struct {
		code int
		args []string
	}{
		"name at least one file":       {2, nil},
		`--format has "png"`:           {2, []string{"--format", "webp,png", "x.jpg"}},
		`--format has avif twice`:      {2, []string{"--format", "avif,avif", "x.jpg"}},
		`--format is empty`:            {2, []string{"--format", "", "x.jpg"}},
		`--format has "tiff"`:          {2, []string{"--format", "tiff", "x.jpg"}},
		"--quality is 0":               {2, []string{"--quality", "0", "x.jpg"}},
		"--quality is 101":             {2, []string{"--quality", "101", "x.jpg"}},
		`--png is "best"`:              {2, []string{"--png", "best", "x.jpg"}},
		"--jobs is -1":                 {2, []string{"--jobs", "-1", "x.jpg"}},
		"--overwrite does nothing":     {2, []string{"--overwrite", "x.jpg"}},
		"is named like an image (.jpg": {1, []string{t.TempDir()}},
	} {
		code, stdout, stderr := karui(t, append([]string{"convert"}, test.args...)...)
		if code != test.code || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: %d %q %q", test.args, code, stdout, stderr)
		}
	}
}
