package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karui/cache"
	"karui/internal/manual"
	"karui/internal/reference"
	"karui/proxy"
	"karui/proxy/origin"
)

// whole is a configuration with an element in every list of sections.
const whole = `
admin:
  tokens: [{ name: ops, token: 0123456789abcdef0123456789abcdef, rights: [read] }]
dial:
  levels: [{ name: full }, { name: lean }, { name: spare }, { name: defer, formats: [none] }]
  schedule: [{ name: evening, from: "18:00", to: "23:00", zone: Asia/Tokyo, level: 1 }]
sites:
  - id: shop
    hosts: [www.example.com]
    origins:
      - { name: main, urls: [https://origin.example.com], headers: [{ name: Referer, value: https://www.example.com/ }] }
    classes: [{ match: "/banner/*", shed_first: true }]
`

// Every key of karui.yaml is in the reference, as the structs have it.
// KARUI_UPDATE_DOCS=1 writes it anew.
func TestConfigurationIsDocumented(t *testing.T) {
	file := filepath.Join(t.TempDir(), "karui.yaml")
	if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := reference.Keys(reference.Options{
		Valid: &loaded.Value, Defaults: DefaultConfig(), EnvPrefix: "KARUI_", Root: "../..",
		Elements: []any{proxy.DefaultSite(), origin.DefaultPlace(), cache.DefaultVolume(), proxy.DefaultDialLevel()},
		Lasting: func(key string) bool {
			for _, l := range lasting {
				if key == l || strings.HasPrefix(key, l+".") {
					return true
				}
			}
			return false
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := manual.Section(
		"../../docs/configuration-reference.md", "<!-- written by KARUI_UPDATE_DOCS=1 go test ./internal/server -run ConfigurationIsDocumented -->",
		"<!-- end of karui.yaml -->", reference.Markdown(keys), os.Getenv(manual.UpdateVariable) != "",
	); err != nil {
		t.Error(err)
	}
}
