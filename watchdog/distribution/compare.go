package distribution

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// Difference names the first place at which two documents of one root element
// mean different things; empty if they mean the same. Comments, white space
// around texts, prefixes and namespace declarations mean nothing.
func Difference(a, b []byte) (string, error) {
	left, err := parse(a, "DistributionConfig")
	if err != nil {
		return "", err
	}
	right, err := parse(b, "DistributionConfig")
	if err != nil {
		return "", err
	}
	return differ(left, right, left.name.Local), nil
}

func differ(a, b *element, at string) string {
	if a.name != b.name {
		return fmt.Sprintf("%s is {%s}%s, was {%s}%s", at, b.name.Space, b.name.Local, a.name.Space, a.name.Local)
	}
	if words(a.text) != words(b.text) {
		return fmt.Sprintf("%s is %q, was %q", at, short(b.text), short(a.text))
	}
	if !slices.Equal(plainAttrs(a), plainAttrs(b)) {
		return at + " has other attributes"
	}
	for i, child := range a.children {
		place := fmt.Sprintf("%s/%s", at, child.name.Local)
		if len(a.children) > 1 {
			place += fmt.Sprintf("[%d]", i+1)
		}
		if i >= len(b.children) {
			return place + " is missing"
		}
		if d := differ(child, b.children[i], place); d != "" {
			return d
		}
	}
	if len(b.children) > len(a.children) {
		return fmt.Sprintf("%s/%s is new", at, b.children[len(a.children)].name.Local)
	}
	return ""
}

// words is a text with every run of white space as one space.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// plainAttrs are the attributes without namespace declarations, sorted.
func plainAttrs(e *element) []string {
	var out []string
	for _, a := range e.attrs {
		if a.Name.Space != "xmlns" && a.Name != (xml.Name{Local: "xmlns"}) {
			out = append(out, a.Name.Space+" "+a.Name.Local+"="+a.Value)
		}
	}
	slices.Sort(out)
	return out
}

// short keeps messages readable.
func short(s string) string {
	const limit = 60
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
