package purge

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/unicode/norm"
)

// encodings are those beside UTF-8 that paths may be in.
var encodings = [...]encoding.Encoding{japanese.ShiftJIS, japanese.EUCJP}

// typed gives the texts that a prefix without escapes may stand for: see readings. One that
// is UTF-8 was typed as that.
func typed(prefix string) []string {
	if utf8.ValidString(prefix) {
		return []string{plain(prefix)}
	}
	return readings(prefix)
}

// maxDoubtful bounds the folders and names of a path that are read in two ways.
const maxDoubtful = 3

// readings gives the texts that a path without escapes may stand for, in one form for all
// ways to write a text: each folder and name of it by itself is taken for UTF-8, for one
// of the encodings where it is none, and for both where it is short of proof; what cannot
// be read stays as it is. A backslash is a slash, as it is for servers that keep their
// files on Windows.
func readings(path string) []string {
	segments := strings.Split(path, "/")
	var list []string
	for _, e := range encodings {
		read := slices.Clone(segments)
		var doubtful []int
		other := map[int]string{}
		for i, s := range segments {
			first, second := readSegment(s, e)
			read[i] = first
			if second != "" && len(doubtful) < maxDoubtful {
				doubtful = append(doubtful, i)
				other[i] = second
			}
		}
		for choice := range 1 << len(doubtful) {
			form := slices.Clone(read)
			for bit, i := range doubtful {
				if choice>>bit&1 == 1 {
					form[i] = other[i]
				}
			}
			if s := strings.Join(form, "/"); !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// readSegment gives how a folder or a name may be read, the second way "" mostly: where
// it is UTF-8, but of characters of two bytes alone, which kanji may look like.
func readSegment(s string, e encoding.Encoding) (first, second string) {
	if ascii(s) {
		return plain(s), ""
	}
	read := func() (string, bool) {
		text, err := e.NewDecoder().String(s)
		return text, err == nil && !strings.ContainsRune(text, utf8.RuneError)
	}
	if !utf8.ValidString(s) {
		if text, ok := read(); ok {
			return plain(text), ""
		}
		return fold(s), ""
	}
	if strings.IndexFunc(s, func(r rune) bool { return r >= 0x800 }) < 0 {
		if text, ok := read(); ok {
			second = plain(text)
		}
	}
	return plain(s), second
}

// plain gives the form in which texts are compared: composed characters, small letters.
func plain(text string) string {
	if ascii(text) {
		return strings.ReplaceAll(fold(text), `\`, "/")
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if r == '\\' {
			return '/'
		}
		if other, found := jis[r]; found {
			return other
		}
		return unicode.ToLower(unicode.ToUpper(r)) // also where there are two small letters of one large one
	}, norm.NFC.String(text)))
}

// jis are characters of Unicode that stand for the same one of JIS X 0208 as another,
// which Windows and package japanese take: what a Mac types or a converter of another
// vendor writes. https://www.w3.org/TR/japanese-xml/ lists them.
var jis = map[rune]rune{
	'\u301C': '\uFF5E', // wave dash
	'\u2212': '\uFF0D', // minus
	'\u2016': '\u2225', // double vertical line
	'\u2014': '\u2015', // dash
	'\u00A2': '\uFFE0', // cent
	'\u00A3': '\uFFE1', // pound
	'\u00AC': '\uFFE2', // not
	'\u00A6': '\uFFE4', // broken bar
}

// toJIS makes a text one that the encodings have, as far as they have one like it.
func toJIS(text string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\u00A5': // yen and overline stand where ASCII has these
			return '\\'
		case '\u203E':
			return '~'
		}
		if other, found := jis[r]; found {
			return other
		}
		return r
	}, text)
}
