package config

import (
	"encoding"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes the effective configuration as a YAML file that can be loaded
// again, each value with the place it came from as a comment. Secrets are masked,
// except for the paths of those that lie in files, and so are the queries of URLs
// that may hold one.
func (r *Result[T]) Print(w io.Writer) error { return r.print(w, printer{places: r.places}) }

// PrintChanged writes only what some source sets, to whatever value: what Print
// writes less the defaults. Loaded again, it gives the same configuration.
func (r *Result[T]) PrintChanged(w io.Writer) error {
	return r.print(w, printer{places: r.places, changed: true})
}

func (r *Result[T]) print(w io.Writer, p printer) error {
	v := reflect.ValueOf(r.written)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(p.section(newSection(v.Type()), "", v)); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return enc.Close()
}

type printer struct {
	places places
	// changed leaves out what is not set.
	changed bool
}

// set tells whether some source sets a key, or one below it.
func (p printer) set(key string) bool {
	for k, source := range p.places {
		if source.Kind != SourceDefault && (k == key || strings.HasPrefix(k, key+".") || strings.HasPrefix(k, key+"[")) {
			return true
		}
	}
	return false
}

func (p printer) section(s *section, key string, v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range s.fields {
		if p.changed && !p.set(Key(key, f.name)) {
			continue
		}
		name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.name}
		n.Content = append(n.Content, name, p.field(f, Key(key, f.name), v.Field(f.index)))
	}
	return n
}

func (p printer) field(f *field, key string, v reflect.Value) *yaml.Node {
	switch {
	case f.sub != nil && !f.list:
		return p.section(f.sub, key, v)
	case f.sub != nil && v.Len() > 0:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, p.section(f.sub, Key(key, i), v.Index(i)))
		}
		return n
	}
	var n *yaml.Node
	if f.list {
		n = &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for i := range v.Len() {
			n.Content = append(n.Content, scalarNode(v.Index(i), Key(key, i), f.secret))
		}
	} else {
		n = scalarNode(v, key, f.secret)
		if f.query {
			n = textNode(hideQuery(v.String()))
		}
	}
	n.LineComment = p.places[key].String()
	return n
}

func scalarNode(v reflect.Value, key string, secret bool) *yaml.Node {
	if l, ok := v.Interface().(interface{ List() []string }); ok && len(l.List()) > 0 {
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, word := range l.List() {
			n.Content = append(n.Content, textNode(word))
		}
		return n
	}
	text, isString := textOf(v)
	if secret && text != "" && !strings.HasPrefix(text, filePrefix) {
		text = mask(key)
	}
	if isString {
		return textNode(text)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
}

// textNode lets the encoder put quotes where the text would read as something else.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	if strings.ContainsAny(text, "\n\r") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// textOf is the inverse of setText.
func textOf(v reflect.Value) (text string, isString bool) {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		if err != nil {
			panic(fmt.Sprintf("config: write %s: %s", v.Type(), err))
		}
		return string(b), false
	}
	switch {
	case v.Type() == durationType:
		return show(v.Interface()), false
	case v.Kind() == reflect.String:
		return v.String(), true
	case v.Kind() == reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64), false
	}
	return fmt.Sprint(v.Interface()), false
}
