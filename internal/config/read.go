package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (d *decoder) schema(t reflect.Type) *section {
	d.root = newSection(t)
	return d.root
}

// readFile reads the YAML file.
func (d *decoder) readFile(root *section, o Options) leaves {
	values := leaves{}
	if o.File == "" {
		return values
	}
	source := Source{Kind: SourceFile, Name: o.File}
	text, err := readBounded(o.File, maxFileBytes)
	switch {
	case errors.Is(err, os.ErrNotExist) && o.FileOptional:
		return values
	case err != nil:
		d.hopeless = true
		d.refuse(&Problem{What: "cannot be read: " + reason(err), Source: source})
		return values
	}
	doc, problem := parseYAML(text)
	if problem == nil && doc != nil && doc.Kind == yaml.ScalarNode {
		if line, what := strangeSpace(text); what != "" {
			problem = &Problem{What: "is not YAML: " + what, Source: Source{Line: line}}
		}
	}
	if problem != nil {
		d.hopeless = true
		problem.Source.Kind, problem.Source.Name = SourceFile, o.File
		d.refuse(problem)
		return values
	}
	if doc == nil {
		return values
	}
	r := &reader{decoder: d, source: source}
	r.collect(root, doc, "", values)
	return values
}

// readBounded reads a whole file that must not be larger than limit.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return text, nil
}

// reason leaves the path out of an error, since the message begins with it.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// parseYAML gives the document's value, nil if it is empty.
func parseYAML(text []byte) (*yaml.Node, *Problem) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxProblem(err, text)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, &Problem{What: "holds a second document (---): put everything into the first", Source: Source{Line: more.Line}}
	case !errors.Is(err, io.EOF):
		return nil, syntaxProblem(err, text)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// syntaxProblem says what the parser found, or rather what it tripped over without
// seeing it.
func syntaxProblem(err error, text []byte) *Problem {
	if line, what := strangeSpace(text); what != "" {
		return &Problem{What: "is not YAML: " + what, Source: Source{Line: line}}
	}
	p := &Problem{What: "is not YAML: " + err.Error()}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		p.What = "is not YAML: " + m[2]
		p.Source.Line, _ = strconv.Atoi(m[1])
	}
	return p
}

// EnvName gives the environment variable of a key: "cache.memory" is
// KARUI_CACHE_MEMORY with the prefix "KARUI_".
func EnvName(prefix, key string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// readEnv reads the environment, in the order of the keys.
func (d *decoder) readEnv(root *section, o Options) leaves {
	values := leaves{}
	if o.EnvPrefix == "" {
		return values
	}
	vars := map[string]string{}
	for _, entry := range o.Environ {
		name, value, _ := strings.Cut(entry, "=")
		foreign := slices.ContainsFunc(o.ForeignPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		if strings.HasPrefix(name, o.EnvPrefix) && !foreign {
			vars[name] = value
		}
	}
	var names []string
	for key, f := range root.leaves() {
		name := EnvName(o.EnvPrefix, key)
		names = append(names, name)
		value, set := vars[name]
		delete(vars, name)
		if set && value != "" {
			d.readText(f, key, value, Source{Kind: SourceEnv, Name: name}, values)
		}
	}
	for _, name := range sorted(vars) {
		warning := fmt.Sprintf("environment variable %s sets nothing", name)
		if hint := nearestName(name, names); hint != "" {
			warning += "; did you mean " + hint + "?"
		}
		d.warnings = append(d.warnings, warning)
	}
	return values
}

func sorted(vars map[string]string) []string {
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// nearestName is nearestWord for variables, which are all in capitals.
func nearestName(name string, names []string) string {
	lower := make([]string, len(names))
	for i, n := range names {
		lower[i] = strings.ToLower(n)
	}
	return strings.ToUpper(nearestWord(name, lower))
}

// readFlags reads what the command line sets.
func (d *decoder) readFlags(root *section, flags []Flag) leaves {
	values := leaves{}
	fields := map[string]*field{}
	for key, f := range root.leaves() {
		fields[key] = f
	}
	for _, flag := range flags {
		f, ok := fields[flag.Key]
		if !ok {
			panic("config: the flag " + flag.Name + " sets an unknown key: " + flag.Key)
		}
		d.readText(f, flag.Key, flag.Value, Source{Kind: SourceFlag, Name: flag.Name}, values)
	}
	return values
}

// readText reads one value from outside a file; lists are JSON.
func (d *decoder) readText(f *field, key, text string, source Source, into leaves) {
	d.places.forget(key)
	d.places[key] = source
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	r := &reader{decoder: d, source: source}
	if f.list {
		parsed, err := parseJSON(text)
		if err != nil {
			want := `a JSON list such as ["a", "b"]`
			if f.sub != nil {
				want = `a JSON list such as [{"` + f.sub.fields[0].name + `": "..."}]`
			}
			r.refuse(n, key, text, want+" ("+err.Error()+")")
			return
		}
		n = parsed
	}
	v := reflect.New(f.typ).Elem()
	if r.value(f, n, key, v) {
		into[key] = v.Interface()
	}
}

// parseJSON reads JSON into the form that files have.
func parseJSON(text string) (*yaml.Node, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	n, err := jsonNode(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the end of the list")
	}
	return n, nil
}

func jsonNode(dec *json.Decoder, depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	token, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		for dec.More() {
			if n.Kind == yaml.MappingNode {
				name, err := dec.Token()
				if err != nil {
					return nil, err
				}
				n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprint(name)})
			}
			value, err := jsonNode(dec, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, value)
		}
		_, err := dec.Token() // the closing bracket
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprint(t)}, nil
	}
}

// Quote writes text as JSON, for the lists that flags and variables hold.
func Quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic("config: a string is always JSON: " + err.Error())
	}
	return string(b)
}
