package config

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"
)

// unknown refuses a key that the section does not have.
func (r *reader) unknown(s *section, n *yaml.Node, key string) {
	full := Key(key, shorten(n.Value))
	names := make([]string, 0, len(s.fields))
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	what := "is not a known key"
	word := n.Value
	if strange := strings.IndexFunc(word, invisible); strange >= 0 {
		r0, _ := utf8.DecodeRuneInString(word[strange:])
		word = strings.Map(func(r rune) rune {
			if invisible(r) {
				return -1
			}
			return r
		}, word)
		what = fmt.Sprintf("is not a known key: it holds %s, which YAML takes as a part of the key: write plain spaces", naming(r0))
	}
	hint := nearestWord(word, names)
	switch {
	case hint != "":
		hint = Key(key, hint)
		r.guessed[hint] = true
	case s == r.root || key != "":
		hint = elsewhere(word, r.root.keys())
	}
	if hint != "" {
		what += "; did you mean " + hint + "?"
	}
	r.say(n, full, what)
}

// invisible tells whether a character looks like nothing, or like a space, and is
// none for YAML.
func invisible(r rune) bool {
	return r > unicode.MaxASCII && (unicode.IsSpace(r) || unicode.In(r, unicode.Cf))
}

// strangeSpace finds a line of a file where a character that only looks like a space
// stands in place of one: before a key, or after its colon.
func strangeSpace(text []byte) (line int, what string) {
	n := 0
	for row := range strings.Lines(string(text)) {
		n++
		row = strings.TrimRight(row, "\r\n")
		indent := row[:len(row)-len(strings.TrimLeftFunc(row, func(r rune) bool { return r == ' ' || r == '-' || invisible(r) }))]
		_, after, _ := strings.Cut(row, ":")
		first, _ := utf8.DecodeRuneInString(after)
		if i := strings.IndexFunc(indent, invisible); i >= 0 {
			first, _ = utf8.DecodeRuneInString(indent[i:])
		}
		if invisible(first) && !strings.HasPrefix(strings.TrimSpace(row), "#") {
			return n, fmt.Sprintf("the line has %s in place of a space: write plain spaces", naming(first))
		}
	}
	return 0, ""
}

// naming gives what to call an invisible character.
func naming(r rune) string {
	switch r {
	case '\u3000':
		return "a full-width space (U+3000)"
	case '\u00a0':
		return "a no-break space (U+00A0)"
	}
	return fmt.Sprintf("the invisible character %U", r)
}

// Nearest picks the candidate that a mistyped word was probably meant for, "" if none
// is near enough to be worth a question.
func Nearest(word string, candidates []string) string { return nearestWord(word, candidates) }

// nearestWord picks the candidate that takes the fewest changes, and none that
// takes more than a third of the word or so.
func nearestWord(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, least := "", max(2, (len(word)+1)/3)+1
	if len(word) < 3 {
		least = 2
	}
	if len(word) > shownBytes {
		return ""
	}
	for _, c := range candidates {
		distance := levenshtein.ComputeDistance(word, c)
		// "retries" for "retry", "secret" for "secrets": a common stem counts as near.
		if strings.HasPrefix(c, word) || strings.HasPrefix(word, c) {
			distance = min(distance, 1)
		}
		if distance < least {
			best, least = c, distance
		}
	}
	return best
}

// elsewhere finds a key by its last part, if only one section has it: `memory`
// at the top is meant to be cache.memory.
func elsewhere(word string, keys []string) string {
	found := ""
	for _, key := range keys {
		last := key[strings.LastIndexByte(key, '.')+1:]
		if last != strings.ToLower(word) {
			continue
		}
		if found != "" {
			return ""
		}
		found = key
	}
	return found
}
