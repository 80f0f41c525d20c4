package rules

import (
	"net/url"
	"strings"
)

// Target is the request target as the viewer sent it, byte for byte.
type Target struct {
	// Path begins with a slash.
	Path string
	// Query is what follows the first question mark, which it includes; a lone
	// question mark is not the same as none.
	Query string
}

// ParseTarget splits a request target in origin form (`/a.jpg?v=2`) or absolute
// form (`http://host/a.jpg`). It is not ok for `*`, for an authority, and for
// anything without a path.
func ParseTarget(uri string) (Target, bool) {
	if !strings.HasPrefix(uri, "/") {
		_, rest, found := strings.Cut(uri, "://")
		if !found {
			return Target{}, false
		}
		begin := strings.IndexAny(rest, "/?")
		if begin < 0 {
			return Target{Path: "/"}, true
		}
		uri = rest[begin:]
		if uri[0] == '?' {
			uri = "/" + uri
		}
	}
	if i := strings.IndexByte(uri, '?'); i >= 0 {
		return Target{Path: uri[:i], Query: uri[i:]}, true
	}
	return Target{Path: uri}, true
}

// convertible are the extensions of files that may get a variant.
var convertible = []string{"jpg", "jpeg", "jpe", "jfif", "png", "gif"}

// ConvertiblePath tells whether the extension of the raw path, in any case, is
// one of JPEG, PNG or GIF. An encoded extension counts as its plain form, since
// the origin will see it so.
func ConvertiblePath(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if strings.IndexByte(name, '%') >= 0 {
		if decoded, err := url.PathUnescape(name); err == nil {
			name = decoded[strings.LastIndexByte(decoded, '/')+1:]
		}
	}
	dot := strings.LastIndexByte(name, '.')
	return dot >= 0 && indexFold(convertible, name[dot+1:]) >= 0
}

// MatchAny tells whether one of the patterns matches the raw path, as it came
// or decoded. Patterns are those of the edge's behaviours: `*` stands for any
// run of characters, slashes included, `?` for one; case counts.
func MatchAny(patterns []string, path string) bool {
	if len(patterns) == 0 {
		return false
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		decoded = path
	}
	for _, p := range patterns {
		if Match(p, path) || decoded != path && Match(p, decoded) {
			return true
		}
	}
	return false
}

// Match tells whether the pattern matches the whole of s; see MatchAny. It takes
// time in the order of len(pattern) x len(s).
func Match(pattern, s string) bool {
	var p, i int
	star, from := -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			// The last star takes one more byte.
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
