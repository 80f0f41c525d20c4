package server

import (
	"karui/internal/config"
	"karui/proxy"
)

// WithoutEffect lists the keys that are set to something other than their
// default although this version does not act on them, so that a start can warn.
func (c Config) WithoutEffect() []string {
	var keys []string
	for i, s := range c.Sites {
		site := config.Key("sites", i)
		keys = append(keys, differing(site, proxy.DefaultSite(), s, "distribution")...)
	}
	return keys
}

func differing[T any](key string, standard, element T, names ...string) []string {
	var keys []string
	for _, name := range config.Under(config.Diff(standard, element), names...) {
		keys = append(keys, config.Key(key, name))
	}
	return keys
}
