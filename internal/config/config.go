// Package config loads the settings of a program into the structs of the
// packages that own them. It knows no concrete struct.
//
// A value comes from, strongest first, a flag, the environment, a YAML file, or
// the defaults that the caller passes in. The package guarantees that
//
//   - every mistake is reported, not just the first, each with the file and line
//     (or variable, or flag), the key, the value and what would be right;
//   - unknown keys are refused, however deep they lie, with the nearest known one;
//   - text means what it says: `no` is false for a switch and the word "no" for
//     a text, 010 is refused rather than taken as 8, and durations, sizes, pixels
//     and percentages need their unit;
//   - no message and no printed configuration holds a secret.
//
// It does not know whether values make sense: a root struct says so with a
// method Validate(key string) error. A method Normalize() on its pointer, called
// before, may bring values into the form that the program compares (lower case).
//
// Unknown environment variables that begin with the prefix are warned about, not
// refused: orchestrators put variables of their own beside ours (KARUI_PORT and
// KARUI_SERVICE_HOST, when a service is called karui). An empty variable counts
// as not set. A key without a value (`ca_file:`) keeps its default.
package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// Options say where the values come from.
type Options struct {
	// File is the path of the YAML file; empty for none.
	File string
	// FileOptional takes a missing file as an empty one, for the default path.
	FileOptional bool
	// EnvPrefix begins the names of the environment variables, such as "KARUI_";
	// empty reads no environment.
	EnvPrefix string
	// ForeignPrefixes begin variables that belong to somebody else although they
	// begin with EnvPrefix, such as "KARUI_WATCHDOG_".
	ForeignPrefixes []string
	// Environ is the environment, as os.Environ gives it.
	Environ []string
	// Flags win over everything else.
	Flags []Flag
	// Elements are default values of list elements, one struct for each type that
	// has any (proxy.DefaultSite(), for example). Other elements begin empty.
	Elements []any
}

// Flag is one key that the command line sets. Its value is written as it would
// be in the environment: lists as JSON.
type Flag struct {
	// Name is what the user typed, such as "--origin".
	Name  string
	Key   string
	Value string
}

// Result is a configuration that was loaded.
type Result[T any] struct {
	Value T
	// Warnings are things that were tolerated and yet look like mistakes.
	Warnings []string

	// written is Value before `file:` references to secrets were followed.
	written T
	places  places
}

// Source tells where the value of a key came from.
func (r *Result[T]) Source(key string) Source { return r.places[key] }

// Load reads all sources, resolves secrets and validates. The error joins every
// mistake found, each a *Problem; a file that cannot be opened is one, too.
func Load[T any](defaults T, o Options) (*Result[T], error) {
	d := newDecoder(o.Elements)
	root := d.schema(reflect.TypeFor[T]())

	fromFile := d.readFile(root, o)
	fromEnv := d.readEnv(root, o)
	fromFlags := d.readFlags(root, o.Flags)
	if d.hopeless {
		return nil, d.failure()
	}

	result := &Result[T]{places: d.places}
	if err := merge(root, defaults, &result.written, fromFile, fromEnv, fromFlags); err != nil {
		return nil, err
	}
	result.Value = clone(result.written)
	d.resolveSecrets("", reflect.ValueOf(&result.Value).Elem(), false)
	if n, ok := any(&result.Value).(interface{ Normalize() }); ok {
		n.Normalize()
	}
	if v, ok := any(result.Value).(interface{ Validate(key string) error }); ok {
		d.judge(v.Validate(""))
	}
	if len(d.problems) > 0 {
		// In the order of the file, as far as there is one.
		slices.SortStableFunc(d.problems, func(a, b error) int { return line(a) - line(b) })
		return nil, d.failure()
	}
	result.Warnings = d.warnings
	return result, nil
}

// failure joins all mistakes. What would only have been warned about comes last: a
// misspelt variable may be the very reason for a mistake.
func (d *decoder) failure() error {
	all := d.problems
	for _, w := range d.warnings {
		all = append(all, errors.New("warning: "+w))
	}
	return errors.Join(all...)
}

// leaves are values of the keys that are not sections, already of their final types.
type leaves map[string]any

// merge lets the stronger source win, key by key.
//
// Viper drops environment variables of keys without a default and lower-cases
// what it is given; neither matters here, since every key has a default, values
// arrive decoded, and keys were checked against the struct before.
func merge[T any](root *section, defaults T, out *T, file, env, flags leaves) error {
	v := viper.New()
	for key, value := range root.values(reflect.ValueOf(defaults)) {
		v.SetDefault(key, value)
	}
	for _, source := range []leaves{file, env} {
		if err := v.MergeConfigMap(nest(source)); err != nil {
			return fmt.Errorf("merge configuration: %w", err)
		}
	}
	for key, value := range flags {
		v.Set(key, value)
	}
	err := v.UnmarshalExact(out, func(c *mapstructure.DecoderConfig) {
		c.TagName = tagName
		c.DecodeHook = nil // values have their types already
		c.WeaklyTypedInput = false
	})
	if err != nil {
		return fmt.Errorf("merge configuration: %w", err)
	}
	return nil
}

// nest turns dotted keys into maps within maps.
func nest(flat leaves) map[string]any {
	root := map[string]any{}
	for key, value := range flat {
		parts := strings.Split(key, ".")
		m := root
		for _, part := range parts[:len(parts)-1] {
			sub, ok := m[part].(map[string]any)
			if !ok {
				sub = map[string]any{}
				m[part] = sub
			}
			m = sub
		}
		m[parts[len(parts)-1]] = value
	}
	return root
}

// judge takes over what Validate found, says where the values were written and
// hides what must not be shown. What could not be read was replaced by its
// default, so that nothing is to be learned from a verdict on it.
func (d *decoder) judge(err error) {
	for _, e := range flatten(err) {
		var p *Problem
		if !errors.As(e, &p) {
			d.problems = append(d.problems, e)
			continue
		}
		if d.unreadable(p.Key) || p.Value == "" && d.guessed[p.Key] || slices.ContainsFunc(p.restsOn, d.inDoubt) {
			continue
		}
		located := *p
		located.Source = d.places.nearest(p.Key)
		if p.Value != "" && d.root.secret(p.Key) {
			located.Value = "(secret)"
		} else if d.root.hidesQuery(p.Key) {
			located.Value = hideQuery(p.Value)
		}
		d.refuse(&located)
	}
}

// inDoubt tells whether a key could not be read, or was probably meant by an
// unknown one.
func (d *decoder) inDoubt(key string) bool { return d.unreadable(key) || d.guessed[key] }

// unreadable tells whether a key, or what it lies in, could not be read.
func (d *decoder) unreadable(key string) bool {
	for key != "" {
		if d.bad[key] {
			return true
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return false
}

func line(err error) int {
	var p *Problem
	if errors.As(err, &p) {
		return p.Source.Line
	}
	return 0
}
