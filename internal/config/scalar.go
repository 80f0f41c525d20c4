package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var durationType = reflect.TypeFor[time.Duration]()

// setText reads text into dst, a settable value of a scalar type or of one that
// reads itself. The error completes "it must be ...".
func setText(dst reflect.Value, text string) (want string, ok bool) {
	switch {
	case isText(dst.Type()):
		if err := dst.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			return textForm(dst.Type(), err), false
		}
		return "", true
	case dst.Type() == durationType:
		d, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil {
			return `a duration with its unit, such as 300ms, 10s, 5m or 24h`, false
		}
		dst.SetInt(int64(d))
		return "", true
	}
	switch dst.Kind() {
	case reflect.String:
		dst.SetString(text)
	case reflect.Bool:
		b, known := parseBool(text)
		if !known {
			return "true or false", false
		}
		dst.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, valid := parseInt(text)
		if !valid || dst.OverflowInt(n) {
			return "a whole number in plain digits, and not a huge one", false
		}
		dst.SetInt(n)
	case reflect.Float64:
		x, valid := parseFloat(text)
		if !valid {
			return "a number such as 1 or 0.5", false
		}
		dst.SetFloat(x)
	default:
		panic(fmt.Sprintf("config: no text form for %s", dst.Type()))
	}
	return "", true
}

// textForm finds words for what a type that reads itself would have taken.
func textForm(t reflect.Type, err error) string {
	if f, ok := reflect.New(t).Interface().(interface{ TextForm() string }); ok {
		return f.TextForm()
	}
	return fmt.Sprintf("readable (%s)", err)
}

// parseBool takes what YAML 1.1 and people take for a switch, in any case.
func parseBool(text string) (value, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// parseInt takes decimal digits only: 010 is 8 to some and 10 to others, and
// 1e3, 0x10 and 1_000 are not what an operator writes on purpose.
func parseInt(text string) (int64, bool) {
	s := strings.TrimSpace(text)
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || (len(digits) > 1 && digits[0] == '0') || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// parseFloat takes decimal numbers; infinities and NaN would pass no range check.
func parseFloat(text string) (float64, bool) {
	s := strings.TrimSpace(text)
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || strings.Trim(digits, "0123456789.") != "" ||
		(len(digits) > 1 && digits[0] == '0' && digits[1] != '.') {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && !math.IsInf(x, 0)
}
