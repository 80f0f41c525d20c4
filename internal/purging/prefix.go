package purging

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxPrefix bounds a prefix in the form that Prefix gives, in bytes.
const MaxPrefix = 4000

// blank is what may stand around a prefix.
const blank = " \t\r\n"

// Prefix gives what somebody means by a prefix: a path, or a whole URL of which only
// the path counts. It is in ASCII: what a browser would encode is, byte by byte, so
// that a terminal of another encoding than UTF-8 may be used as well. A star at the end
// says what holds anyway, and is left out; so are a fragment and, unless exact is set,
// a query. A URL without a path is an error, as it may be one that was cut off: all of a
// site has to be asked for by its slash.
func Prefix(text string, exact bool) (string, error) {
	p := strings.Trim(text, blank)
	if p == "" {
		return "", errors.New("a prefix is empty: write / for all of a site")
	}
	if _, rest, ok := splitURL(p); ok {
		if !strings.HasPrefix(rest, "/") {
			return "", fmt.Errorf("prefix %s is a URL without a path: write a slash after the host for all of the site", quote(text))
		}
		p = rest
	}
	if p[0] != '/' {
		return "", fmt.Errorf("prefix %s does not begin with a slash: write /%s, or a whole URL", quote(text), shorten(p))
	}
	p, _, _ = strings.Cut(p, "#")
	path, query, asked := strings.Cut(p, "?")
	if !exact {
		query, asked = "", false
		path = strings.TrimRight(path, "*")
	}
	if strings.Contains(path, "*") {
		return "", fmt.Errorf("prefix %s has a star within: a prefix covers all that begins with it, so only its end may have one; "+
			"write a star that belongs to a name as %%2A", quote(text))
	}
	var b strings.Builder
	if err := escape(&b, path); err != nil {
		return "", fmt.Errorf("prefix %s %w", quote(text), err)
	}
	if asked {
		b.WriteByte('?')
		if err := escape(&b, query); err != nil {
			return "", fmt.Errorf("prefix %s %w", quote(text), err)
		}
	}
	if b.Len() > MaxPrefix {
		return "", fmt.Errorf("prefix %s has %d bytes, over %d: shorten it, it then covers more", quote(text), b.Len(), MaxPrefix)
	}
	return b.String(), nil
}

// escape writes a part of a target as a browser would send it.
func escape(b *strings.Builder, part string) error {
	const upper = "0123456789ABCDEF"
	for i := range len(part) {
		c := part[i]
		switch {
		case c < ' ' || c == 0x7f:
			return fmt.Errorf("holds the control character %#x: remove it", c)
		case c == '%' && !isEscape(part[i:]), c == ' ', c >= 0x80, strings.IndexByte("\"<>`{}", c) >= 0:
			b.WriteString("%" + string(upper[c>>4]) + string(upper[c&15]))
		default:
			b.WriteByte(c)
		}
	}
	return nil
}

func isEscape(s string) bool { return len(s) >= 3 && isHex(s[1]) && isHex(s[2]) }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// quote shows a text that somebody sent, in one line of bounded length.
func quote(text string) string { return fmt.Sprintf("%q", shorten(text)) }

func shorten(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// Whole tells whether a prefix is everything that a site has.
func Whole(prefix string) bool { return prefix == "/" }
