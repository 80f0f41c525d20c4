package api

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unclear says what in a body no decoder could give as it is: bytes that are no UTF-8,
// and halves of a pair of UTF-16. Package json puts U+FFFD in their place and says
// nothing, so that something else would be done than was asked for.
func unclear(body []byte) error {
	const remedy = "send JSON in UTF-8; bytes of another encoding in a path are written as percent escapes, such as %8E%CA"
	if !utf8.Valid(body) {
		at := 0
		for at < len(body) {
			r, size := utf8.DecodeRune(body[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return Invalid(fmt.Sprintf("the body is no UTF-8 at byte %d: %#x", at+1, body[at]), remedy)
	}
	for at := 0; at < len(body); at++ {
		next := bytes.IndexByte(body[at:], '\\') // in JSON, within strings alone
		if next < 0 {
			return nil
		}
		at += next
		switch high := unit(body[at:]); {
		case !utf16.IsSurrogate(high):
			at++ // what is escaped may be a backslash
		case utf16.DecodeRune(high, unit(body[at+escaped:])) == utf8.RuneError:
			return Invalid(fmt.Sprintf("the body holds half a character at byte %d: %s", at+1, body[at:at+escaped]), remedy)
		default:
			at += 2*escaped - 1
		}
	}
	return nil
}

const escaped = len(`\uABCD`)

// unit gives the code unit of an escape that text begins with, -1 if it does with none.
func unit(text []byte) rune {
	if len(text) < escaped || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(text[2:escaped]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
