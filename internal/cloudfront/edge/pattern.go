package edge

import (
	"net/http"
	"slices"
	"strings"

	"karui/internal/cloudfront"
)

// behaviorFor finds the first behaviour whose pattern matches a path; the last
// one matches everything. Documented: the order counts, case counts, the query
// does not, and the path is compared in a normal form while it goes on raw.
func behaviorFor(config *cloudfront.Config, rawPath string) cloudfront.Behavior {
	path := normalPath(rawPath)
	for _, b := range config.Behaviors {
		if matches("/"+strings.TrimPrefix(b.Pattern, "/"), path) {
			return b
		}
	}
	return config.Behaviors[len(config.Behaviors)-1]
}

// matches compares with a pattern in which * stands for any number of
// characters, slashes included, and ? for exactly one.
func matches(pattern, s string) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// normalPath decodes what RFC 3986 calls unreserved and removes dot segments.
// Concluded: this much of "consistent with RFC 3986", empty segments stay.
func normalPath(raw string) string {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '%' && i+2 < len(raw) {
			if c, ok := unhex(raw[i+1], raw[i+2]); ok && unreserved(c) {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(raw[i])
	}
	path := b.String()
	if !strings.Contains(path, "/.") {
		return path
	}
	var kept []string
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".", "..":
			if s == ".." && len(kept) > 0 {
				kept = kept[:len(kept)-1]
			}
			if last {
				kept = append(kept, "")
			}
		default:
			kept = append(kept, s)
		}
	}
	return "/" + strings.Join(kept, "/")
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func unhex(a, b byte) (byte, bool) {
	const digits = "0123456789abcdef"
	high, low := strings.IndexByte(digits, a|0x20), strings.IndexByte(digits, b|0x20)
	return byte(high<<4 | low), high >= 0 && low >= 0
}

// allowed tells whether a behaviour lets a method through.
func allowed(b cloudfront.Behavior, method string) bool { return slices.Contains(b.Allowed, method) }

// cachedMethod tells whether answers to a method are kept. Documented: GET and
// HEAD always, OPTIONS if chosen, no others.
func cachedMethod(b cloudfront.Behavior, method string) bool {
	return method == http.MethodGet || method == http.MethodHead ||
		method == http.MethodOptions && slices.Contains(b.Cached, method)
}

// invalidated tells whether an invalidation path covers an object's path with
// its keyed query. Documented: case counts, * stands at the end only, and a query
// that is forwarded has to be named or covered by the *. Concluded: since an
// invalidation can only name what is unsafe or outside ASCII encoded, an object that
// was asked for without encoding is known in the same form; the two ways of writing
// the digits of an escape are not the same.
func invalidated(pattern, target string) bool {
	target = encodeUnsafe(target)
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(target, prefix)
	}
	return pattern == target
}

// encodeUnsafe encodes what RFC 1738 calls unsafe, and what is outside ASCII, but
// for what is encoded already.
func encodeUnsafe(target string) string {
	const upper = "0123456789ABCDEF"
	plain := func(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte("\"<>#{}|\\^[]`", c) < 0 }
	i := 0
	for i < len(target) && plain(target[i]) {
		i++
	}
	if i == len(target) {
		return target
	}
	var b strings.Builder
	for i := range len(target) {
		if c := target[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + string(upper[c>>4]) + string(upper[c&15]))
		}
	}
	return b.String()
}
