package edge

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// hidden are headers that functions neither see nor may add; readOnly ones they
// see and may not change. Both documented.
var (
	hidden = []string{
		"connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "trailer",
		"upgrade", "x-accel-buffering", "x-accel-charset", "x-accel-limit-rate", "x-accel-redirect", "x-cache",
		"x-forwarded-proto", "x-real-ip",
	}
	readOnly = []string{"content-length", "host", "transfer-encoding", "via"}
)

func isHidden(name string) bool {
	return slices.Contains(hidden, name) || strings.HasPrefix(name, "x-amz-cf-") || strings.HasPrefix(name, "x-edge-")
}

// runFunction lets the behaviour's viewer-request function change the request or
// answer it. It tells whether the request goes on.
func (v *visit) runFunction() bool {
	arn := v.behavior.Functions["viewer-request"]
	if arn == "" {
		return true
	}
	function, ok := v.e.control.Function(arn)
	if !ok {
		v.refuse(http.StatusServiceUnavailable, whyFunction, FunctionError)
		return false
	}
	out, err := v.e.functions.run(function.Code, v.functionEvent())
	if err != nil {
		v.event.Tries = []Try{{Origin: function.Name, Failure: "function", Err: err.Error()}}
		v.refuse(http.StatusServiceUnavailable, whyFunction, FunctionError)
		return false
	}
	if _, ok := out["statusCode"]; ok {
		return v.functionAnswer(out)
	}
	if err := v.adopt(out); err != nil {
		v.event.Tries = []Try{{Origin: function.Name, Failure: "function", Err: err.Error()}}
		v.refuse(http.StatusBadGateway, whyFunction, FunctionInvalid)
		return false
	}
	return true
}

// many is the documented form of values by name: the first one, and all where
// there are several.
func many(out map[string]any, name string, values []string) {
	entry := map[string]any{"value": readable(values[0])}
	if len(values) > 1 {
		var all []any
		for _, value := range values {
			all = append(all, map[string]any{"value": readable(value)})
		}
		entry["multiValue"] = all
	}
	out[readable(name)] = entry
}

// readable is what a function sees of a value. Documented: what is not UTF-8 is
// taken for ISO-8859-1, and goes on as it came if the function leaves it alone.
func readable(value string) string {
	if utf8.ValidString(value) {
		return value
	}
	out := make([]rune, len(value))
	for i := range len(value) {
		out[i] = rune(value[i])
	}
	return string(out)
}

func (v *visit) functionEvent() map[string]any {
	headers, cookies, query := map[string]any{}, map[string]any{}, map[string]any{}
	for name, values := range v.header {
		if low := strings.ToLower(name); !isHidden(low) && low != "cookie" && len(values) > 0 {
			many(headers, low, values)
		}
	}
	for name, values := range pairs(strings.Split(strings.Join(v.header["Cookie"], ";"), ";")) {
		many(cookies, name, values)
	}
	for name, values := range pairs(strings.Split(v.query, "&")) {
		many(query, name, values)
	}
	ip := v.r.RemoteAddr
	if host, _, err := net.SplitHostPort(ip); err == nil {
		ip = host
	}
	return map[string]any{
		"version": "1.0",
		"context": map[string]any{
			"distributionDomainName": v.deployment.Domain, "distributionId": v.deployment.ID,
			"eventType": "viewer-request", "requestId": v.event.ID,
		},
		"viewer": map[string]any{"ip": ip},
		"request": map[string]any{
			"method": v.r.Method, "uri": readable(v.path), "querystring": query, "headers": headers, "cookies": cookies,
		},
	}
}

func pairs(parts []string) map[string][]string {
	out := make(map[string][]string)
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" {
			name, value, _ := strings.Cut(part, "=")
			out[name] = append(out[name], value)
		}
	}
	return out
}

// adopt takes over the request that a function returned. Documented: the URI may
// change without another behaviour coming into play; method, hidden and read-only
// headers may not change. What a function left alone keeps its bytes.
func (v *visit) adopt(out map[string]any) error {
	if method, _ := out["method"].(string); method != v.r.Method {
		return fmt.Errorf("the function changed the method to %q", method)
	}
	before := v.functionEvent()["request"].(map[string]any)
	if uri, _ := out["uri"].(string); uri != readable(v.path) {
		if !strings.HasPrefix(uri, "/") || strings.ContainsAny(uri, " \r\n\t#") || len(uri) > maxURL {
			return fmt.Errorf("the function set the URI %q", uri)
		}
		path, query, found := strings.Cut(uri, "?")
		v.path = path
		if found {
			v.query = query
		}
	}
	headers, ok := out["headers"].(map[string]any)
	if !ok {
		return errors.New("the function returned a request without headers")
	}
	next := make(http.Header)
	for name, entry := range headers {
		values, err := valuesOf(entry)
		if err != nil || name != strings.ToLower(name) || isHidden(name) {
			return fmt.Errorf("the function returned the header %q, which is not allowed or has no value", name)
		}
		for _, value := range values {
			if strings.ContainsAny(value, "\r\n\x00") {
				return fmt.Errorf("the function returned a header %q with a line end", name)
			}
		}
		name = http.CanonicalHeaderKey(name)
		if was := v.header[name]; slices.EqualFunc(was, values, func(a, b string) bool { return readable(a) == b }) {
			values = was
		}
		next[name] = values
	}
	for _, name := range readOnly {
		name = http.CanonicalHeaderKey(name)
		if !slices.Equal(next[name], v.header[name]) {
			return fmt.Errorf("the function changed the header %q, which can only be read", name)
		}
	}
	for name, values := range v.header { // what it did not see stays
		if isHidden(strings.ToLower(name)) || name == "Cookie" {
			next[name] = values
		}
	}
	v.header = next
	return v.adoptLists(out, before)
}

func (v *visit) adoptLists(out, before map[string]any) error {
	query, changed, err := joined(out["querystring"], before["querystring"], "&")
	if err != nil {
		return err
	}
	if changed {
		if strings.ContainsAny(query, " #\r\n") {
			return fmt.Errorf("the function returned the query %q", query)
		}
		v.query = query
	}
	cookies, changed, err := joined(out["cookies"], before["cookies"], "; ")
	if err != nil {
		return err
	}
	if changed {
		v.header.Del("Cookie")
		if cookies != "" {
			v.header.Set("Cookie", cookies)
		}
	}
	return nil
}

// joined writes values by name as a list again, sorted, if a function changed
// them.
func joined(after, before any, separator string) (string, bool, error) {
	list := func(value any) ([]string, error) {
		var parts []string
		entries, _ := value.(map[string]any)
		for name, entry := range entries {
			values, err := valuesOf(entry)
			if err != nil {
				return nil, err
			}
			for _, value := range values {
				part := name + "=" + value
				if value == "" {
					part = name
				}
				parts = append(parts, part)
			}
		}
		slices.Sort(parts)
		return parts, nil
	}
	was, err := list(before)
	if err != nil {
		return "", false, err
	}
	is, err := list(after)
	if err != nil {
		return "", false, err
	}
	return strings.Join(is, separator), !slices.Equal(was, is), nil
}

// valuesOf reads {value} or {multiValue: [{value}]}.
func valuesOf(entry any) ([]string, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return nil, errors.New("a value of the function's is no object")
	}
	if all, ok := fields["multiValue"].([]any); ok && len(all) > 0 {
		var out []string
		for _, one := range all {
			values, err := valuesOf(one)
			if err != nil {
				return nil, err
			}
			out = append(out, values[0])
		}
		return out, nil
	}
	text, ok := fields["value"].(string)
	if !ok {
		return nil, errors.New("a value of the function's is no string")
	}
	return []string{text}, nil
}

// functionAnswer sends what a function answered in the origin's place.
func (v *visit) functionAnswer(out map[string]any) bool {
	status, ok := out["statusCode"].(int64)
	if !ok || status < 200 || status > 599 {
		v.refuse(http.StatusBadGateway, whyFunction, FunctionInvalid)
		return false
	}
	h := make(http.Header)
	headers, _ := out["headers"].(map[string]any)
	for name, entry := range headers {
		values, err := valuesOf(entry)
		if err != nil || isHidden(name) {
			v.refuse(http.StatusBadGateway, whyFunction, FunctionInvalid)
			return false
		}
		h[http.CanonicalHeaderKey(name)] = values
	}
	body, _ := out["body"].(string)
	v.event.Result = FunctionResponded
	v.own(int(status), h, []byte(body))
	return false
}
