package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"karui/cache"
	"karui/internal/config"
	"karui/internal/server"
	"karui/proxy"
	"karui/proxy/origin"
)

func TestLoadTakesTheStrongestSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "karui.yaml")
	text := "drain: 5s\nlisten: ':1'\ncache: {memory: 1GiB, write_queue: 2MiB}\nsites:\n  - id: a\n    query: all\n    origins: [{name: x, urls: [http://x]}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := config.Load(server.DefaultConfig(), config.Options{
		File: file, EnvPrefix: "KARUI_",
		Environ:  []string{"KARUI_CACHE_MEMORY=3GiB", "KARUI_LISTEN=:2"},
		Flags:    []config.Flag{{Name: "--listen", Key: "listen", Value: ":3"}},
		Elements: []any{proxy.DefaultSite(), origin.DefaultPlace(), cache.DefaultVolume()},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := r.Value
	if c.Drain.Seconds() != 5 || c.Cache.Memory != 3<<30 || c.Cache.WriteQueue != 2<<20 || c.Listen != ":3" {
		t.Errorf("wrong source won: %+v", c)
	}
	if s := c.Sites[0]; s.Quality != 80 || !s.Query.All || s.Origins[0].Weight != 1 {
		t.Errorf("elements lack their defaults: %+v", s)
	}
}
