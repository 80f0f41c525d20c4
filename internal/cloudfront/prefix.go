package cloudfront

import (
	"bytes"
	"encoding/xml"
)

// withPrefix gives every element of CloudFront's namespace that has no prefix
// this one, turns the default namespace declaration into one for the prefix,
// and leaves all other bytes alone. A document it cannot read stays as it is.
func withPrefix(raw []byte, prefix string) []byte {
	if prefix == "" {
		return raw
	}
	dec := xml.NewDecoder(bytes.NewReader(raw))
	var out bytes.Buffer
	for {
		from := dec.InputOffset()
		token, err := dec.Token()
		if err != nil {
			break
		}
		piece := raw[from:dec.InputOffset()]
		switch t := token.(type) {
		case xml.StartElement:
			piece = prefixStart(piece, t, prefix)
		case xml.EndElement:
			if len(piece) > 0 && t.Name.Space == Namespace && !hasPrefix(piece[2:]) {
				piece = append([]byte("</"+prefix+":"), piece[2:]...)
			}
		}
		out.Write(piece)
	}
	if _, err := parseAny(out.Bytes()); err != nil {
		return raw
	}
	return out.Bytes()
}

func parseAny(raw []byte) (*node, error) {
	var n node
	err := xml.Unmarshal(raw, &n)
	return &n, err
}

func prefixStart(tag []byte, t xml.StartElement, prefix string) []byte {
	if t.Name.Space != Namespace || hasPrefix(tag[1:]) {
		return tag
	}
	end := 1 + nameLength(tag[1:])
	out := append([]byte("<"+prefix+":"), tag[1:end]...)
	return append(out, renameDefault(tag[end:], prefix)...)
}

func nameLength(b []byte) int {
	if i := bytes.IndexAny(b, " \t\r\n/>"); i >= 0 {
		return i
	}
	return len(b)
}

func hasPrefix(b []byte) bool { return bytes.IndexByte(b[:nameLength(b)], ':') >= 0 }

// renameDefault turns xmlns= outside quotes into xmlns:prefix=.
func renameDefault(attrs []byte, prefix string) []byte {
	quote := byte(0)
	for i, c := range attrs {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case bytes.HasPrefix(attrs[i:], []byte("xmlns")):
			if rest := bytes.TrimLeft(attrs[i+len("xmlns"):], " \t\r\n"); bytes.HasPrefix(rest, []byte("=")) {
				out := append([]byte{}, attrs[:i]...)
				out = append(out, "xmlns:"+prefix...)
				return append(out, attrs[i+len("xmlns"):]...)
			}
		}
	}
	return attrs
}
