package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karui/internal/audit"
	"karui/internal/sample"
)

// totals is what both commands say at the end.
type totals struct {
	Total struct {
		Files, Converted, Kept, Failed int
		Before                         int64 `json:"bytes_before"`
		After                          int64 `json:"bytes_after"`
	}
	Files []struct {
		Path, Format string
		Score        float64
	}
	Report string
}

func readTotals(t *testing.T, stdout string) totals {
	t.Helper()
	var v totals
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	return v
}

func TestAuditCommand(t *testing.T) {
	dir := t.TempDir()
	photos := filepath.Join(dir, "photos")
	if err := os.Mkdir(photos, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{"photo.jpg": sample.Photo(), "logo.png": sample.Logo(), "cut.jpg": sample.Photo()[:9000], "notes.txt": nil} {
		if err := os.WriteFile(filepath.Join(photos, name), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report := filepath.Join(dir, "report.html")
	code, stdout, stderr := karui(t, "audit", photos, "-o", report, "--json")
	if code != 0 || stderr != "" {
		t.Fatalf("%d %s", code, stderr)
	}
	got := readTotals(t, stdout)
	_, stdout, _ = karui(t, "convert", photos, "--json")
	if want := readTotals(t, stdout); got.Total != want.Total || got.Total.Converted != 2 || got.Report != report {
		t.Errorf("%+v, and karui convert %+v", got, want)
	}
	body, err := os.ReadFile(report)
	if err != nil || !strings.Contains(string(body), audit.Mark) || strings.Count(string(body), `src="data:image/`) != 4 {
		t.Errorf("%v: %d bytes", err, len(body))
	}
	// A report is replaced, and a file that cannot be read fails the command but not the report.
	code, stdout, stderr = karui(t, "audit", photos, filepath.Join(dir, "nowhere.jpg"), "-o", report)
	if code != 1 || !strings.Contains(stdout, "2 converted, 1 kept as they are, 1 failed") || !strings.Contains(stdout, "looks the same") ||
		!strings.HasSuffix(stdout, "1 other file left out\nreport: "+report+"\n") || !strings.Contains(stderr, "1 of 4 images could not be read") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	if code, stdout, stderr = karui(t, "audit", filepath.Join(photos, "photo.jpg"), "-o", ""); code != 0 || strings.Contains(stdout, "report:") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	code, stdout, stderr = karui(t, "audit", photos, "-o", filepath.Join(photos, "notes.txt"))
	if code != 1 || stdout != "" || !strings.Contains(stderr, "is no report of karui audit; choose another name with -o, or add --overwrite") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
}

// A site of the configuration says how its images are converted, and flags say it again.
func TestAuditCommandOfASite(t *testing.T) {
	config := file(t, `sites:
  - { id: shop, hosts: [a.example], formats: [heic, webp], quality: 40, origins: [{ name: tokyo, urls: [http://127.0.0.1:1] }] }
  - { id: blog, hosts: [b.example], default: true, origins: [{ name: paris, urls: [http://127.0.0.1:1] }] }
`)
	server := httptest.NewServer(sample.New())
	t.Cleanup(server.Close)
	page := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(page, []byte(`<img src="`+server.URL+sample.PhotoPath+`">`), 0o600); err != nil {
		t.Fatal(err)
	}
	after := map[string]int64{}
	for name, flags := range map[string][]string{
		"site": {"--site", "shop"}, "flag": {"--site", "shop", "--quality", "80"}, "default": nil,
	} {
		code, stdout, stderr := karui(t, append([]string{"audit", page, "-o", "", "--json", "--config", config}, flags...)...)
		if code != 0 {
			t.Fatalf("%s: %d %s", name, code, stderr)
		}
		got := readTotals(t, stdout)
		if got.Files[0].Format != "webp" || got.Files[0].Path != server.URL+sample.PhotoPath {
			t.Errorf("%s: %+v", name, got)
		}
		after[name] = got.Total.After
	}
	if after["site"] >= after["flag"] || after["flag"] != after["default"] {
		t.Errorf("%v", after)
	}
}

func TestAuditCommandRefuses(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	if err := os.WriteFile(page, []byte("<p>no image</p>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, test := range map[string]struct {
		code int
		args []string
	}{
		"name at least one page":                {2, nil},
		`--format has "png"`:                    {2, []string{"--format", "png", "x.jpg"}},
		"--max-images is 0":                     {2, []string{"--max-images", "0", "x.jpg"}},
		"--fetch-timeout is 0s":                 {2, []string{"--fetch-timeout", "0s", "x.jpg"}},
		"--overwrite does nothing without -o":   {2, []string{"--overwrite", "-o", "", "x.jpg"}},
		`no site of the configuration has the`:  {2, []string{"--site", "nosuch", "--config", file(t, "sites: [{ id: shop, hosts: [a.example], origins: [{ name: tokyo, urls: [http://127.0.0.1:1] }] }]"), "x.jpg"}},
		"no image was found in " + page:         {1, []string{page, "-o", ""}},
		"read page http://127.0.0.1:1/: dial":   {1, []string{"http://127.0.0.1:1/", "-o", ""}},
		"it is no file; choose another name":    {1, []string{page, "-o", dir}},
		"--jobs is 1000, but it must be 1 to 2": {2, []string{"--jobs", "1000", "x.jpg"}},
	} {
		code, stdout, stderr := karui(t, append([]string{"audit"}, test.args...)...)
		if code != test.code || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: %d %q %q", test.args, code, stdout, stderr)
		}
	}
}
