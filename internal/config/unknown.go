package config

import (
	"strings"

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
	hint := nearestWord(n.Value, names)
	switch {
	case hint != "":
		hint = Key(key, hint)
		r.guessed[hint] = true
	case s == r.root || key != "":
		hint = elsewhere(n.Value, r.root.keys())
	}
	if hint != "" {
		what += "; did you mean " + hint + "?"
	}
	r.say(n, full, what)
}

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
