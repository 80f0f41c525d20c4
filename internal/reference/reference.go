// Package reference writes the reference of a configuration from its structs: every
// key with its form, its default, what is allowed, its environment variable and
// what it does.
//
// Guaranteed: no key of the struct is missing, each has the comment of its field, and
// what is said to be allowed are the words with which Validate refuses other values:
// they are found out by giving it some. Not guaranteed: that every verdict is found;
// those that depend on several keys are in the comments.
package reference

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"

	"karui/internal/config"
)

// Options say what is described.
type Options struct {
	// Valid is a configuration that Validate takes and that has an element in every
	// list of structs; it is changed key by key and put back. A pointer to a struct.
	Valid any
	// Defaults are the values of a file that says nothing, and Elements those of list
	// elements, one struct for each type that has any.
	Defaults any
	Elements []any
	// EnvPrefix begins the names of environment variables.
	EnvPrefix string
	// Lasting tells whether only a restart changes a key.
	Lasting func(key string) bool
	// Root is the repository's folder, where the comments are read.
	Root string
}

// Key is one key of the configuration.
type Key struct {
	// Name is dotted, with [] behind lists of sections: sites[].quality.
	Name string
	// Form is how a value is written: duration, size, text, list of numbers, ...
	Form string
	// Default is written as a file would; empty for a list of sections.
	Default string
	// Allowed are the words of Validate, "" where no value was refused.
	Allowed string
	// Variable is the environment variable; empty within lists.
	Variable string
	// Reload is whether SIGHUP changes it.
	Reload bool
	// Doc is what it does.
	Doc string
	// Section is set for a section and for a list of sections, which have no value of
	// their own.
	Section bool
}

// Keys lists all keys in the order of the structs. The error names the keys without
// a comment.
func Keys(o Options) ([]Key, error) {
	w := walk{options: o, root: o.Valid, comments: comments{root: o.Root, known: map[string]map[string]string{}}}
	return w.all()
}

// all walks over everything.
func (w *walk) all() ([]Key, error) {
	if err := w.validate(); err != nil {
		return nil, fmt.Errorf("the example is not valid: %w", err)
	}
	if err := w.section("", "", reflect.ValueOf(w.root).Elem(), reflect.ValueOf(w.options.Defaults)); err != nil {
		return nil, err
	}
	if len(w.bare) > 0 {
		return nil, fmt.Errorf("these keys have no comment in their structs: %s", strings.Join(w.bare, ", "))
	}
	return w.keys, nil
}

// walk is one pass over the structs.
type walk struct {
	options  Options
	root     any
	comments comments
	keys     []Key
	bare     []string // keys without a comment
}

// section describes the fields of a struct. Name has [] for lists, and key the index
// of the example's element.
func (w *walk) section(name, key string, valid, defaults reflect.Value) error {
	t := valid.Type()
	var sections []func() error // they come behind the section's own keys
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("yaml")
		k := Key{Name: config.Key(name, tag), Reload: !w.options.Lasting(strings.ReplaceAll(config.Key(name, tag), "[]", ""))}
		doc, err := w.comments.field(t, f.Name)
		if err != nil {
			return err
		}
		k.Doc = about(doc, f.Name, tag)
		at := config.Key(key, tag)
		elem, list := f.Type, false
		if elem.Kind() == reflect.Slice && !isText(elem) {
			elem, list = elem.Elem(), true
		}
		inside := elem.Kind() == reflect.Struct && !isText(elem)
		if !strings.Contains(k.Name, "[]") && (!inside || list) {
			k.Variable = w.options.EnvPrefix + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
		}
		if inside {
			sections = append(sections, func() error { return w.inside(k, at, elem, list, valid.Field(i), defaults.Field(i)) })
			continue
		}
		if k.Doc == "" {
			w.bare = append(w.bare, k.Name)
		}
		k.Form, k.Default = form(elem), written(defaults.Field(i))
		if f.Tag.Get("secret") == "true" {
			k.Form = "secret"
		}
		if list {
			k.Form = "list of " + plural(k.Form)
		}
		k.Allowed = w.allowed(at, valid.Field(i))
		w.keys = append(w.keys, k)
	}
	for _, section := range sections {
		if err := section(); err != nil {
			return err
		}
	}
	return nil
}

// inside describes a section, or a list of them.
func (w *walk) inside(k Key, at string, elem reflect.Type, list bool, valid, defaults reflect.Value) error {
	k.Section = true
	if k.Doc == "" {
		doc, err := w.comments.typ(elem)
		if err != nil {
			return err
		}
		k.Doc = about(doc, elem.Name(), "")
	}
	name := k.Name
	if list {
		k.Form = "list of sections"
		k.Allowed = w.allowed(at, valid)
		if valid.Len() == 0 {
			return fmt.Errorf("the example has no element in %s", k.Name)
		}
		name, at, valid = name+"[]", config.Key(at, 0), valid.Index(0)
		defaults = reflect.Zero(elem)
		for _, e := range w.options.Elements {
			if reflect.TypeOf(e) == elem {
				defaults = reflect.ValueOf(e)
			}
		}
	}
	w.keys = append(w.keys, k)
	return w.section(name, at, valid, defaults)
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

func isText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textType) }

// form names the form of a value as docs/configuration.md explains it.
func form(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case isText(t):
		return strings.ToLower(t.Name())
	case t.Kind() == reflect.Bool:
		return "switch"
	case t.Kind() == reflect.String:
		return "text"
	}
	return "number"
}

func plural(form string) string {
	if strings.HasSuffix(form, "ch") {
		return form + "es"
	}
	return form + "s"
}

// written gives a value as a file would have it.
func written(v reflect.Value) string {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		if err != nil {
			return ""
		}
		return string(b)
	}
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return duration(v.Interface().(time.Duration)) //nolint:errcheck,forcetypeassert // its type was compared
	case v.Kind() == reflect.Slice:
		all := make([]string, v.Len())
		for i := range all {
			all[i] = written(v.Index(i))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case v.Kind() == reflect.String:
		return cmp.Or(v.String(), `""`)
	}
	return fmt.Sprint(v.Interface())
}

// duration is d without its zero parts: 24h, not 24h0m0s.
func duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// about makes a field's comment a sentence about its key: where it begins with the
// field's name, that gives way to the key's, or to nothing.
func about(doc, field, key string) string {
	doc = strings.Join(strings.Fields(doc), " ")
	rest, ok := strings.CutPrefix(doc, field+" ")
	switch {
	case !ok:
		return doc
	case key != "":
		return "`" + key + "` " + rest
	}
	if _, after, ok := strings.Cut(rest, ": "); ok && strings.HasPrefix(rest, "is the section") {
		rest = after
	}
	for _, article := range []string{"is ", "names ", "marks "} {
		if strings.HasPrefix(rest, article) {
			rest = strings.TrimPrefix(rest, "is ")
			break
		}
	}
	letters := []rune(rest)
	letters[0] = unicode.ToUpper(letters[0])
	return string(letters)
}
