package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// unreadable says what is wrong with a body that is to be read into v, in the words
// of JSON: the names of types are nothing to whoever sent it.
func unreadable(err error, v any) error {
	mistyped, malformed := (*json.UnmarshalTypeError)(nil), (*json.SyntaxError)(nil)
	switch {
	case errors.As(err, &mistyped) && mistyped.Field == "":
		return Invalid(fmt.Sprintf("the body is %s", article(mistyped.Value)), "send "+kindOf(mistyped.Type)+fields(v))
	case errors.As(err, &mistyped):
		remedy := "send " + kindOf(mistyped.Type)
		if f, ok := fieldOf(reflect.TypeOf(v), mistyped.Field); ok && f.Tag.Get("example") != "" {
			sample, _ := json.Marshal(f.Tag.Get("example")) // a string
			if f.Type.Kind() != reflect.String {
				sample = []byte(f.Tag.Get("example"))
			}
			remedy += fmt.Sprintf(", such as %q: %s", mistyped.Field, sample)
		}
		return Invalid(fmt.Sprintf("%s is %s", mistyped.Field, article(mistyped.Value)), remedy)
	case errors.As(err, &malformed):
		return Invalid(fmt.Sprintf("the body is no JSON at byte %d: %s", malformed.Offset, malformed.Error()), "")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Invalid("the body ends within its JSON value", "")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return Invalid("there is no field "+name, "send "+strings.TrimPrefix(fields(v), " with "))
	}
	return Invalid("the body is no JSON value of the form that is wanted", "")
}

// article gives the kind of a JSON value, as the decoder names it, for a sentence.
func article(kind string) string {
	kind, _, _ = strings.Cut(kind, " ") // "number -5"
	switch kind {
	case "bool":
		return "true or false"
	case "array", "object":
		return "an " + kind
	}
	return "a " + kind
}

// kindOf gives the kind of JSON value that a Go type is written as.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.String:
		return "a string"
	}
	return "a number"
}

// fields lists the fields of a body, " with a, b", or gives "".
func fields(v any) string {
	t := reflect.TypeOf(v)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return ""
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name := nameOf(f); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return " with " + strings.Join(names, ", ")
}

// fieldOf finds the field of a body by its path, such as "items.name".
func fieldOf(t reflect.Type, path string) (found reflect.StructField, ok bool) {
	for name := range strings.SplitSeq(path, ".") {
		for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
			t = t.Elem()
		}
		if t == nil || t.Kind() != reflect.Struct {
			return found, false
		}
		ok = false
		for _, f := range reflect.VisibleFields(t) {
			if nameOf(f) == name {
				found, ok, t = f, true, f.Type
				break
			}
		}
		if !ok {
			return found, false
		}
	}
	return found, ok
}

// nameOf gives the name of a field in JSON, "" for one that is not part of it.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case !f.IsExported() || name == "-" || f.Anonymous:
		return ""
	case name == "":
		return f.Name
	}
	return name
}
