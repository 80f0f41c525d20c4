package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Checks that the Validate methods of several packages need. Each returns nil
// or the error of Invalid.

// InRange checks low <= value <= high.
func InRange[N cmp.Ordered](key string, value, low, high N) error {
	if value >= low && value <= high {
		return nil
	}
	return Invalid(key, value, fmt.Sprintf("from %s to %s", show(low), show(high)))
}

// NotOver checks value <= limit, the value of another key.
func NotOver[N cmp.Ordered](key string, value N, limitKey string, limit N) error {
	if value <= limit {
		return nil
	}
	return RestingOn(Invalid(key, value, fmt.Sprintf("at most %s (%s)", limitKey, show(limit))), limitKey)
}

// Below checks value < limit, the value of another key.
func Below[N cmp.Ordered](key string, value N, limitKey string, limit N) error {
	if value < limit {
		return nil
	}
	return RestingOn(Invalid(key, value, fmt.Sprintf("less than %s (%s)", limitKey, show(limit))), limitKey)
}

// OneOf checks that value is one of words.
func OneOf(key, value string, words ...string) error {
	for _, w := range words {
		if value == w {
			return nil
		}
	}
	return Invalid(key, value, Or(words...))
}

// Or joins words as "a, b or c".
func Or(words ...string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Address checks an address to listen on: host:port, where the host may be
// empty (all interfaces) and port 0 takes a free one.
func Address(key, value string) error {
	host, port, err := net.SplitHostPort(value)
	_, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || strings.ContainsFunc(host, unicode.IsSpace) {
		return Invalid(key, value, `an address such as ":8080" or "127.0.0.1:9090"`)
	}
	return nil
}

// GoodPort tells whether the port of a URL, if it has one, is one that can be dialled:
// 1 to 65535. net/url takes any digits.
func GoodPort(u *url.URL) bool {
	if u.Port() == "" {
		return true
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

// Name checks a word that is safe in file names, header values and messages:
// 1 to 64 ASCII letters, digits, dots, dashes and underscores, the first a
// letter or digit.
func Name(key, value string) error {
	const want = "1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit"
	if value == "" {
		return Invalid(key, nil, want)
	}
	for i, c := range value {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if i >= 64 || !letter && (i == 0 || !strings.ContainsRune("._-", c)) {
			return Invalid(key, value, want)
		}
	}
	return nil
}

// Text checks that value is printable UTF-8 of at most limit bytes, without line breaks.
func Text(key, value string, limit int) error {
	if len(value) > limit || !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Invalid(key, value, fmt.Sprintf("printable text of at most %d bytes", limit))
	}
	return nil
}

// AtMost checks the length of a list.
func AtMost(key string, length, limit int) error {
	if length <= limit {
		return nil
	}
	return Invalid(key, plain(fmt.Sprintf("a list of %d", length)), fmt.Sprintf("a list of at most %d", limit))
}

// Unique refuses the second of two equal elements; key gives an element's key by
// its position. Empty ones are left to other checks.
func Unique(values []string, key func(i int) string) error {
	first := map[string]int{}
	for i, v := range values {
		if v == "" {
			continue
		}
		if before, dup := first[v]; dup {
			return Invalid(key(i), v, "unique: "+key(before)+" is the same")
		}
		first[v] = i
	}
	return nil
}

// NotInThisVersion refuses something that the design knows and this version does not do.
func NotInThisVersion(key string, value any, what string) error {
	return &Problem{Key: key, Value: show(value), What: fmt.Sprintf("is %s, but %s is not in this version", show(value), what)}
}
