package rules

import (
	"net/http"
	"slices"
	"strings"

	"karui/internal/sabotage"
)

// Shareable tells whether one answer may be given to several viewers and kept:
// it sets no cookie, is neither private nor no-store, and varies by nothing but
// Accept, Accept-Encoding and the keyed headers (lower case). The second result
// says in words why not.
//
// Accept and Accept-Encoding need no key, because a fetch never carries the
// viewer's.
func Shareable(h http.Header, keyed []string) (bool, string) {
	if len(h.Values("Set-Cookie")) > 0 && !sabotage.SetCookie {
		return false, "the answer sets a cookie"
	}
	cc := ParseCacheControl(h.Values("Cache-Control"))
	if cc.Private {
		return false, "the answer is private"
	}
	if cc.NoStore {
		return false, "the answer is no-store"
	}
	for _, name := range Tokens(h.Values("Vary")) {
		switch {
		case name == "accept", name == "accept-encoding", slices.Contains(keyed, name):
		default:
			return false, "the answer varies by " + name
		}
	}
	return true, ""
}

// Transformable tells whether the answer's body may be made into something
// else: no-transform is absent and the body is not encoded.
func Transformable(h http.Header) bool {
	if ParseCacheControl(h.Values("Cache-Control")).NoTransform {
		return false
	}
	for _, coding := range Tokens(h.Values("Content-Encoding")) {
		if coding != "identity" {
			return false
		}
	}
	return true
}

// VariesBy tells whether Vary names the header (lower case).
func VariesBy(h http.Header, name string) bool {
	return slices.Contains(Tokens(h.Values("Vary")), name)
}

// VaryAccept merges Accept into the lines of a Vary header, and returns the one
// line to send.
func VaryAccept(lines []string) string {
	if len(lines) == 0 || len(lines) == 1 && lines[0] == "Accept" {
		return "Accept"
	}
	var b strings.Builder
	b.WriteString("Accept")
	seen := []string{"accept"}
	for member := range elements(lines) {
		if member == "*" {
			return "*"
		}
		lower := strings.ToLower(member)
		if slices.Contains(seen, lower) {
			continue
		}
		seen = append(seen, lower)
		b.WriteString(", ")
		b.WriteString(member)
	}
	return b.String()
}
