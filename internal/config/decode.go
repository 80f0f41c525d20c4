package config

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of what is read; a configuration comes nowhere near them.
const (
	maxFileBytes = 1 << 20
	maxNodes     = 100_000 // aliases counted each time they are used
	maxDepth     = 50
	maxProblems  = 100
)

// decoder reads sources and gathers what is wrong with them.
type decoder struct {
	elements map[reflect.Type]reflect.Value
	root     *section
	places   places
	problems []error
	warnings []string
	// bad are keys that could not be read: Validate would only judge what stands in for them.
	bad map[string]bool
	// guessed are keys that were probably meant by unknown ones.
	guessed map[string]bool
	// hopeless: a source could not be read at all.
	hopeless bool
	nodes    int
}

func newDecoder(elements []any) *decoder {
	d := &decoder{elements: map[reflect.Type]reflect.Value{}, places: places{}, bad: map[string]bool{}, guessed: map[string]bool{}}
	for _, e := range elements {
		v := reflect.ValueOf(e)
		d.elements[v.Type()] = v
	}
	return d
}

// refuse records a problem.
func (d *decoder) refuse(p *Problem) {
	d.bad[p.Key] = true
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, p)
	}
}

// reader decodes the nodes of one source.
type reader struct {
	*decoder
	source Source
	depth  int
}

func (r *reader) at(n *yaml.Node) Source {
	s := r.source
	if s.Kind == SourceFile {
		s.Line = n.Line
	}
	return s
}

func (r *reader) refuse(n *yaml.Node, key string, value any, want string) {
	shown := show(value)
	if shown != "" && r.root.secret(key) {
		shown = "(secret)"
	}
	r.decoder.refuse(&Problem{Key: key, Value: shown, Want: want, Source: r.at(n)})
}

func (r *reader) say(n *yaml.Node, key, what string) {
	r.decoder.refuse(&Problem{Key: key, What: what, Source: r.at(n)})
}

// enter follows aliases and counts; false means that the source is too big or
// too deep, which was said.
func (r *reader) enter(n *yaml.Node, key string) (*yaml.Node, bool) {
	r.nodes++
	r.depth++
	if r.nodes > maxNodes || r.depth > maxDepth {
		if !r.hopeless {
			r.hopeless = true
			r.say(n, key, fmt.Sprintf("is nested too deeply or too large (over %d values or %d levels)", maxNodes, maxDepth))
		}
		return n, false
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n, !r.hopeless
}

func (r *reader) leave() { r.depth-- }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// pair is one key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

// pairs lists a mapping's entries, those of merged mappings (`<<: *base`) last
// and only where the mapping itself has no such key.
func (r *reader) pairs(n *yaml.Node, key string) []pair {
	var own, merged []pair
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge" {
			merged = append(merged, r.merged(v, key)...)
			continue
		}
		if k.Kind != yaml.ScalarNode {
			r.say(k, key, "holds a key that is not a plain word")
			continue
		}
		if first, dup := seen[k.Value]; dup {
			what := "is given twice: keep one of them"
			if first > 0 {
				what = fmt.Sprintf("is given twice, first in line %d: keep one of them", first)
			}
			r.say(k, Key(key, k.Value), what)
			continue
		}
		seen[k.Value] = k.Line
		own = append(own, pair{k, v})
	}
	for _, p := range merged {
		if _, dup := seen[p.key.Value]; !dup {
			seen[p.key.Value] = p.key.Line
			own = append(own, p)
		}
	}
	return own
}

func (r *reader) merged(n *yaml.Node, key string) []pair {
	n, ok := r.enter(n, key)
	defer r.leave()
	switch {
	case !ok:
		return nil
	case n.Kind == yaml.MappingNode:
		return r.pairs(n, key)
	case n.Kind == yaml.SequenceNode:
		var list []pair
		for _, item := range n.Content {
			list = append(list, r.merged(item, key)...)
		}
		return list
	}
	r.say(n, key, "merges (<<) something that has no keys")
	return nil
}

// section reads a mapping. For each of its fields it calls set, which gets the
// key's node and reads it.
func (r *reader) section(s *section, n *yaml.Node, key string, set func(f *field, key string, n *yaml.Node)) {
	n, ok := r.enter(n, key)
	defer r.leave()
	switch {
	case !ok || isNull(n):
		return
	case n.Kind != yaml.MappingNode:
		r.refuse(n, key, describe(n), "a section with keys such as "+s.fields[0].name)
		return
	}
	for _, p := range r.pairs(n, key) {
		f := s.field(p.key.Value)
		full := Key(key, p.key.Value)
		if f == nil {
			r.unknown(s, p.key, key)
			continue
		}
		value, _ := r.enter(p.value, full)
		r.leave()
		if r.hopeless || isNull(value) {
			continue
		}
		r.places[full] = r.at(p.key)
		set(f, full, value)
	}
}

// collect reads a section whose values go to a flat list.
func (r *reader) collect(s *section, n *yaml.Node, key string, into leaves) {
	r.section(s, n, key, func(f *field, key string, n *yaml.Node) {
		if f.sub != nil && !f.list {
			r.collect(f.sub, n, key, into)
			return
		}
		v := reflect.New(f.typ).Elem()
		if r.value(f, n, key, v) {
			into[key] = v.Interface()
		}
	})
}

// fill reads a section into a struct.
func (r *reader) fill(s *section, n *yaml.Node, key string, dst reflect.Value) {
	r.section(s, n, key, func(f *field, key string, n *yaml.Node) {
		v := dst.Field(f.index)
		if f.sub != nil && !f.list {
			r.fill(f.sub, n, key, v)
			return
		}
		fresh := reflect.New(f.typ).Elem()
		if r.value(f, n, key, fresh) {
			v.Set(fresh)
		}
	})
}

// value reads a scalar or a list into dst; false means that it was refused.
func (r *reader) value(f *field, n *yaml.Node, key string, dst reflect.Value) bool {
	if !f.list {
		return r.scalar(n, key, dst)
	}
	n, ok := r.enter(n, key)
	defer r.leave()
	if !ok {
		return false
	}
	if n.Kind != yaml.SequenceNode {
		want := "a list such as [a, b]"
		switch {
		case f.sub != nil && r.source.Kind == SourceFile:
			want = "a list, each element beginning with a dash"
		case f.sub != nil:
			want = "a JSON list of objects"
		case r.source.Kind != SourceFile:
			want = `a JSON list such as ["a", "b"]`
		}
		r.refuse(n, key, describe(n), want)
		return false
	}
	list := reflect.MakeSlice(f.typ, len(n.Content), len(n.Content))
	for i, item := range n.Content {
		r.element(f, item, Key(key, i), list.Index(i))
		if r.hopeless {
			return false
		}
	}
	dst.Set(list)
	return true
}

func (r *reader) element(f *field, n *yaml.Node, key string, dst reflect.Value) {
	r.places[key] = r.at(n)
	resolved, ok := r.enter(n, key)
	defer r.leave()
	switch {
	case !ok:
	case isNull(resolved):
		r.say(n, key, "is an empty element: remove it or fill it in")
	case f.sub == nil:
		r.scalar(resolved, key, dst)
	default:
		if def, ok := r.elements[dst.Type()]; ok {
			dst.Set(copyOf(def))
		}
		r.fill(f.sub, resolved, key, dst)
	}
}

// listReader is implemented by types that are written as a word or as a list of words.
type listReader interface{ UnmarshalList(words []string) error }

func (r *reader) scalar(n *yaml.Node, key string, dst reflect.Value) bool {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if l, ok := dst.Addr().Interface().(listReader); ok && n.Kind == yaml.SequenceNode {
		return r.words(n, key, l)
	}
	if n.Kind != yaml.ScalarNode {
		r.refuse(n, key, describe(n), wanted(dst))
		return false
	}
	if tag := n.ShortTag(); !strings.HasPrefix(tag, "!!") || tag == "!!binary" {
		r.say(n, key, "has the tag "+tag+", which is not known here: remove it")
		return false
	}
	if want, ok := setText(dst, n.Value); !ok {
		r.refuse(n, key, n.Value, want)
		return false
	}
	return true
}

func (r *reader) words(n *yaml.Node, key string, dst listReader) bool {
	words := make([]string, 0, len(n.Content))
	for i, item := range n.Content {
		item, ok := r.enter(item, key)
		r.leave()
		if !ok {
			return false
		}
		if item.Kind != yaml.ScalarNode || isNull(item) {
			r.refuse(item, Key(key, i), describe(item), "a word")
			return false
		}
		words = append(words, item.Value)
	}
	if err := dst.UnmarshalList(words); err != nil {
		r.say(n, key, err.Error())
		return false
	}
	return true
}

// wanted gives the form of a scalar's type, by trying a text that none takes.
func wanted(dst reflect.Value) string {
	probe := reflect.New(dst.Type()).Elem()
	if want, ok := setText(probe, "\x00"); !ok {
		return want
	}
	return "a text"
}

// plain is a description that is shown without quotes.
type plain string

// describe names what stands where something else should.
func describe(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		return plain("a section")
	case yaml.SequenceNode:
		return plain("a list")
	}
	if isNull(n) {
		return plain("empty")
	}
	return n.Value
}
