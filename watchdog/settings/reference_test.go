package settings

import (
	"os"
	"testing"

	"karui/internal/manual"
	"karui/internal/reference"
)

// Every key of watchdog.yaml is in the reference, as the structs have it.
// KARUI_UPDATE_DOCS=1 writes it anew.
func TestConfigurationIsDocumented(t *testing.T) {
	loaded, err := Load("../../docs/watchdog.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	loaded.Value.Sites[0].PingHeaders = []Header{{Name: "X-Routing", Value: "shop"}}
	keys, err := reference.Keys(reference.Options{
		Valid: &loaded.Value, Defaults: Default(), EnvPrefix: EnvPrefix, Root: "../..", Elements: []any{DefaultSite()},
		Lasting: func(key string) bool { return key == "listen" || key == "state_dir" },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := manual.Section(
		"../../docs/configuration-reference.md", "<!-- written by KARUI_UPDATE_DOCS=1 go test ./watchdog/settings -run ConfigurationIsDocumented -->",
		"<!-- end of watchdog.yaml -->", reference.Markdown(keys), os.Getenv(manual.UpdateVariable) != "",
	); err != nil {
		t.Error(err)
	}
}
