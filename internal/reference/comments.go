package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// module is the path that all packages with configuration begin with.
const module = "karui/"

// comments are those of structs and their fields, read from the sources once a
// package: by "Type" and "Type.Field".
type comments struct {
	root  string
	known map[string]map[string]string
}

// field gives the comment of a struct's field, the one above it or the one beside it.
func (c comments) field(t reflect.Type, name string) (string, error) {
	return c.find(t, t.Name()+"."+name)
}

// typ gives the comment of a type.
func (c comments) typ(t reflect.Type) (string, error) { return c.find(t, t.Name()) }

func (c comments) find(t reflect.Type, what string) (string, error) {
	folder, ok := strings.CutPrefix(t.PkgPath(), module)
	if !ok {
		return "", fmt.Errorf("%s is not of this module", t)
	}
	if c.known[folder] == nil {
		read, err := readComments(filepath.Join(c.root, filepath.FromSlash(folder)))
		if err != nil {
			return "", err
		}
		c.known[folder] = read
	}
	return c.known[folder][what], nil
}

func readComments(folder string) (map[string]string, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read comments: %w", err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, s := range g.Specs {
					typeComments(all, g, s.(*ast.TypeSpec)) //nolint:errcheck,forcetypeassert // types have no other specs
				}
			}
		}
	}
	return all, nil
}

func typeComments(into map[string]string, g *ast.GenDecl, s *ast.TypeSpec) {
	doc := s.Doc
	if doc == nil {
		doc = g.Doc
	}
	into[s.Name.Name] = doc.Text()
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range st.Fields.List {
		text := f.Doc.Text()
		if text == "" {
			text = f.Comment.Text()
		}
		for _, n := range f.Names {
			into[s.Name.Name+"."+n.Name] = text
		}
	}
}
