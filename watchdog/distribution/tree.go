package distribution

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Namespace is the XML namespace of the CloudFront API that this package speaks.
const Namespace = "http://cloudfront.amazonaws.com/doc/2020-05-31/"

const (
	// maxDocument bounds a configuration in bytes. One at all of CloudFront's
	// quotas (75 behaviours, 25 origins, 10 groups) has a few hundred kilobytes.
	maxDocument = 4 << 20

	// maxDepth and maxElements are far above real documents (about 8 and 10,000).
	maxDepth    = 64
	maxElements = 200_000
)

// ErrDocument marks a document that is refused because it is not understood.
var ErrDocument = errors.New("distribution configuration is not understood")

func documentError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDocument, fmt.Sprintf(format, args...))
}

// element is an XML element and where its bytes are.
type element struct {
	name       xml.Name
	attrs      []xml.Attr
	start, end int    // of the element with its tags, in the document's bytes
	text       string // directly inside, CDATA included, comments not
	children   []*element
}

// parse reads a whole document with the wanted root element of CloudFront's
// namespace. It refuses what could be read in two ways or is no plain data:
// other encodings, document types, entities of their own, text around the root.
func parse(raw []byte, root string) (*element, error) {
	switch {
	case len(raw) == 0:
		return nil, documentError("it is empty")
	case len(raw) > maxDocument:
		return nil, documentError("it has %d bytes, more than %d", len(raw), maxDocument)
	case !utf8.Valid(raw):
		return nil, documentError("it is not UTF-8")
	}
	p := parser{dec: xml.NewDecoder(bytes.NewReader(raw))}
	for {
		more, err := p.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	if p.root == nil {
		return nil, documentError("it has no element")
	}
	if p.root.name != (xml.Name{Space: Namespace, Local: root}) {
		return nil, documentError("its root is {%s}%s, expected {%s}%s", p.root.name.Space, p.root.name.Local, Namespace, root)
	}
	return p.root, nil
}

type parser struct {
	dec   *xml.Decoder
	root  *element
	stack []*element
	text  [][]byte // of each element on the stack
	count int
}

// next takes one token; false at the end.
func (p *parser) next() (bool, error) {
	before := int(p.dec.InputOffset())
	token, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, documentError("byte %d: %v", p.dec.InputOffset(), err)
	}
	switch t := token.(type) {
	case xml.Directive:
		return false, documentError("byte %d: it has a document type declaration", before)
	case xml.StartElement:
		return true, p.open(t, before)
	case xml.EndElement:
		top := len(p.stack) - 1
		e := p.stack[top]
		e.end = int(p.dec.InputOffset())
		e.text = strings.Trim(string(p.text[top]), xmlSpace)
		p.stack, p.text = p.stack[:top], p.text[:top]
	case xml.CharData:
		if top := len(p.stack) - 1; top >= 0 {
			p.text[top] = append(p.text[top], t...)
		} else if s := strings.Trim(strings.TrimPrefix(string(t), "\ufeff"), xmlSpace); s != "" {
			return false, documentError("byte %d: there is text outside the root element", before)
		}
	}
	return true, nil
}

const xmlSpace = " \t\r\n"

func (p *parser) open(t xml.StartElement, start int) error {
	if p.count++; p.count > maxElements {
		return documentError("it has more than %d elements", maxElements)
	}
	if len(p.stack) >= maxDepth {
		return documentError("byte %d: it is nested deeper than %d", start, maxDepth)
	}
	e := &element{name: t.Name, attrs: t.Copy().Attr, start: start}
	switch top := len(p.stack) - 1; {
	case top >= 0:
		p.stack[top].children = append(p.stack[top].children, e)
	case p.root != nil:
		return documentError("byte %d: it has a second root element", start)
	default:
		p.root = e
	}
	p.stack = append(p.stack, e)
	p.text = append(p.text, nil)
	return nil
}

// all lists the direct children of that name in CloudFront's namespace.
func (e *element) all(name string) []*element {
	if e == nil {
		return nil
	}
	var out []*element
	for _, c := range e.children {
		if c.name.Local == name && c.name.Space == Namespace {
			out = append(out, c)
		}
	}
	return out
}

// first follows names from child to child; nil if one is missing.
func (e *element) first(names ...string) *element {
	for _, name := range names {
		found := e.all(name)
		if len(found) == 0 {
			return nil
		}
		e = found[0]
	}
	return e
}

// only follows names from child to child and wants each exactly once. at says in
// errors where this element is.
func (e *element) only(at string, names ...string) (*element, error) {
	for _, name := range names {
		found := e.all(name)
		if len(found) != 1 {
			return nil, documentError("%s has %d elements %s, expected one", at, len(found), name)
		}
		at += "/" + name
		e = found[0]
	}
	return e, nil
}

// value is the text of the element at names; empty if there is none.
func (e *element) value(names ...string) string {
	if found := e.first(names...); found != nil {
		return found.text
	}
	return ""
}

// items lists the name elements in the Items of the list at list.
func (e *element) items(list, name string) []*element {
	return e.first(list, "Items").all(name)
}
