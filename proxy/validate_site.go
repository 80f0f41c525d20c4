package proxy

import (
	"errors"
	"fmt"
	"net"
	"regexp"
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

// Forms of AWS's names. Those of CloudFront's ids and of role names are documented,
// those of external ids as well.
var (
	distributionID = regexp.MustCompile(`^[A-Z0-9]{2,32}$`)
	roleARN        = regexp.MustCompile(`^arn:aws[a-z-]{0,20}:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}$`)
	externalID     = regexp.MustCompile(`^[A-Za-z0-9_+=,.@:/-]{2,}$`)
)

// Placeholder stands in examples for a value that is somebody's own. It is taken, so
// that an example can be checked, and warned about.
const Placeholder = "..."

// Validate checks the section under its key.
func (c DistributionConfig) Validate(key string) error {
	k := func(name string) string { return config.Key(key, name) }
	form := func(name, value string, form *regexp.Regexp, most int, want string) error {
		if value == "" || value == Placeholder || len(value) <= most && form.MatchString(value) {
			return nil
		}
		return config.Invalid(k(name), value, want)
	}
	errs := []error{
		form("id", c.ID, distributionID, 32, "a distribution, 2 to 32 upper-case letters and digits such as E2QWRUHAPOMQZL"),
		form("role_arn", c.RoleARN, roleARN, 2048, "a role such as arn:aws:iam::111122223333:role/karui-purge"),
		form("external_id", c.ExternalID, externalID, 1224, "2 to 1224 letters, digits or _+=,.@:/-"),
	}
	switch {
	case c.ID == "" && (c.RoleARN != "" || c.ExternalID != ""):
		errs = append(errs, config.Invalid(k("id"), nil, "the distribution that the role is for, such as E123"))
	case c.RoleARN == "" && c.ExternalID != "":
		errs = append(errs, config.Invalid(k("role_arn"), nil, "the role that external_id is for, such as arn:aws:iam::111122223333:role/karui-purge"))
	}
	return errors.Join(errs...)
}
