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

// UnmarshalText reads `all`, `none`, or names separated by commas.
func (q *Query) UnmarshalText(text []byte) error {
	switch s := strings.TrimSpace(string(text)); s {
	case "all":
		*q = Query{All: true}
	case "none":
		*q = Query{}
	case "":
		return errors.New("write all, none or a list of parameter names")
	default:
		*q = Query{}
		for name := range strings.SplitSeq(s, ",") {
			q.Names = append(q.Names, strings.TrimSpace(name))
		}
	}
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (q Query) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// String writes the form that the configuration takes.
func (q Query) String() string {
	switch {
	case q.All:
		return "all"
	case len(q.Names) == 0:
		return "none"
	}
	return strings.Join(q.Names, ",")
}
