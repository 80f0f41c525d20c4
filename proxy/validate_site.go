package proxy

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/net/http/httpguts"

	"karui/internal/config"
	"karui/proxy/origin"
)

// Bounds of a site's lists.
const (
	maxHosts    = 1000
	maxNames    = 100
	maxPlaces   = 32
	maxPatterns = 1000
)

// Validate checks one site under its key.
func (c SiteConfig) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	errs := []error{
		config.Name(k("id"), c.ID),
		c.validateHosts(k("hosts")),
		c.validateOrigins(k("origins")),
		c.validateFormats(k("formats")),
		config.InRange(k("quality"), c.Quality, 1, 100),
		config.OneOf(k("png"), c.PNG, "auto", "lossy", "lossless"),
		c.Query.validate(k("query")),
		config.OneOf(k("cookies"), c.Cookies, "bypass", "ignore"),
		c.validateForwardHeaders(k("forward_headers")),
		checkPatterns(k("include"), c.Include),
		checkPatterns(k("exclude"), c.Exclude),
		config.AtMost(k("classes"), len(c.Classes), maxPatterns),
		c.Distribution.Validate(k("distribution")),
	}
	for i, word := range c.Keep {
		errs = append(errs, config.OneOf(config.Key(key, "keep", i), word, "copyright"))
	}
	for i, class := range c.Classes {
		errs = append(errs, checkPattern(config.Key(key, "classes", i, "match"), class.Match))
	}
	return errors.Join(errs...)
}

func (c SiteConfig) validateHosts(key string) error {
	errs := []error{config.AtMost(key, len(c.Hosts), maxHosts)}
	for i, host := range c.Hosts {
		if !validHost(host) {
			errs = append(errs, config.Invalid(config.Key(key, i), host, "a host name such as www.example.com, without scheme, port and wildcard"))
		}
	}
	return errors.Join(errs...)
}

// validHost takes names of letters, digits, dashes and dots (an international
// name arrives in that form, too) and addresses.
func validHost(host string) bool {
	if net.ParseIP(host) != nil {
		return true
	}
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range label {
			letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
			if !letter && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

func (c SiteConfig) validateOrigins(key string) error {
	errs := []error{config.AtMost(key, len(c.Origins), maxPlaces)}
	if len(c.Origins) == 0 {
		errs = append(errs, config.Invalid(key, nil, "a list of places, such as [{ name: tokyo, urls: [https://origin.example.com] }]"))
	}
	names := make([]string, len(c.Origins))
	for i, place := range c.Origins {
		names[i] = strings.ToLower(place.Name)
		errs = append(errs, place.Validate(config.Key(key, i)))
	}
	errs = append(errs, config.Unique(names, func(i int) string { return config.Key(key, i, "name") }))
	return errors.Join(errs...)
}

func (c SiteConfig) validateFormats(key string) error {
	element := func(i int) string { return config.Key(key, i) }
	errs := []error{config.Unique(c.Formats, element)}
	if len(c.Formats) == 0 {
		errs = append(errs, config.Invalid(key, nil, "a list of formats, such as [webp]"))
	}
	for i, f := range c.Formats {
		errs = append(errs, checkFormat(element(i), f))
	}
	return errors.Join(errs...)
}

func checkFormat(key, word string) error { return config.OneOf(key, word, "webp", "avif", "heic") }

func (c SiteConfig) validateForwardHeaders(key string) error {
	element := func(i int) string { return config.Key(key, i) }
	errs := []error{config.AtMost(key, len(c.ForwardHeaders), maxNames)}
	lower := make([]string, len(c.ForwardHeaders))
	for i, name := range c.ForwardHeaders {
		lower[i] = strings.ToLower(name)
		err := origin.CheckHeaderName(element(i), name)
		switch lower[i] {
		case "cookie", "authorization":
			err = config.Invalid(element(i), name, "another header: requests with it are private and carry it anyway, all others never do")
		}
		errs = append(errs, err)
	}
	errs = append(errs, config.Unique(lower, element))
	return errors.Join(errs...)
}

func (q Query) validate(key string) error {
	element := func(i int) string { return config.Key(key, i) }
	errs := []error{config.AtMost(key, len(q.Names), maxNames), config.Unique(q.Names, element)}
	for i, name := range q.Names {
		if name == "" || len(name) > 255 || strings.ContainsAny(name, "&=#?; \t") || !httpguts.ValidHeaderFieldValue(name) {
			errs = append(errs, config.Invalid(element(i), name, "the name of a query parameter, such as v"))
		}
	}
	return errors.Join(errs...)
}

// maxPattern is what the edge takes for the pattern of a behaviour.
const maxPattern = 255

func checkPatterns(key string, patterns []string) error {
	errs := []error{config.AtMost(key, len(patterns), maxPatterns)}
	for i, p := range patterns {
		errs = append(errs, checkPattern(config.Key(key, i), p))
	}
	return errors.Join(errs...)
}

// checkPattern checks a pattern for whole paths, written as for the edge's
// behaviours: `*` stands for any run of characters, slashes included, and `?`
// for one character.
func checkPattern(key, pattern string) error {
	want := fmt.Sprintf("a pattern for paths such as /banner/* or *.png, of at most %d characters", maxPattern)
	if pattern == "" {
		return config.Invalid(key, nil, want)
	}
	if len(pattern) > maxPattern || (pattern[0] != '/' && pattern[0] != '*') || !httpguts.ValidHeaderFieldValue(pattern) || strings.ContainsAny(pattern, "# \t") {
		return config.Invalid(key, pattern, want)
	}
	return nil
}

// Validate checks the section under its key. The edge's own checks of the
// identifiers are left to it.
func (c DistributionConfig) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	errs := []error{
		config.Text(k("id"), c.ID, 64),
		config.Text(k("role_arn"), c.RoleARN, 2048),
		config.Text(k("external_id"), c.ExternalID, 1224),
	}
	if c.ID == "" && (c.RoleARN != "" || c.ExternalID != "") {
		errs = append(errs, config.Invalid(k("id"), nil, "the distribution that the role is for, such as E123"))
	}
	return errors.Join(errs...)
}
