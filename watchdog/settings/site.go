package settings

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"karui/internal/config"
)

// Forms of AWS's names, as package distribution wants them.
var (
	roleARN        = regexp.MustCompile(`^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}$`)
	distributionID = regexp.MustCompile(`^[A-Z0-9]{2,32}$`)
	externalID     = regexp.MustCompile(`^[A-Za-z0-9_+=,.@:/-]{2,}$`)
	region         = regexp.MustCompile(`^[a-z]{2,3}(-[a-z]+){1,3}-[0-9]{1,2}$`)
)

func isRegion(name string) bool { return region.MatchString(name) }

// Bounds of a site's lists and counts.
const (
	maxHeaders = 20
	maxPaths   = 1000

	// maxRestoreAfter is also where doubling by flaps ends.
	maxRestoreAfter = 12
)

// MaxGoodRounds is the most good rounds in a row that a restore ever needs.
const MaxGoodRounds = maxRestoreAfter

func (c Config) validateSites(key string) error {
	if len(c.Sites) == 0 {
		return config.Invalid(key, nil, "a list with at least one site")
	}
	ids, groups := make([]string, len(c.Sites)), make([]string, len(c.Sites))
	var errs []error
	for i, s := range c.Sites {
		ids[i] = strings.ToLower(s.ID)
		if s.DistributionID != "" && s.OriginGroupID != "" {
			groups[i] = s.DistributionID + "/" + s.OriginGroupID
		}
		errs = append(errs, s.validate(config.Key(key, i), c))
	}
	errs = append(errs,
		config.AtMost(key, len(c.Sites), maxSites),
		config.Unique(ids, func(i int) string { return config.Key(key, i, "id") }),
		// Two sites would undo each other's swaps.
		config.Unique(groups, func(i int) string { return config.Key(key, i, "origin_group_id") }),
	)
	return errors.Join(errs...)
}

func (s Site) validate(key string, c Config) error {
	k := func(parts ...any) string { return config.Key(append([]any{key}, parts...)...) }
	errs := []error{
		config.Name(k("id"), s.ID),
		checkURL(k("ping_url"), s.PingURL),
		checkURL(k("origin_url"), s.OriginURL),
		match(k("distribution_id"), s.DistributionID, distributionID, "2 to 32 upper-case letters and digits, such as E2QWRUHAPOMQZL"),
		checkID(k("origin_group_id"), s.OriginGroupID),
		checkID(k("proxy_origin_id"), s.ProxyOriginID),
		checkID(k("direct_origin_id"), s.DirectOriginID),
		match(k("role_arn"), s.RoleARN, roleARN, "the ARN of a role, such as arn:aws:iam::111122223333:role/karui-watchdog"),
		config.OneOf(k("degrade"), s.Degrade, Auto, Manual),
		config.OneOf(k("restore"), s.Restore, Auto, Manual),
		config.InRange(k("restore_after"), s.RestoreAfter, 1, maxRestoreAfter),
		config.OneOf(k("after_restore"), s.AfterRestore, None, Invalidate),
		// One would never restore: a degrade and its restore are two.
		config.InRange(k("max_swaps_per_day"), s.MaxSwapsPerDay, 2, 1000),
		config.AtMost(k("ping_headers"), len(s.PingHeaders), maxHeaders),
		config.AtMost(k("invalidate_paths"), len(s.InvalidatePaths), maxPaths),
		checkRecipients(k("mail", "to"), s.Mail.To),
	}
	if s.ProxyOriginID != "" && s.ProxyOriginID == s.DirectOriginID {
		errs = append(errs, config.Invalid(k("direct_origin_id"), s.DirectOriginID, "another origin than proxy_origin_id"))
	}
	if s.ExternalID != "" {
		const want = "2 to 1224 letters, digits or _+=,.@:/-"
		if len(s.ExternalID) > 1224 {
			errs = append(errs, config.Invalid(k("external_id"), s.ExternalID, want))
		} else {
			errs = append(errs, match(k("external_id"), s.ExternalID, externalID, want))
		}
	}
	if s.Mail.Language != "" {
		errs = append(errs, config.OneOf(k("mail", "language"), s.Mail.Language, English, Japanese))
	}
	if to, _ := c.Recipients(s); len(to) == 0 && c.Mail.Enabled() {
		errs = append(errs, config.Invalid(k("mail", "to"), nil, "a list of recipients, here or in mail.to"))
	}
	if s.ViewerURL != "" {
		errs = append(errs, checkURL(k("viewer_url"), s.ViewerURL))
		if ping, viewer := host(s.PingURL), host(s.ViewerURL); ping != "" && ping == viewer {
			errs = append(errs, config.Invalid(k("ping_url"), s.PingURL,
				"at the proxy's own host name: through the edge (viewer_url) it would never fail, since the edge fails over"))
		}
	}
	for i, h := range s.PingHeaders {
		if !httpguts.ValidHeaderFieldName(h.Name) || len(h.Name) > 100 {
			errs = append(errs, config.Invalid(k("ping_headers", i, "name"), h.Name, "the name of a header, such as X-Karui-Key"))
		}
		if !httpguts.ValidHeaderFieldValue(h.Value) || len(h.Value) > 4096 {
			errs = append(errs, config.Invalid(k("ping_headers", i, "value"), h.Value, "at most 4096 characters that a header value may have"))
		}
	}
	for i, path := range s.InvalidatePaths {
		errs = append(errs, checkPath(k("invalidate_paths", i), path))
	}
	if s.AfterRestore == Invalidate && len(s.InvalidatePaths) == 0 {
		errs = append(errs, config.Invalid(k("invalidate_paths"), nil, "a list of paths such as /images/*, as after_restore is invalidate"))
	}
	return errors.Join(errs...)
}

// checkPath checks what CloudFront takes as a path to invalidate.
func checkPath(key, path string) error {
	printable := !slices.ContainsFunc([]byte(path), func(b byte) bool { return b <= ' ' || b > '~' })
	if strings.HasPrefix(path, "/") && printable && len(path) <= 4000 && !strings.Contains(strings.TrimSuffix(path, "*"), "*") {
		return nil
	}
	return config.Invalid(key, path, "a path such as /images/*, URL-encoded, with at most one star, at the end")
}

func checkID(key, id string) error {
	const want = "an id as the distribution has it, without spaces around it"
	if id == "" {
		return config.Invalid(key, nil, want)
	}
	if id != strings.TrimSpace(id) {
		return config.Invalid(key, id, want)
	}
	return config.Text(key, id, 128)
}

func match(key, value string, form *regexp.Regexp, want string) error {
	if value == "" {
		return config.Invalid(key, nil, want)
	}
	if !form.MatchString(value) {
		return config.Invalid(key, value, want)
	}
	return nil
}

// host of a URL with its port, in a form that compares; empty if there is none.
func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}
