package config

import (
	"reflect"
	"strings"
)

// Diff lists the keys whose values differ, in the structs' order; lists count as
// one value.
func Diff[T any](before, after T) []string {
	root := newSection(reflect.TypeFor[T]())
	a, b := root.values(reflect.ValueOf(before)), root.values(reflect.ValueOf(after))
	var keys []string
	for key, f := range root.leaves() {
		// A list that is missing and one that is empty mean the same.
		empty := f.list && reflect.ValueOf(a[key]).Len() == 0 && reflect.ValueOf(b[key]).Len() == 0
		if !empty && !reflect.DeepEqual(a[key], b[key]) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Under picks the keys that are one of the given ones or lie below. With Diff it
// tells which changes a running process cannot take over:
//
//	config.Under(config.Diff(before, after), "listen", "admin.listen", "cache.volumes")
func Under(keys []string, sections ...string) []string {
	var list []string
	for _, key := range keys {
		for _, s := range sections {
			if key == s || strings.HasPrefix(key, s+".") {
				list = append(list, key)
				break
			}
		}
	}
	return list
}
