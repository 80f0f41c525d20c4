package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karui/internal/config"
)

// Each testdata/NAME.yaml holds one mistake, or several that belong together, and
// testdata/NAME.txt the message.
func TestMistakesAreNamed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			_, err = config.Load(defaults(), options(file, nil))
			if err == nil {
				t.Fatal("was taken")
			}
			got := strings.ReplaceAll(err.Error()+"\n", file, "FILE")
			if got != string(want) {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
			if len(config.Problems(err)) != strings.Count(got, "\n") {
				t.Errorf("not every line is a Problem: %d", len(config.Problems(err)))
			}
		})
	}
}

func TestMistakesInTheEnvironmentAreNamed(t *testing.T) {
	for _, test := range []struct{ env, want string }{
		{"T_COUNT=x", `T_COUNT: count is "x", but it must be a whole number in plain digits, and not a huge one`},
		{"T_COUNT=101", `T_COUNT: count is 101, but it must be from 0 to 100`},
		{"T_LIMIT=90", `T_LIMIT: limit is "90", but it must be a duration with its unit, such as 300ms, 10s, 5m or 24h`},
		{"T_SECRET=wrong", `T_SECRET: secret is (secret), but it must be right`},
		{"T_WORDS=a,b", `T_WORDS: words is "a,b", but it must be a JSON list such as ["a", "b"] (invalid character 'a' looking for beginning of value)`},
		{"T_WORDS=[1] x", `T_WORDS: words is "[1] x", but it must be a JSON list such as ["a", "b"] (something follows the end of the list)`},
		{"T_WORDS=[", `T_WORDS: words is "[", but it must be a JSON list such as ["a", "b"] (unexpected EOF)`},
		{"T_KEYS=hush", `T_KEYS: keys is (secret), but it must be a JSON list such as ["a", "b"] (invalid character 'h' looking for beginning of value)`},
		{`T_WORDS={"a": 1}`, `T_WORDS: words is a section, but it must be a JSON list such as ["a", "b"]`},
		{`T_SITES=[{"idd": "x"}]`, `T_SITES: sites[0].idd is not a known key; did you mean sites[0].id?`},
		{`T_SITES=[{"id": "x", "id": "y"}]`, `T_SITES: sites[0].id is given twice: keep one of them`},
		{`T_SITES=["x"]`, `T_SITES: sites[0] is "x", but it must be a section with keys such as id`},
		{"T_SITES=" + strings.Repeat("[", 100), `T_SITES: sites is "` + strings.Repeat("[", 100) + `", but it must be a JSON list such as [{"id": "..."}] (nested too deeply)`},
	} {
		if _, err := load(t, "", []string{test.env}); err == nil || err.Error() != test.want {
			t.Errorf("%s:\n got %v\nwant %s", test.env, err, test.want)
		}
	}
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	_, err := load(t, "cuont: 1\nlimit: 5\nsites:\n  - id: ''\n  - id: b\n    headers: [{name: x, value: wrong}]\n", []string{"T_COUNT=500"})
	var lines []string
	for _, p := range config.Problems(err) {
		lines = append(lines, fmt.Sprintf("%d %s", p.Source.Line, p.Key))
	}
	if got := strings.Join(lines, ", "); got != "0 count, 1 cuont, 2 limit, 4 sites[0].id, 6 sites[1].headers[0].value" {
		t.Errorf("%s\n%v", got, err)
	}
	if strings.Contains(err.Error(), "wrong") {
		t.Errorf("a secret was shown: %s", err)
	}
}

func TestHugeFilesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"long":    "# " + strings.Repeat("x", 2<<20),
		"deep":    "words: " + strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"aliases": "sites:\n" + bomb(),
	} {
		_, err := load(t, text, nil)
		if err == nil || len(err.Error()) > 20_000 {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

// bomb unfolds to 10^8 elements.
func bomb() string {
	var b strings.Builder
	b.WriteString("  - &a0 {id: x, headers: &h0 [{name: n}, {name: n}]}\n")
	merge := "  - &a%d {<<: [*a%d, *a%[2]d, *a%[2]d, *a%[2]d, *a%[2]d, *a%[2]d, *a%[2]d, *a%[2]d, *a%[2]d, *a%[2]d], id: x}\n"
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, merge, i, i-1)
	}
	return b.String()
}

func TestSecretsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	good := write("good", "hush\r\n")
	r := mustLoad(t, "secret: "+good+"\nkeys: [plain, '"+good+"']\nname: "+good+"\nsites: [{id: x, headers: [{name: K, value: '"+good+"'}]}]", nil)
	v := r.Value
	if v.Secret != "hush" || v.Keys[0] != "plain" || v.Keys[1] != "hush" || v.Sites[0].Headers[0].Value != "hush" {
		t.Errorf("not followed: %+v", v)
	}
	if v.Name != good {
		t.Errorf("followed where there is no secret: %q", v.Name)
	}
	for text, want := range map[string]string{
		"file:" + dir + "/none":                        "which cannot be read: no such file or directory",
		write("empty", "\n"):                           "which is empty",
		write("lines", "one\ntwo\n"):                   "which holds more than one line",
		write("large", strings.Repeat("x", 65<<10)):    "which cannot be read: it is larger than 65536 bytes",
		"file:relative":                                "which is not an absolute path: write file:/run/secrets/name",
		strings.Replace(good, "/good", "/good/sub", 1): "which cannot be read: not a directory",
	} {
		_, err := load(t, "\nsecret: "+text, nil)
		if err == nil || !strings.HasSuffix(err.Error(), want) || !strings.Contains(err.Error(), "karui.yaml:2: secret is taken from "+strings.TrimPrefix(text, "file:")) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestProblemsAreFoundThroughWrapping(t *testing.T) {
	err := fmt.Errorf("load: %w", config.Invalid("a", 1, "2"))
	var p *config.Problem
	if !errors.As(err, &p) || p.Key != "a" || len(config.Problems(err)) != 1 {
		t.Errorf("%v", err)
	}
	if config.Problems(nil) != nil {
		t.Error("no error holds problems")
	}
}

func TestKey(t *testing.T) {
	if got := config.Key("", "sites", 0, "origins", 12, "", "name"); got != "sites[0].origins[12].name" {
		t.Errorf("%q", got)
	}
}

func TestInvisibleCharactersInKeysAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"\u3000count: 5":        "it holds a full-width space (U+3000), which YAML takes as a part of the key: write plain spaces; did you mean count?",
		"cou\u00a0nt: 5":        "a no-break space (U+00A0)",
		"count\u200b: 5":        "the invisible character U+200B",
		"sites:\n- \u3000id: x": "a full-width space (U+3000)",
		"count:\u30005":         "karui.yaml:1: the configuration is not YAML: the line has a full-width space (U+3000) in place of a space: write plain spaces",
		"# \u3000\nsites:\n  - id: a\n\u3000  quality: 5\n    query: [v]": "karui.yaml:4: the configuration is not YAML: the line has a full-width space",
	} {
		_, err := load(t, text, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestWarningsStandBesideMistakes(t *testing.T) {
	_, err := load(t, "count: x", []string{"T_COUTN=5"})
	if err == nil || !strings.Contains(err.Error(), "count is") || !strings.Contains(err.Error(), "\nwarning: environment variable T_COUTN") {
		t.Errorf("%v", err)
	}
}
