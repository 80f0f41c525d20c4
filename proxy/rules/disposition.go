package rules

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds the bytes of a file name that is offered to the viewer; file
// systems take 255.
const maxName = 200

// Inline returns the Content-Disposition of a variant: the last segment of the
// raw path, decoded, with its extension exchanged for ext (which carries its
// dot). A name with bytes outside of ASCII gets filename* (RFC 6266, RFC 8187)
// beside a plain one; a name that is not UTF-8 is left out.
func Inline(path, ext string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if decoded, err := url.PathUnescape(name); err == nil {
		name = decoded
	}
	if !utf8.ValidString(name) {
		return "inline"
	}
	// An encoded slash or backslash would lead a careless client to another folder.
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		name = name[:dot]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(shorten(name, maxName))
	if name == "" {
		return "inline"
	}
	plain := strings.Map(func(r rune) rune {
		// A percent sign in a plain name is decoded by some clients and not by
		// others (RFC 6266 appendix D).
		if r > '~' || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
	value := `inline; filename="` + plain + ext + `"`
	if plain != name {
		value += "; filename*=UTF-8''" + extValue(name+ext)
	}
	return value
}

// shorten cuts s to at most n bytes without cutting a character.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// extValue percent-encodes everything but the attr-char of RFC 8187.
func extValue(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte("!#$&+-.^_`|~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
