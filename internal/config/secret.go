package config

import (
	"path/filepath"
	"reflect"
	"strings"
)

// A secret may be given as the file that holds it.
const (
	filePrefix     = "file:"
	maxSecretBytes = 64 << 10
)

// mask stands for a secret in what is printed. The key is part of it so that no
// two secrets look alike.
func mask(key string) string { return masked + " (" + key + ")" }

const masked = "********"

// hideQuery masks the query of a URL, in quotes or not.
func hideQuery(url string) string {
	before, query, found := strings.Cut(url, "?")
	if !found {
		return url
	}
	if strings.HasPrefix(url, `"`) && strings.HasSuffix(query, `"`) {
		return before + "?" + masked + `"`
	}
	return before + "?" + masked
}

// resolveSecrets follows `file:` in all secrets of v.
func (d *decoder) resolveSecrets(key string, v reflect.Value, secret bool) {
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			d.resolveSecrets(Key(key, i), v.Index(i), secret)
		}
	case v.Kind() == reflect.Struct && !isText(v.Type()):
		for _, f := range newSection(v.Type()).fields {
			d.resolveSecrets(Key(key, f.name), v.Field(f.index), f.secret)
			if f.query && strings.HasSuffix(v.Field(f.index).String(), "?"+masked) {
				d.warnings = append(d.warnings, Key(key, f.name)+" has the query that config print shows in place of the real one: write the real one")
			}
		}
	case secret && v.Kind() == reflect.String:
		v.SetString(d.resolveSecret(key, v.String()))
	}
}

func (d *decoder) resolveSecret(key, text string) string {
	if strings.HasPrefix(text, masked) {
		d.warnings = append(d.warnings, key+" is what config print shows in place of a secret: write the secret itself, or file:/its/path")
	}
	path, ok := strings.CutPrefix(text, filePrefix)
	if !ok {
		return text
	}
	refuse := func(what string) {
		d.refuse(&Problem{Key: key, What: "is taken from " + path + ", which " + what, Source: d.places.nearest(key)})
	}
	if !filepath.IsAbs(path) {
		refuse("is not an absolute path: write file:/run/secrets/name")
		return ""
	}
	content, err := readBounded(path, maxSecretBytes)
	if err != nil {
		refuse("cannot be read: " + reason(err))
		return ""
	}
	secret := strings.TrimRight(string(content), "\r\n")
	switch {
	case secret == "":
		refuse("is empty")
	case strings.ContainsAny(secret, "\r\n\x00"):
		refuse("holds more than one line")
		return ""
	}
	return secret
}
