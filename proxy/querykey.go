package proxy

import (
	"net/url"
	"strings"
)

// Keyed returns the part of a raw query that belongs to the key and is sent to
// the origin. The query comes with its question mark, or is empty; so does the
// result.
//
// With names, the parameters stand in the order of the names, so that two orders
// of the same parameters share a key; a name that comes twice keeps its order.
// Their bytes stay as they came.
func (q Query) Keyed(raw string) string {
	if q.All {
		return raw
	}
	if len(q.Names) == 0 || len(raw) < 2 {
		return ""
	}
	var b strings.Builder
	for _, name := range q.Names {
		for pair := range strings.SplitSeq(raw[1:], "&") {
			if parameterName(pair) != name {
				continue
			}
			if b.Len() == 0 {
				b.WriteByte('?')
			} else {
				b.WriteByte('&')
			}
			b.WriteString(pair)
		}
	}
	return b.String()
}

// parameterName decodes the name of one parameter, since `%76=2` is `v=2` to the
// origin.
func parameterName(pair string) string {
	name, _, _ := strings.Cut(pair, "=")
	if strings.ContainsAny(name, "%+") {
		if decoded, err := url.QueryUnescape(name); err == nil {
			return decoded
		}
	}
	return name
}
