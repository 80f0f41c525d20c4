package purge

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// spellings gives the forms of a prefix that the forms of a path are compared with.
func spellings(prefix string) []string {
	list := make([]string, 0, 4)
	add := func(s string) {
		if s = fold(s); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	prefix = Clean(prefix)
	add(prefix)
	decoded := decode(prefix)
	add(decoded)
	for _, s := range typed(decoded) {
		add(resolvePrefix(s))
	}
	if ascii(decoded) || !utf8.ValidString(decoded) {
		return list
	}
	// Bytes of one encoding may also be read as those of another, so it takes more than
	// what the readings of a path say.
	composed := toJIS(norm.NFC.String(decoded))
	for _, e := range encodings {
		if s, err := e.NewEncoder().String(composed); err == nil { // else it has characters that are in no such path
			add(s)
			add(resolvePrefix(s))
		}
	}
	return list
}

// paths calls visit with the forms of a path, each once, until it says true.
func paths(path string, visit func(form string) bool) bool {
	raw := fold(path)
	if visit(raw) {
		return true
	}
	decoded := raw
	if strings.IndexByte(raw, '%') >= 0 {
		if decoded = fold(decode(path)); decoded != raw && visit(decoded) {
			return true
		}
	}
	if ascii(decoded) && !strings.Contains(decoded, "//") && !strings.Contains(decoded, "/.") && strings.IndexByte(decoded, '\\') < 0 {
		return false
	}
	if resolved := resolve(decoded); resolved != decoded && visit(resolved) {
		return true
	}
	for _, s := range readings(decode(path)) {
		if s = resolve(s); s != decoded && visit(s) {
			return true
		}
	}
	return false
}

// fold makes A to Z small, and leaves all other bytes, whatever they encode.
func fold(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// decode replaces percent escapes, once. What is none stays as it is.
func decode(s string) string {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s
	}
	b := append(make([]byte, 0, len(s)), s[:i]...)
	for ; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, ok1 := hex(s[i+1])
			lo, ok2 := hex(s[i+2])
			if ok1 && ok2 {
				b = append(b, hi<<4|lo)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func hex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// resolve takes empty segments, `.` and `..` out of a path, as a server does that
// looks for a file. A slash at the end stays.
func resolve(path string) string {
	var kept []string
	segments := strings.Split(path, "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case "", ".":
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, s)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}

// resolvePrefix is resolve for the beginning of a path: what follows the last slash may
// go on.
func resolvePrefix(prefix string) string {
	last := strings.LastIndexByte(prefix, '/') + 1
	return resolve(prefix[:last]) + prefix[last:]
}
