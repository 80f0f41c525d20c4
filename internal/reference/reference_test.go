package reference

import (
	"errors"
	"strings"
	"testing"
	"time"

	"karui/internal/config"
	"karui/internal/units"
)

// Sample is the section `sample` of a file: a sample of everything.
type Sample struct {
	// Wait is how long it waits.
	Wait time.Duration `yaml:"wait"`
	// Size is its size; old|new.
	Size   units.Size `yaml:"size"`
	Inner  Inner      `yaml:"inner"`
	Switch bool       `yaml:"switch"` // Switch turns it on.
	// Words are words.
	Words []string `yaml:"words"`
	// Password is nobody's business.
	Password string `yaml:"password" secret:"true"`
	// Parts are its parts.
	Parts []Part `yaml:"parts"`
}

// Inner is what lies within.
type Inner struct {
	// Level is low or high.
	Level string `yaml:"level"`
}

// Part is one part.
type Part struct {
	// Weight is what it weighs.
	Weight float64 `yaml:"weight"`
}

// Validate makes Sample a configuration.
func (s Sample) Validate(string) error {
	errs := []error{
		config.InRange("wait", s.Wait, time.Second, time.Hour),
		config.OneOf("inner.level", s.Inner.Level, "low", "high"),
		config.AtMost("words", len(s.Words), 3),
	}
	for i, p := range s.Parts {
		errs = append(errs, config.InRange(config.Key("parts", i, "weight"), p.Weight, 0.5, 2))
	}
	return errors.Join(errs...)
}

func options(valid *Sample) Options {
	return Options{
		Valid: valid, Defaults: Sample{Wait: time.Hour, Size: 1 << 20, Words: []string{"a", "b"}}, Elements: []any{Part{Weight: 1}},
		EnvPrefix: "SAMPLE_", Root: "../..", Lasting: func(key string) bool { return key == "size" },
	}
}

func TestKeys(t *testing.T) {
	valid := &Sample{Wait: time.Minute, Inner: Inner{Level: "low"}, Parts: []Part{{Weight: 1}}}
	o := options(valid)
	// The comments of this package's tests are not read, so that the structs' are
	// given here as they would be.
	w := walk{options: o, root: o.Valid, comments: comments{known: map[string]map[string]string{"internal/reference": {
		"Sample.Wait": "Wait is how long it waits.\n", "Sample.Size": "Size is its size; old|new.\n", "Sample.Switch": "Switch turns it on.\n",
		"Sample.Words": "Words are words.\n", "Sample.Password": "Password is nobody's business.\n", "Sample.Parts": "Parts are its parts.\n",
		"Inner": "Inner is what lies within.\n", "Inner.Level": "Level is low or high.\n", "Part.Weight": "Weight is what it weighs.\n",
	}}}}
	keys, err := w.all()
	if err != nil {
		t.Fatal(err)
	}
	got := Markdown(keys)
	want := "\n| key | form | default | |\n|---|---|---|---|\n" +
		"| `wait` | duration | `1h` | `wait` is how long it waits. *It must be from 1s to 1h.* `SAMPLE_WAIT` |\n" +
		"| `size` | size | `1MiB` | `size` is its size; old\\|new. `SAMPLE_SIZE` (restart) |\n" +
		"| `switch` | switch | `false` | `switch` turns it on. `SAMPLE_SWITCH` |\n" +
		"| `words` | list of texts | `[a, b]` | `words` are words. `SAMPLE_WORDS` |\n" +
		"| `password` | secret | `\"\"` | `password` is nobody's business. `SAMPLE_PASSWORD` |\n" +
		"\n### inner\n\nWhat lies within.\n\n| key | form | default | |\n|---|---|---|---|\n" +
		"| `inner.level` | text | `\"\"` | `level` is low or high. `SAMPLE_INNER_LEVEL` |\n" +
		"\n### parts[]\n\n`parts` are its parts. As JSON: `SAMPLE_PARTS`.\n\n| key | form | default | |\n|---|---|---|---|\n" +
		"| `parts[].weight` | number | `1` | `weight` is what it weighs. *It must be from 0.5 to 2.* |\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if valid.Wait != time.Minute || valid.Inner.Level != "low" || valid.Parts[0].Weight != 1 {
		t.Errorf("the example was not put back: %+v", valid)
	}
}

func TestMistakesOfTheProgram(t *testing.T) {
	good := Sample{Wait: time.Minute, Inner: Inner{Level: "low"}, Parts: []Part{{Weight: 1}}}
	for want, change := range map[string]func(*Sample){
		"no comment":       func(*Sample) {},
		"not valid":        func(s *Sample) { s.Wait = 0 },
		"no element in pa": func(s *Sample) { s.Parts = nil },
	} {
		s := good
		change(&s)
		if _, err := Keys(options(&s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
