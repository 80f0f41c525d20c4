package rules

import (
	"strconv"
	"strings"
)

// Accepted returns which of the media types the lines of an Accept header name
// with a quality above 0, in the order of types. Types are lower case.
//
// Only a type named by itself counts: `*/*` and `image/*` are sent by clients
// that cannot show every format. Parameters other than q are ignored. A quality
// that cannot be read, or a quality of 0 anywhere, refuses the type.
func Accepted(lines []string, types []string) []string {
	if len(lines) == 0 || len(types) == 0 {
		return nil
	}
	var named, refused uint64
	for member := range elements(lines) {
		end := indexUnquoted(member, ';')
		i := indexFold(types, trim(member[:end]))
		if i < 0 || i >= 64 {
			continue
		}
		if acceptable(member[end:]) {
			named |= 1 << i
		} else {
			refused |= 1 << i
		}
	}
	named &^= refused
	if named == 0 {
		return nil
	}
	accepted := make([]string, 0, len(types))
	for i, t := range types {
		if named&(1<<i) != 0 {
			accepted = append(accepted, t)
		}
	}
	return accepted
}

func indexFold(types []string, name string) int {
	for i, t := range types {
		if strings.EqualFold(t, name) {
			return i
		}
	}
	return -1
}

// acceptable reads the parameters of one member, each with its semicolon.
func acceptable(params string) bool {
	for params != "" {
		params = params[1:]
		end := indexUnquoted(params, ';')
		name, value, _ := strings.Cut(params[:end], "=")
		params = params[end:]
		if !strings.EqualFold(trim(name), "q") {
			continue
		}
		// ParseFloat takes more than RFC 9110 does (exponents, "inf", "0x1p-2"),
		// so only digits and one point get there.
		value = trim(value)
		if len(value) == 0 || len(value) > 16 || strings.Trim(value, "0123456789.") != "" {
			return false
		}
		q, err := strconv.ParseFloat(value, 64)
		return err == nil && q > 0 && q <= 1
	}
	return true
}
