package cloudfront

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// node is an element as the decoder saw it. Inner is its content as bytes.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Inner    []byte     `xml:",innerxml"`
	Children []node     `xml:",any"`
}

// all lists the direct children of that name in CloudFront's namespace.
func (n *node) all(name string) []*node {
	var out []*node
	if n == nil {
		return nil
	}
	for i := range n.Children {
		if c := &n.Children[i]; c.XMLName.Local == name && c.XMLName.Space == Namespace {
			out = append(out, c)
		}
	}
	return out
}

// at follows names from child to child, taking the first of each; nil if one is
// missing.
func (n *node) at(names ...string) *node {
	for _, name := range names {
		found := n.all(name)
		if len(found) == 0 {
			return nil
		}
		n = found[0]
	}
	return n
}

// text is the trimmed text of the element at names; empty if there is none.
func (n *node) text(names ...string) string {
	found := n.at(names...)
	if found == nil {
		return ""
	}
	return strings.TrimSpace(found.Text)
}

// items lists the children of the Items of the list element at names.
func (n *node) items(name string, listNames ...string) []*node {
	return n.at(append(listNames, "Items")...).all(name)
}

// maxDepth is far above CloudFront's own documents (about 8).
const maxDepth = 64

// parseDocument reads one whole XML document with the wanted root element and
// nothing that an API should accept from strangers: no document type, no other
// encoding, no second root.
func parseDocument(raw []byte, root string) (*node, error) {
	dec := xml.NewDecoder(bytes.NewReader(raw))
	depth, roots := 0, 0
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("document is no well-formed XML: %w", err)
		}
		switch token.(type) {
		case xml.Directive:
			return nil, errors.New("document has a document type declaration")
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			if depth++; depth > maxDepth {
				return nil, fmt.Errorf("document is nested deeper than %d", maxDepth)
			}
		case xml.EndElement:
			depth--
		}
	}
	if roots != 1 {
		return nil, fmt.Errorf("document has %d root elements", roots)
	}
	var n node
	if err := xml.Unmarshal(raw, &n); err != nil {
		return nil, fmt.Errorf("document is no well-formed XML: %w", err)
	}
	if n.XMLName.Local != root || n.XMLName.Space != Namespace {
		return nil, fmt.Errorf("root element is {%s}%s, expected {%s}%s", n.XMLName.Space, n.XMLName.Local, Namespace, root)
	}
	return &n, nil
}

// rootElement cuts the root element out of a document that parseDocument took,
// leaving the declaration and comments around it behind.
func rootElement(raw []byte) []byte {
	dec := xml.NewDecoder(bytes.NewReader(raw))
	start := int64(-1)
	depth := 0
	for {
		before := dec.InputOffset()
		token, err := dec.Token()
		if err != nil {
			return nil
		}
		switch token.(type) {
		case xml.StartElement:
			if depth == 0 {
				start = before
			}
			depth++
		case xml.EndElement:
			if depth--; depth == 0 {
				return raw[start:dec.InputOffset()]
			}
		}
	}
}

// namespaceAttrs renders the namespace declarations of a root element, so that
// parts of it can stand elsewhere.
func namespaceAttrs(root *node) string {
	var b strings.Builder
	for _, a := range root.Attrs {
		switch {
		case a.Name.Space == "" && a.Name.Local == "xmlns":
			b.WriteString(` xmlns="` + escapeXML(a.Value) + `"`)
		case a.Name.Space == "xmlns":
			b.WriteString(` xmlns:` + a.Name.Local + `="` + escapeXML(a.Value) + `"`)
		}
	}
	return b.String()
}

func escapeXML(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
	return b.String()
}

// textContent is the node's own trimmed text.
func (n *node) textContent() string { return strings.TrimSpace(n.Text) }
