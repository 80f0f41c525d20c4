package rules

import (
	"strconv"
	"strings"
)

// NoneMatches tells whether the lines of an If-None-Match header match the
// representation with the given ETag, so that 304 is the answer. Tags are
// compared weakly (RFC 9110 section 8.8.3.2); `*` matches any representation,
// also one without an ETag.
func NoneMatches(lines []string, etag string) bool {
	for member := range elements(lines) {
		if member == "*" {
			return true
		}
		if etag != "" && opaque(member) == opaque(etag) {
			return true
		}
	}
	return false
}

func opaque(etag string) string { return strings.TrimPrefix(etag, "W/") }

// RangeMatches tells whether an If-Range header names the representation with
// the given ETag by strong comparison. A date never matches, since the date says
// nothing about the format.
func RangeMatches(ifRange, etag string) bool {
	ifRange = trim(ifRange)
	return len(etag) > 2 && etag[0] == '"' && ifRange == etag
}

// ParseRange reads a Range header with one range of bytes, for a body of size
// bytes. It is not ok for several ranges, for other units, and for a range that
// lies outside of the body: the whole body is the answer then.
func ParseRange(value string, size int64) (start, length int64, ok bool) {
	spec, found := strings.CutPrefix(trim(value), "bytes=")
	if !found || size <= 0 {
		return 0, 0, false
	}
	first, last, found := strings.Cut(trim(spec), "-")
	if !found {
		return 0, 0, false
	}
	first, last = trim(first), trim(last)
	if first == "" {
		n, ok := position(last)
		if !ok || n == 0 {
			return 0, 0, false
		}
		n = min(n, size)
		return size - n, n, true
	}
	start, ok = position(first)
	if !ok || start >= size {
		return 0, 0, false
	}
	if last == "" {
		return start, size - start, true
	}
	end, ok := position(last)
	if !ok || end < start {
		return 0, 0, false
	}
	return start, min(end, size-1) - start + 1, true
}

func position(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
