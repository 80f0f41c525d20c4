package proxy

import (
	"errors"
	"strings"
)

// Query says which parameters of the query string belong to an image's key, and
// so are sent to the origin: all of them, none, or those named.
type Query struct {
	All   bool
	Names []string
}

// TextForm says what a configuration may hold.
func (Query) TextForm() string { return "all, none or a list of parameters such as [v, width]" }

// UnmarshalText reads `all` or `none`.
func (q *Query) UnmarshalText(text []byte) error {
	switch strings.TrimSpace(string(text)) {
	case "all":
		*q = Query{All: true}
	case "none":
		*q = Query{}
	default:
		return errors.New("write " + q.TextForm())
	}
	return nil
}

// UnmarshalList reads the names of parameters.
func (q *Query) UnmarshalList(words []string) error {
	*q = Query{Names: words}
	return nil
}

// List is the inverse of UnmarshalList; it is empty unless names are given.
func (q Query) List() []string { return q.Names }

// MarshalText writes the form that the configuration takes.
func (q Query) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// String writes the form that the configuration takes.
func (q Query) String() string {
	switch {
	case q.All:
		return "all"
	case len(q.Names) == 0:
		return "none"
	}
	return "[" + strings.Join(q.Names, ", ") + "]"
}
