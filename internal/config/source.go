package config

import (
	"fmt"
	"strings"
)

// SourceKind says what kind of place a value came from.
type SourceKind uint8

// The places that a value can come from, weakest first.
const (
	SourceDefault SourceKind = iota
	SourceFile
	SourceEnv
	SourceFlag
)

// Source is the place that a value came from.
type Source struct {
	Kind SourceKind
	// Name is the file's path, the environment variable or the flag.
	Name string
	// Line counts from 1; 0 where there are no lines.
	Line int
}

// String gives "default", "karui.yaml:12", "KARUI_DRAIN" or "--origin".
func (s Source) String() string {
	switch {
	case s.Kind == SourceDefault:
		return "default"
	case s.Line > 0:
		return fmt.Sprintf("%s:%d", s.Name, s.Line)
	}
	return s.Name
}

// places remembers where each key was written, sections and list elements included.
type places map[string]Source

// forget removes a key and all below it: a later source has replaced it.
func (p places) forget(key string) {
	for k := range p {
		if k == key || strings.HasPrefix(k, key+".") || strings.HasPrefix(k, key+"[") {
			delete(p, k)
		}
	}
}

// nearest gives the place of key, or that of the closest thing around it: what
// is missing in a list element is reported at the element.
func (p places) nearest(key string) Source {
	for key != "" {
		if s, ok := p[key]; ok {
			return s
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return Source{}
}
