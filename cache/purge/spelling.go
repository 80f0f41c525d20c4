package purge

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
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
	last := strings.LastIndexByte(decoded, '/') + 1 // what follows goes on in the path
	add(resolve(decoded[:last]) + decoded[last:])
	if ascii(decoded) || !utf8.ValidString(decoded) {
		return list
	}
	composed := norm.NFC.String(decoded)
	add(composed)
	last = strings.LastIndexByte(composed, '/') + 1
	add(resolve(composed[:last]) + composed[last:])
	for _, e := range [...]encoding.Encoding{japanese.ShiftJIS, japanese.EUCJP} {
		if s, err := e.NewEncoder().String(composed); err == nil { // else it has characters that are in no such path
			add(s)
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
	composed := decoded
	if !ascii(decoded) && utf8.ValidString(decoded) {
		if composed = fold(norm.NFC.String(decoded)); composed != decoded && visit(composed) {
			return true
		}
	}
	if strings.Contains(composed, "//") || strings.Contains(composed, "/.") {
		if resolved := resolve(composed); resolved != composed && visit(resolved) {
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
