package rules

import (
	"iter"
	"strings"
)

// maxList bounds the bytes of one list header that are read, and so the work
// one request can cause. Browsers send a few hundred bytes.
const maxList = 16 << 10

// elements yields the members of a comma-separated list that may be spread over
// several header lines. Commas inside quoted strings do not separate. Space
// around members and empty members are dropped.
func elements(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		left := maxList
		for _, line := range lines {
			if len(line) > left {
				// A member cut in the middle could mean something else.
				line = line[:left]
				line = line[:strings.LastIndexByte(line, ',')+1]
				left = 0
			} else {
				left -= len(line)
			}
			for len(line) > 0 {
				end := indexUnquoted(line, ',')
				member := trim(line[:end])
				line = line[min(end+1, len(line)):]
				if member != "" && !yield(member) {
					return
				}
			}
		}
	}
}

// indexUnquoted returns where c first stands outside of a quoted string, or the
// length of s.
func indexUnquoted(s string, c byte) int {
	if strings.IndexByte(s, '"') < 0 {
		if i := strings.IndexByte(s, c); i >= 0 {
			return i
		}
		return len(s)
	}
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case !quoted && s[i] == c:
			return i
		}
	}
	return len(s)
}

func trim(s string) string { return strings.Trim(s, " \t") }

// unquote takes the quotes and backslashes off a quoted string; anything else
// comes back as it is.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Tokens reads a list of names, such as the value of Vary or Connection, in
// lower case.
func Tokens(lines []string) []string {
	var names []string
	for member := range elements(lines) {
		names = append(names, strings.ToLower(member))
	}
	return names
}
