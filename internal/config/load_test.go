package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"karui/internal/config"
	"karui/internal/units"
)

// settings has one field of every kind that a configuration may hold.
type settings struct {
	Name   string        `yaml:"name"`
	Limit  time.Duration `yaml:"limit"`
	On     bool          `yaml:"on"`
	Count  int           `yaml:"count"`
	Weight float64       `yaml:"weight"`
	Room   roomConfig    `yaml:"room"`
	Secret string        `yaml:"secret" secret:"true"`
	Keys   []string      `yaml:"keys" secret:"true"`
	Words  []string      `yaml:"words"`
	Sites  []siteConfig  `yaml:"sites"`
}

type roomConfig struct {
	MaxSize   units.Size    `yaml:"max_size"`
	MaxPixels units.Pixels  `yaml:"max_pixels"`
	Share     units.Percent `yaml:"share"`
}

type siteConfig struct {
	ID      string         `yaml:"id"`
	Quality int            `yaml:"quality"`
	Formats []string       `yaml:"formats"`
	Query   choice         `yaml:"query"`
	Headers []headerConfig `yaml:"headers"`
}

type headerConfig struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value" secret:"true"`
}

// choice is a word or a list of words.
type choice struct{ words string }

func (c *choice) UnmarshalText(text []byte) error {
	if string(text) != "all" {
		return errors.New("not all")
	}
	c.words = "all"
	return nil
}

func (c *choice) UnmarshalList(words []string) error {
	c.words = strings.Join(words, "+")
	return nil
}

func (c choice) MarshalText() ([]byte, error) { return []byte(c.words), nil }

func (c choice) List() []string {
	if c.words == "all" {
		return nil
	}
	return strings.Split(c.words, "+")
}

func (s *settings) Normalize() {
	for i := range s.Sites {
		s.Sites[i].ID = strings.ToLower(s.Sites[i].ID)
	}
}

func (s settings) Validate(key string) error {
	errs := []error{
		config.InRange(config.Key(key, "count"), s.Count, 0, 100),
		config.InRange(config.Key(key, "limit"), s.Limit, 0, time.Hour),
	}
	if s.Secret == "wrong" {
		errs = append(errs, config.Invalid(config.Key(key, "secret"), s.Secret, "right"))
	}
	for i, site := range s.Sites {
		errs = append(errs, config.Name(config.Key(key, "sites", i, "id"), site.ID))
		for j, h := range site.Headers {
			if h.Value == "wrong" {
				errs = append(errs, config.Invalid(config.Key(key, "sites", i, "headers", j, "value"), h.Value, "right"))
			}
		}
	}
	return errors.Join(errs...)
}

func defaults() settings {
	return settings{
		Name: "karui", Limit: 10 * time.Second, Count: 3, Weight: 1,
		Room:  roomConfig{MaxSize: 1 << 20, MaxPixels: 64_000_000, Share: 90},
		Words: []string{"one"},
	}
}

func defaultSite() siteConfig {
	return siteConfig{Quality: 80, Formats: []string{"webp"}, Query: choice{"all"}}
}

// load loads a file with the given text.
func load(t *testing.T, text string, environ []string, flags ...config.Flag) (*config.Result[settings], error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "karui.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(defaults(), options(file, environ, flags...))
}

func options(file string, environ []string, flags ...config.Flag) config.Options {
	return config.Options{
		File: file, EnvPrefix: "T_", ForeignPrefixes: []string{"T_DOG_"}, Environ: environ, Flags: flags,
		Elements: []any{defaultSite()},
	}
}

func mustLoad(t *testing.T, text string, environ []string, flags ...config.Flag) *config.Result[settings] {
	t.Helper()
	r, err := load(t, text, environ, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEmptyFileGivesTheDefaults(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "room:\n", "count:\nname: ~\nsites:\n", "{}"} {
		if r := mustLoad(t, text, nil); !reflect.DeepEqual(r.Value, defaults()) {
			t.Errorf("%q: %+v", text, r.Value)
		}
	}
}

func TestStrongerSourceWins(t *testing.T) {
	const file = "count: 1\nname: file\n"
	env := []string{"T_COUNT=2", "T_NAME=env", "T_WEIGHT=", "OTHER=1", "T_DOG_X=1"}
	flag := config.Flag{Name: "--count", Key: "count", Value: "4"}

	r := mustLoad(t, file, env, flag)
	if r.Value.Count != 4 || r.Value.Name != "env" || r.Value.Weight != 1 {
		t.Errorf("flag, variable, file: %+v", r.Value)
	}
	for key, want := range map[string]string{"count": "--count", "name": "T_NAME", "weight": "default"} {
		if got := r.Source(key).String(); got != want {
			t.Errorf("%s came from %s, want %s", key, got, want)
		}
	}
	if r = mustLoad(t, file, nil); r.Value.Count != 1 || r.Source("count").Line != 1 || r.Source("name").Line != 2 {
		t.Errorf("file alone: %+v from %v", r.Value, r.Source("count"))
	}
	if len(r.Warnings) > 0 {
		t.Errorf("warnings: %q", r.Warnings)
	}
}

func TestListsFromTheEnvironmentAreJSON(t *testing.T) {
	r := mustLoad(t, "sites: [{id: file}, {id: second}]", []string{
		`T_WORDS=["a", "b,c", "\u65e5\ud83d\ude00"]`,
		`T_SITES=[{"id": "x", "quality": 50, "query": ["v", "w"], "headers": [{"name": "A", "value": "1"}]}, {"id": "y"}]`,
	})
	if want := []string{"a", "b,c", "日😀"}; !reflect.DeepEqual(r.Value.Words, want) {
		t.Errorf("words: %q", r.Value.Words)
	}
	want := []siteConfig{
		{ID: "x", Quality: 50, Formats: []string{"webp"}, Query: choice{"v+w"}, Headers: []headerConfig{{"A", "1"}}},
		{ID: "y", Quality: 80, Formats: []string{"webp"}, Query: choice{"all"}},
	}
	if !reflect.DeepEqual(r.Value.Sites, want) {
		t.Errorf("sites: %+v", r.Value.Sites)
	}
	if s := r.Source("sites[1].id").String(); s != "T_SITES" {
		t.Errorf("sites[1].id came from %s", s)
	}
	// A list replaces the one below it as a whole.
	if r = mustLoad(t, "words: [x, y]", []string{`T_WORDS=[]`}); len(r.Value.Words) != 0 {
		t.Errorf("an empty list: %q", r.Value.Words)
	}
}

func TestElementsHaveDefaultsOfTheirOwn(t *testing.T) {
	r := mustLoad(t, "sites:\n  - id: A\n  - id: b\n    formats: []\n    query: [v]\n", nil)
	want := []siteConfig{
		{ID: "a", Quality: 80, Formats: []string{"webp"}, Query: choice{"all"}},
		{ID: "b", Quality: 80, Formats: []string{}, Query: choice{"v"}},
	}
	if !reflect.DeepEqual(r.Value.Sites, want) {
		t.Errorf("%+v", r.Value.Sites)
	}
	r.Value.Sites[0].Formats[0] = "changed"
	if again := mustLoad(t, "sites: [{id: a}]", nil); again.Value.Sites[0].Formats[0] != "webp" {
		t.Error("elements share their defaults")
	}
}

func TestTextMeansWhatItSays(t *testing.T) {
	r := mustLoad(t, `
name: no
limit: 0
"on": YES
count: -0
weight: 0.5
room: {max_size: 1.5KiB, max_pixels: 0, share: 12.5%}
words: [off, 0123, 1:30, 2026-01-01, 1e3, .5, null-ish, "", " x "]
`, nil)
	want := settings{
		Name: "no", On: true, Weight: 0.5,
		Room:  roomConfig{MaxSize: 1536, Share: 12.5},
		Words: []string{"off", "0123", "1:30", "2026-01-01", "1e3", ".5", "null-ish", "", " x "},
	}
	if !reflect.DeepEqual(r.Value, want) {
		t.Errorf("%+v\nwant %+v", r.Value, want)
	}
	for _, text := range []string{"on: off", "on: No", "on: 'false'", "'on': false"} {
		if r := mustLoad(t, "{"+text+"}", nil); r.Value.On {
			t.Errorf("%s is on", text)
		}
	}
}

func TestAliasesAndMergesAreFollowed(t *testing.T) {
	r := mustLoad(t, `
sites:
  - &base {id: a, quality: 50, formats: &f [x]}
  - {<<: *base, id: b}
  - {id: c, formats: *f}
`, nil)
	want := []siteConfig{
		{ID: "a", Quality: 50, Formats: []string{"x"}, Query: choice{"all"}},
		{ID: "b", Quality: 50, Formats: []string{"x"}, Query: choice{"all"}},
		{ID: "c", Quality: 80, Formats: []string{"x"}, Query: choice{"all"}},
	}
	if !reflect.DeepEqual(r.Value.Sites, want) {
		t.Errorf("%+v", r.Value.Sites)
	}
}

func TestUnknownVariablesAreWarnedAbout(t *testing.T) {
	r := mustLoad(t, "", []string{"T_CUONT=1", "T_PORT=tcp://10.0.0.1:80", "T_DOG_COUNT=1"})
	want := []string{
		"environment variable T_CUONT sets nothing; did you mean T_COUNT?",
		"environment variable T_PORT sets nothing",
	}
	if !reflect.DeepEqual(r.Warnings, want) {
		t.Errorf("%q", r.Warnings)
	}
}

func TestMissingFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	o := options(missing, nil)
	if _, err := config.Load(defaults(), o); err == nil || err.Error() != missing+": the configuration cannot be read: no such file or directory" {
		t.Errorf("a file that was named: %v", err)
	}
	o.FileOptional = true
	if r, err := config.Load(defaults(), o); err != nil || !reflect.DeepEqual(r.Value, defaults()) {
		t.Errorf("the default file: %v", err)
	}
	o.File = filepath.Dir(missing)
	if _, err := config.Load(defaults(), o); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a folder: %v", err)
	}
}

func TestDiffNamesWhatChanged(t *testing.T) {
	a, b := defaults(), defaults()
	b.Count, b.Room.Share, b.Sites, b.Keys = 7, 1, []siteConfig{{ID: "x"}}, []string{}
	keys := config.Diff(a, b)
	if want := []string{"count", "room.share", "sites"}; !reflect.DeepEqual(keys, want) {
		t.Errorf("%q", keys)
	}
	if got := config.Under(keys, "room", "site", "count"); !reflect.DeepEqual(got, []string{"count", "room.share"}) {
		t.Errorf("under: %q", got)
	}
}

func TestStructsThatNoFileCanHoldAreNoticed(t *testing.T) {
	for name, load := range map[string]func() error{
		"a map": func() error {
			_, err := config.Load(struct {
				M map[string]string `yaml:"m"`
			}{}, config.Options{})
			return err
		},
		"no tag": func() error { _, err := config.Load(struct{ A string }{}, config.Options{}); return err },
		"a flag for an unknown key": func() error {
			_, err := config.Load(defaults(), config.Options{Flags: []config.Flag{{Name: "--x", Key: "x"}}})
			return err
		},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(r.(string), "config: ") {
					t.Errorf("%s: %v", name, r)
				}
			}()
			_ = load()
		}()
	}
}
