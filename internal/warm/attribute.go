package warm

import "strings"

const htmlSpace = " \t\n\f\r"

// sourceSet gives the addresses of a srcset attribute, as the standard of HTML splits
// it: an address ends at a space, so it may hold commas, but for those at its end.
func sourceSet(s string) []string {
	var out []string
	for {
		s = strings.TrimLeft(s, htmlSpace+",")
		if s == "" {
			return out
		}
		end := strings.IndexAny(s, htmlSpace)
		if end < 0 {
			end = len(s)
		}
		url := s[:end]
		s = s[end:]
		trimmed := strings.TrimRight(url, ",")
		out = append(out, trimmed)
		if trimmed == url {
			s = afterDescriptors(s)
		}
	}
}

// afterDescriptors passes over what follows an address, up to the next comma that
// stands outside of parentheses.
func afterDescriptors(s string) string {
	inside := false
	for i := range len(s) {
		switch s[i] {
		case '(':
			inside = true
		case ')':
			inside = false
		case ',':
			if !inside {
				return s[i+1:]
			}
		}
	}
	return ""
}

// cssURLs gives the addresses of the url() notations in a declaration list.
func cssURLs(css string) []string {
	var out []string
	for {
		i := indexFold(css, "url(")
		if i < 0 {
			return out
		}
		css = strings.TrimLeft(css[i+len("url("):], htmlSpace)
		end := byte(')')
		if css != "" && (css[0] == '"' || css[0] == '\'') {
			end, css = css[0], css[1:]
		}
		url, rest := cssUntil(css, end)
		if end == ')' {
			url = strings.TrimRight(url, htmlSpace)
		}
		out = append(out, url)
		css = rest
	}
}

// cssUntil reads up to an unescaped byte. Of escapes, only those of a single
// character are undone; the others are not used in addresses.
func cssUntil(s string, end byte) (text, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == end:
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// indexFold is strings.Index for a lower-case ASCII word in any case.
func indexFold(s, word string) int {
	for i := 0; i+len(word) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(word)], word) {
			return i
		}
	}
	return -1
}
