package config

import (
	"encoding"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"strings"
)

// tagName is the struct tag that holds a field's key.
const tagName = "yaml"

// section is a struct of the configuration: the root, a part of it, or what a
// list is made of.
type section struct {
	typ    reflect.Type
	fields []*field
}

// field is one key of a section.
type field struct {
	name  string
	index int
	typ   reflect.Type
	// sub is set for sections and for lists of them.
	sub *section
	// list tells that the field holds many values.
	list bool
	// secret: never to be shown.
	secret bool
	// query: a URL whose query is never to be shown.
	query bool
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// isText tells whether values of t read themselves from text.
func isText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textType) }

// newSection reads the tags of a struct. It panics on a struct that cannot be a
// configuration, which is a mistake of the program and not of its user.
func newSection(t reflect.Type) *section {
	s := &section{typ: t}
	for i := range t.NumField() {
		sf := t.Field(i)
		name := sf.Tag.Get(tagName)
		if name == "" || strings.ContainsAny(name, ",. ") {
			panic(fmt.Sprintf("config: %s.%s needs a plain %s tag", t, sf.Name, tagName))
		}
		f := &field{
			name: name, index: i, typ: sf.Type,
			secret: sf.Tag.Get("secret") == "true",
			query:  sf.Tag.Get("secret") == "query",
		}
		elem := sf.Type
		if elem.Kind() == reflect.Slice && !isText(elem) {
			f.list = true
			elem = elem.Elem()
		}
		switch {
		case isText(elem):
		case elem.Kind() == reflect.Struct:
			f.sub = newSection(elem)
		case !isScalar(elem.Kind()):
			panic(fmt.Sprintf("config: %s.%s has a type that no file can hold: %s", t, sf.Name, sf.Type))
		}
		s.fields = append(s.fields, f)
	}
	return s
}

func isScalar(k reflect.Kind) bool {
	switch k {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	default:
		return false
	}
}

// field finds a key, nil if there is none.
func (s *section) field(name string) *field {
	for _, f := range s.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// leaves goes over all keys that hold a value or a list, in the structs' order;
// it does not go into lists.
func (s *section) leaves() iter.Seq2[string, *field] {
	return func(yield func(string, *field) bool) { s.walk("", false, yield) }
}

// walk also goes into the elements of lists, as "sites[].id", if deep.
func (s *section) walk(prefix string, deep bool, yield func(string, *field) bool) bool {
	for _, f := range s.fields {
		key := Key(prefix, f.name)
		if (f.sub == nil || f.list) && !yield(key, f) {
			return false
		}
		if f.sub == nil || (f.list && !deep) {
			continue
		}
		if f.list {
			key += "[]"
		}
		if !f.sub.walk(key, deep, yield) {
			return false
		}
	}
	return true
}

// values gives the value of each leaf of v, a struct of the section's type.
func (s *section) values(v reflect.Value) leaves {
	flat := leaves{}
	s.collect("", v, flat)
	return flat
}

func (s *section) collect(prefix string, v reflect.Value, into leaves) {
	for _, f := range s.fields {
		key := Key(prefix, f.name)
		if f.sub != nil && !f.list {
			f.sub.collect(key, v.Field(f.index), into)
			continue
		}
		into[key] = v.Field(f.index).Interface()
	}
}

var indexes = regexp.MustCompile(`\[\d+\]`)

// secret tells whether a key, with or without indexes, holds or lies in a secret.
func (s *section) secret(key string) bool {
	return s.any(key, func(f *field) bool { return f.secret })
}

// hidesQuery tells whether a key holds a URL whose query is not to be shown.
func (s *section) hidesQuery(key string) bool {
	return s.any(key, func(f *field) bool { return f.query })
}

// any tells whether something holds for a key, with or without indexes, or for
// what it lies in.
func (s *section) any(key string, holds func(*field) bool) bool {
	key = indexes.ReplaceAllString(key, "")
	for name := range strings.SplitSeq(key, ".") {
		f := s.field(name)
		if f == nil {
			return false
		}
		if holds(f) {
			return true
		}
		if f.sub == nil {
			return false
		}
		s = f.sub
	}
	return false
}

// keys lists all keys by which the nearest one is looked for, "sites[].id" among them.
func (s *section) keys() []string {
	var list []string
	s.walk("", true, func(key string, _ *field) bool {
		list = append(list, key)
		return true
	})
	return list
}

// clone copies a configuration so that no slice is shared.
func clone[T any](v T) T {
	return copyOf(reflect.ValueOf(&v).Elem()).Interface().(T)
}

func copyOf(v reflect.Value) reflect.Value {
	switch {
	case v.Kind() == reflect.Slice && !v.IsNil():
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(copyOf(v.Index(i)))
		}
		return c
	case v.Kind() == reflect.Struct && !isText(v.Type()):
		c := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			c.Field(i).Set(copyOf(v.Field(i)))
		}
		return c
	}
	return v
}
