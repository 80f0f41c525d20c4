package server_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"karui/cache"
	"karui/internal/config"
	"karui/internal/server"
	"karui/proxy"
	"karui/proxy/origin"
)

const example = "testdata/karui.yaml"

// The example holds every key, and its defaults where it shows defaults.
func TestExampleEqualsTheDefaults(t *testing.T) {
	r, err := server.Load(example, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) > 0 {
		t.Errorf("warnings: %q", r.Warnings)
	}
	want := server.DefaultConfig()
	site, place := proxy.DefaultSite(), origin.DefaultPlace()
	place.Name, place.URLs, place.Host = "tokyo", []string{"https://origin.example.com"}, "www.example.com"
	site.ID, site.Hosts, site.Default, site.Origins = "shop", []string{"www.example.com"}, true, []origin.PlaceConfig{place}
	site.Distribution = proxy.DistributionConfig{ID: "E123", RoleARN: "...", ExternalID: "..."}
	want.Sites = []proxy.SiteConfig{site}
	if keys := config.Diff(want, r.Value); len(keys) > 1 || len(keys) == 1 && keys[0] != "sites" {
		t.Errorf("other than the default: %q", keys)
	}
	if keys := config.Diff(site, r.Value.Sites[0]); len(keys) > 1 || len(keys) == 1 && keys[0] != "origins" {
		t.Errorf("other than the site's defaults: %q", keys)
	}
	if keys := config.Diff(place, r.Value.Sites[0].Origins[0]); len(keys) > 0 {
		t.Errorf("other than the place's defaults: %q", keys)
	}

	// No key is left out, but those that are for S3 only.
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for key := range keys("", reflect.TypeFor[server.Config]()) {
		name := key[strings.LastIndexByte(key, '.')+1:]
		if !bytes.Contains(text, []byte(name+":")) {
			t.Errorf("the example lacks %s", key)
		}
	}
}

func TestDocumentsShowTheExamples(t *testing.T) {
	for document, tested := range map[string]string{
		"karui.yaml":    example,
		"watchdog.yaml": "../../watchdog/settings/testdata/watchdog.yaml",
	} {
		want, err := os.ReadFile(tested)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../docs/" + document)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("docs/%s differs from %s", document, tested)
		}
	}
}

// keys goes over the struct by itself, so that the loader is not asked about itself.
func keys(prefix string, t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		if prefix != "" {
			key = prefix + "." + key
		}
		if f.Type.Kind() != reflect.Struct {
			all[key] = f.Type
			continue
		}
		for k, v := range keys(key, f.Type) {
			all[k] = v
		}
	}
	return all
}

// bare is Config without its judgement, which refuses some values in this version.
type bare server.Config

func TestEveryKeyCanBeSetFromTheEnvironment(t *testing.T) {
	all := keys("", reflect.TypeFor[server.Config]())
	if len(all) < 50 {
		t.Fatalf("only %d keys", len(all))
	}
	owner := map[string]string{}
	for key, typ := range all {
		name := "KARUI_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
		if other, taken := owner[name]; taken {
			t.Errorf("%s sets both %s and %s", name, key, other)
		}
		owner[name] = key
		for _, text := range texts(t, typ) {
			r, err := config.Load(bare(server.DefaultConfig()), config.Options{
				EnvPrefix: "KARUI_", Environ: []string{name + "=" + text},
				Elements: []any{proxy.DefaultSite(), origin.DefaultPlace(), cache.DefaultVolume()},
			})
			if err != nil {
				t.Errorf("%s=%s: %s", name, text, err)
				continue
			}
			before, after := value(bare(server.DefaultConfig()), key), value(r.Value, key)
			// One of the two texts of a switch is its default.
			if typ.Kind() != reflect.Bool && reflect.DeepEqual(before, after) {
				t.Errorf("%s=%s changed nothing", name, text)
			}
			if typ.Kind() == reflect.Bool && fmt.Sprint(after) != text {
				t.Errorf("%s=%s gave %v", name, text, after)
			}
			if changed := config.Diff(bare(server.DefaultConfig()), r.Value); len(changed) > 1 || len(changed) == 1 && changed[0] != key {
				t.Errorf("%s changed %q", name, changed)
			}
			if got := r.Source(key).String(); got != name {
				t.Errorf("%s is said to come from %s", key, got)
			}
			if len(r.Warnings) > 0 {
				t.Errorf("%s: %q", name, r.Warnings)
			}
		}
	}
}

// texts gives values that are no key's default.
func texts(t *testing.T, typ reflect.Type) []string {
	t.Helper()
	switch typ.String() {
	case "time.Duration":
		return []string{"7m7s"}
	case "units.Size":
		return []string{"7777KiB"}
	case "units.Pixels":
		return []string{"7777kP"}
	case "units.Percent":
		return []string{"77.5%"}
	}
	switch typ.Kind() {
	case reflect.String:
		return []string{"seven"}
	case reflect.Bool:
		return []string{"true", "false"}
	case reflect.Int:
		return []string{"7"}
	case reflect.Float64:
		return []string{"7.5"}
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.String {
			return []string{`["seven", "eight"]`}
		}
		name := typ.Elem().Field(0).Tag.Get("yaml")
		return []string{`[{"` + name + `": "/seven"}, {}]`}
	}
	t.Fatalf("no text for a %s", typ)
	return nil
}

// value finds a key in a struct.
func value(v any, key string) any {
	at := reflect.ValueOf(v)
	for name := range strings.SplitSeq(key, ".") {
		for i := range at.NumField() {
			if at.Type().Field(i).Tag.Get("yaml") == name {
				at = at.Field(i)
				break
			}
		}
	}
	return at.Interface()
}

func TestOriginFlagNeedsNoFile(t *testing.T) {
	r, err := server.Load("/dev/null", []string{"KARUI_SITES=[]"}, server.OriginFlag("https://www.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	c := r.Value
	if len(c.Sites) != 1 || !c.Sites[0].Default || c.Sites[0].Origins[0].URLs[0] != "https://www.example.com" || c.Sites[0].Quality != 80 {
		t.Errorf("%+v", c.Sites)
	}
	if keys := config.Diff(server.DefaultConfig(), c); len(keys) != 1 {
		t.Errorf("changed: %q", keys)
	}
	_, err = server.Load("/dev/null", nil, server.OriginFlag(`x"y`))
	if err == nil || !strings.HasPrefix(err.Error(), `--origin: sites[0].origins[0].urls[0] is "x\"y", but it must be an address`) {
		t.Errorf("%v", err)
	}
}

func TestWatchdogsVariablesAreNotOurs(t *testing.T) {
	r, err := server.Load(example, []string{"KARUI_WATCHDOG_PING_COUNT=3", "KARUI_CACHE_MEMROY=1GiB"})
	if err != nil || len(r.Warnings) != 1 || !strings.HasSuffix(r.Warnings[0], "did you mean KARUI_CACHE_MEMORY?") {
		t.Errorf("%v, %v", r.Warnings, err)
	}
}

func TestHostsAreComparedInLowerCase(t *testing.T) {
	r := loadText(t, "sites: [{id: a, hosts: [WWW.Example.COM., 192.0.2.1], origins: [{name: x, urls: [http://127.0.0.1:1/base]}]}]")
	if got := r.Value.Sites[0].Hosts; !reflect.DeepEqual(got, []string{"www.example.com", "192.0.2.1"}) {
		t.Errorf("%q", got)
	}
}

func TestRemarksAboutDistributions(t *testing.T) {
	const role = "arn:aws:iam::111122223333:role/karui-purge"
	for distribution, want := range map[string]string{
		"{}":                                 "",
		"{id: E123}":                         "",
		"{id: E123, role_arn: " + role + "}": "distribution.external_id is empty",
		`{id: E123, role_arn: "..."}`:        "holds a placeholder",
		"{id: E123, role_arn: " + role + ", external_id: hush-17}": "",
	} {
		r := loadText(t, "sites: [{id: a, default: true, origins: [{name: x, urls: [http://127.0.0.1]}], distribution: "+distribution+"}]")
		if got := strings.Join(r.Value.Remarks(), "; "); !strings.Contains(got, want) || want == "" && got != "" || strings.Contains(got, "hush") {
			t.Errorf("%s: %q", distribution, got)
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "karui.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func loadText(t *testing.T, text string) *config.Result[server.Config] {
	t.Helper()
	r, err := server.Load(write(t, text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
