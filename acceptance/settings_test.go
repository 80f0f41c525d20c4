package acceptance

import (
	"maps"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// settings is a karui.yaml in the making.
type settings map[string]any

// change is one alteration of the settings that most tests use.
type change func(settings)

// with sets a key by its dotted name.
func with(key string, value any) change {
	return func(s settings) { s.set(key, value) }
}

// withSite sets a key of the one site.
func withSite(key string, value any) change {
	return func(s settings) { settings(s.site()).set(key, value) }
}

// withPlace sets a key of the one site's one origin.
func withPlace(key string, value any) change {
	return func(s settings) {
		places := s.site()["origins"].([]any)
		settings(places[0].(map[string]any)).set(key, value)
	}
}

func (s settings) set(key string, value any) {
	head, rest, deeper := strings.Cut(key, ".")
	if !deeper {
		s[head] = value
		return
	}
	inner, ok := s[head].(map[string]any)
	if !ok {
		inner = map[string]any{}
		s[head] = inner
	}
	settings(inner).set(rest, value)
}

func (s settings) site() map[string]any { return s["sites"].([]any)[0].(map[string]any) }

func site(id, url string, more map[string]any) map[string]any {
	m := map[string]any{
		"id":      id,
		"origins": []any{map[string]any{"name": "main", "urls": []any{url}}},
	}
	maps.Copy(m, more)
	return m
}

// newSettings is one default site in front of url. Conversions may queue for
// long and short answers are settled by the tests, so that a busy machine
// changes the time a test takes and not its outcome.
func newSettings(listen, admin, cache, url string) settings {
	return settings{
		"listen": listen,
		"drain":  "5s",
		"admin":  map[string]any{"listen": admin},
		"convert": map[string]any{
			"queue_wait": "60s",
		},
		"first_response": map[string]any{"wait": "0s"},
		"cache": map[string]any{
			"volumes": []any{map[string]any{"path": cache, "max_size": "1GiB"}},
		},
		"sites": []any{site("shop", url, map[string]any{
			"hosts":   []any{"www.example.com"},
			"default": true,
		})},
	}
}

func (s settings) yaml(t *testing.T) []byte {
	t.Helper()
	b, err := yaml.Marshal(map[string]any(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// patient lets a viewer wait for its variant for as long as a busy machine may need.
func patient(s settings) {
	s.set("first_response.wait", "30s")
	s.set("origin.deadline", "55s")
}
