package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"karui/internal/config"
)

func TestPrintedConfigurationLoadsAgain(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hush-from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := mustLoad(t, `
name: "no: [really] # {odd}"
limit: 90m
"on": true
count: 7
weight: 0.25
room: {max_size: 1536B, max_pixels: 5kP, share: 12.5%}
secret: hush
keys: [hush-hush, "file:`+secret+`"]
words: ["yes", "01", "", "~", "a\nb", "ü", "2026-01-01", "# x"]
sites:
  - id: a
    query: [v, "no"]
    formats: []
    headers: [{name: X, value: hush}]
  - id: b
`, []string{"T_COUNT=8"}, config.Flag{Name: "--limit", Key: "limit", Value: "75s"})
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	printed := out.String()
	for _, line := range []string{
		"count: 8 # T_COUNT\n", "limit: 75s # --limit\n", "karui.yaml:2\n",
		"  share: 12.5% # ", "    quality: 80 # default\n", "'file:" + secret + "'",
		"secret: '******** (secret)' # ",
	} {
		if !strings.Contains(printed, line) {
			t.Errorf("lacks %q", line)
		}
	}
	if strings.Contains(strings.ReplaceAll(printed, secret, ""), "hush") {
		t.Error("shows a secret")
	}

	again := mustLoad(t, printed, nil)
	if len(again.Warnings) != 3 || !strings.Contains(again.Warnings[0], "secret is what config print shows in place of a secret") {
		t.Errorf("warnings: %q", again.Warnings)
	}
	want := r.Value
	again.Value.Secret = want.Secret
	again.Value.Keys[0] = want.Keys[0]
	again.Value.Sites[0].Headers[0].Value = want.Sites[0].Headers[0].Value
	for _, s := range []*settings{&want, &again.Value} { // a list that is missing or empty is the same
		for i := range s.Sites {
			if len(s.Sites[i].Headers) == 0 {
				s.Sites[i].Headers = nil
			}
		}
	}
	if !reflect.DeepEqual(again.Value, want) {
		t.Errorf("read back:\n%+v\nwant\n%+v\nfrom\n%s", again.Value, want, printed)
	}
}

// What is changed is what somebody has set, wherever: no default stands in it, and it
// loads as the whole does.
func TestPrintChanged(t *testing.T) {
	r := mustLoad(t, "name: a\nroom: {max_size: 1GiB}\nkeys: [hush]\nsites:\n  - id: a\n    quality: 80\n  - id: b\n", []string{"T_COUNT=8"}, config.Flag{Name: "--limit", Key: "limit", Value: "75s"})
	var out bytes.Buffer
	if err := r.PrintChanged(&out); err != nil {
		t.Fatal(err)
	}
	printed := out.String()
	for _, line := range []string{"name: a # ", "count: 8 # T_COUNT\n", "limit: 75s # --limit\n", "room:\n  max_size: 1GiB # ", "quality: 80 # ", "id: b # "} {
		if !strings.Contains(printed, line) {
			t.Errorf("lacks %q", line)
		}
	}
	for _, text := range []string{"default", "hush", "weight", "max_pixels"} {
		if strings.Contains(printed, text) {
			t.Errorf("has %q", text)
		}
	}
	again := mustLoad(t, printed, nil)
	again.Value.Keys = r.Value.Keys
	if !reflect.DeepEqual(again.Value, r.Value) {
		t.Errorf("read back:\n%+v\nwant\n%+v\nfrom\n%s", again.Value, r.Value, printed)
	}

	out.Reset()
	if err := mustLoad(t, "", nil).PrintChanged(&out); err != nil || out.String() != "{}\n" {
		t.Errorf("%v %q", err, out.String())
	}
}
