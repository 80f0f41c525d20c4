package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karui/internal/command"
)

// karui runs a command line and gives its exit code and what it wrote.
func karui(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = command.Run(context.Background(), newRoot(), args, &out, &err)
	return code, out.String(), err.String()
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "karui.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const example = "../../internal/server/testdata/karui.yaml"

func TestConfigCheckSaysOK(t *testing.T) {
	code, stdout, stderr := karui(t, "config", "check", "--config", example)
	if code != 0 || !strings.HasPrefix(stdout, "ok\n") || !strings.Contains(stdout, "1 site") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stderr, "sites[0].distribution holds a placeholder (...): `karui purge` will fail at the edge") {
		t.Errorf("no warning: %s", stderr)
	}
}

func TestConfigCheckListsAllMistakes(t *testing.T) {
	path := file(t, "listen: 80\ncnvert: {}\nttl: {short: 10}\n")
	code, stdout, stderr := karui(t, "config", "check", "-c", path)
	want := "sites is missing: it must be a list with at least one site (or start with --origin https://www.example.com)\n" +
		path + `:1: listen is "80", but it must be an address such as ":8080" or "127.0.0.1:9090"` + "\n" +
		path + ":2: cnvert is not a known key; did you mean convert?\n" +
		path + `:3: ttl.short is "10", but it must be a duration with its unit, such as 300ms, 10s, 5m or 24h` + "\n"
	if code != 2 || stdout != "" || stderr != want {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

func TestConfigIsTakenFromTheEnvironment(t *testing.T) {
	t.Setenv("KARUI_CACHE_MEMORY", "1GiB")
	t.Setenv("KARUI_LISTEM", ":1")
	code, stdout, stderr := karui(t, "config", "print", "-c", example)
	if code != 0 || !strings.Contains(stdout, "memory: 1GiB # KARUI_CACHE_MEMORY\n") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	if stderr != "warning: environment variable KARUI_LISTEM sets nothing; did you mean KARUI_LISTEN?\n" {
		t.Errorf("warning: %q", stderr)
	}
	t.Setenv("KARUI_CACHE_MEMORY", "lots")
	if code, _, stderr = karui(t, "config", "check", "-c", example); code != 2 || !strings.HasPrefix(stderr, "KARUI_CACHE_MEMORY: cache.memory is ") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestConfigPrintLoadsAgain(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "edge")
	if err := os.WriteFile(secret, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := file(t, `
edge: {secrets: ["file:`+secret+`", hush-hush]}
admin: {listen: ":9090", tokens: [{name: a, token: hush-hush-hush, rights: [read]}, {name: b, token: hush-hush-more, rights: [dial]}]}
sites: [{id: a, origins: [{name: x, urls: [http://o], headers: [{name: X-Key, value: hush}]}]}]
`)
	code, stdout, stderr := karui(t, "config", "print", "-c", path)
	if code != 0 || stderr != "" {
		t.Fatalf("%d %s", code, stderr)
	}
	if strings.Contains(stdout, "hush") || !strings.Contains(stdout, "file:"+secret) {
		t.Errorf("secrets:\n%s", stdout)
	}
	code, again, stderr := karui(t, "config", "print", "-c", file(t, stdout))
	if code != 0 || strings.Count(stderr, "is what config print shows in place of a secret") != 4 {
		t.Fatalf("%d %s", code, stderr)
	}
	if strip(again) != strip(stdout) {
		t.Errorf("printed again:\n%s\nwant\n%s", strip(again), strip(stdout))
	}
}

// strip takes the comments away.
func strip(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		value, _, _ := strings.Cut(line, " # ")
		b.WriteString(strings.TrimSpace(value) + "\n")
	}
	return b.String()
}

func TestMissingFileIsAMistake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	for _, command := range []string{"check", "print"} {
		code, stdout, stderr := karui(t, "config", command, "--config", path)
		if code != 2 || stdout != "" || stderr != path+": the configuration cannot be read: no such file or directory\n" {
			t.Errorf("%s: %d %q %q", command, code, stdout, stderr)
		}
	}
	if code, _, stderr := karui(t, "config", "check", "--config", ""); code != 2 || !strings.Contains(stderr, "--config is empty") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestASiteThatNothingLeadsToIsRemarkedOn(t *testing.T) {
	code, _, stderr := karui(t, "config", "check", "--config", file(t, `sites: [{id: shop, origins: [{name: a, urls: ["http://127.0.0.1:1"]}]}]`))
	if code != 0 || !strings.Contains(stderr, "sites[0] has no hosts and is not the default: it answers only requests with X-Routing: shop") {
		t.Errorf("%d %s", code, stderr)
	}
}

// What a start would find out about the folder of the cache, the check says as well.
func TestConfigCheckLooksAtTheFolderOfTheCache(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const sites = "sites: [{ id: shop, default: true, origins: [{ name: main, urls: [http://127.0.0.1:1] }] }]\n"
	for path, want := range map[string]string{
		filepath.Join(dir, "new"): "",
		taken:                     "this is a file",
		taken + "/below":          "a file stands where one of its folders must be",
		dir:                       "the folder holds other files and no cache of karui",
	} {
		configuration := file(t, sites+"cache:\n  volumes:\n    - path: "+path+"\nadmin: { listen: 127.0.0.1:0 }\n")
		code, stdout, stderr := karui(t, "config", "check", "--config", configuration)
		if want == "" {
			if code != 0 || !strings.HasPrefix(stdout, "ok\n") || strings.Contains(stderr, "cache.volumes") {
				t.Errorf("%s: %d %s%s", path, code, stdout, stderr)
			}
			continue
		}
		if code != 2 || stdout != "" || !strings.Contains(stderr, configuration+":4: cache.volumes[0].path is \""+path+"\", but ") || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s%s", path, code, stdout, stderr)
		}
		code, _, stderr = karui(t, "serve", "--config", configuration, "--listen", "127.0.0.1:0")
		if code != 1 && code != 2 || !strings.Contains(stderr, "cache.volumes[0].path is \""+path+"\"") {
			t.Errorf("serve with %s: %d %s", path, code, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("the check made the folder")
	}
}
