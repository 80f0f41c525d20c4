package invalidation

import (
	"slices"
	"strings"
)

// MaxPath is the longest path that CloudFront takes, in bytes, its star included.
// Documented.
const MaxPath = 4000

// Path is one path of an invalidation.
type Path struct {
	Text string
	// Wider is whether it covers more than it was made for, since CloudFront takes
	// nothing closer.
	Wider bool
}

// Wildcard tells whether a path ends with a star, and so counts among the few that
// may be in progress.
func Wildcard(path string) bool { return strings.HasSuffix(path, "*") }

// Paths gives what covers every object whose path begins with the prefix; with
// exact, what covers the one object of that path, and of its query where the
// prefix has one.
//
// The prefix begins with a slash. Of its bytes, those that CloudFront wants encoded
// are (documented: those outside ASCII and the unsafe ones of RFC 1738; all others
// must not be), and what is encoded already stays. Objects are known to it under the
// path as viewers send it, in which the digits of an escape may be written in two
// ways: where there are letters among them, both are named.
//
// CloudFront knows no way to name a tilde (documented) nor a star within a path,
// nor anything over MaxPath: there, the path ends with a star before that.
func Paths(prefix string, exact bool) []Path {
	text, cut := encode(prefix, exact)
	if cut || !exact {
		text += "*"
	}
	paths := []Path{{Text: text, Wider: cut}}
	if lower := lowerEscapes(text); lower != text {
		paths = append(paths, Path{Text: lower, Wider: cut})
	}
	return paths
}

// unsafe are the characters of ASCII that RFC 1738 (2.2) calls so and that may
// stand in a request's target all the same. The tilde is one, too.
const unsafe = " \"<>#{}|\\^[]`"

const upperHex = "0123456789ABCDEF"

// encode writes a path as CloudFront takes it, up to what it does not take.
func encode(path string, query bool) (text string, cut bool) {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		piece, step := string(c), 1
		switch high, low, escape := escapeAt(path, i); {
		case escape:
			c, step = high<<4|low, 3
			piece = "%" + string(upperHex[high]) + string(upperHex[low])
		case c == '%', c == '?' && !query, c <= ' ', c >= 0x7f, strings.IndexByte(unsafe, c) >= 0:
			piece = "%" + string(upperHex[c>>4]) + string(upperHex[c&15])
		}
		if c == '~' || c == '*' || b.Len()+len(piece) > MaxPath-1 {
			return b.String(), true
		}
		b.WriteString(piece)
		i += step - 1
	}
	return b.String(), false
}

// escapeAt reads the escape that begins at i, if one does.
func escapeAt(s string, i int) (high, low byte, ok bool) {
	if s[i] != '%' || i+2 >= len(s) {
		return 0, 0, false
	}
	h, l := hexDigit(s[i+1]), hexDigit(s[i+2])
	return byte(h), byte(l), h >= 0 && l >= 0
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// lowerEscapes writes the escapes of an encoded path in the other way.
func lowerEscapes(path string) string {
	b := []byte(path)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			b[i+1], b[i+2] = lowerDigit(b[i+1]), lowerDigit(b[i+2])
			i += 2
		}
	}
	return string(b)
}

func lowerDigit(c byte) byte {
	if 'A' <= c && c <= 'F' {
		return c | 0x20
	}
	return c
}

// Plan gives the paths for all prefixes, less those that another one covers, in
// the order in which they came.
func Plan(prefixes []string, exact bool) []Path {
	var all []Path
	for _, p := range prefixes {
		all = append(all, Paths(p, exact)...)
	}
	// In order of text, a prefix stands before everything that it covers, and nothing
	// stands between but what it covers as well.
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return strings.Compare(strings.TrimSuffix(all[a].Text, "*"), strings.TrimSuffix(all[b].Text, "*"))
	})
	gone := make([]bool, len(all))
	over, have := "", false
	seen := make(map[string]bool, len(all))
	// A path with a star covers the same path without one, wherever the sorting put it.
	for _, i := range order {
		if Wildcard(all[i].Text) {
			seen[strings.TrimSuffix(all[i].Text, "*")] = true
		}
	}
	named := make(map[string]bool, len(all))
	for _, i := range order {
		text := all[i].Text
		stem := strings.TrimSuffix(text, "*")
		switch {
		case named[text], have && strings.HasPrefix(stem, over), !Wildcard(text) && seen[text]:
			gone[i] = true
		case Wildcard(text):
			over, have = stem, true
		}
		named[text] = true
	}
	kept := all[:0]
	for i, p := range all {
		if !gone[i] {
			kept = append(kept, p)
		}
	}
	return kept
}
