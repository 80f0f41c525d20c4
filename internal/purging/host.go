package purging

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"karui/internal/api"
)

// splitURL takes what stands before the path from a whole URL; not ok where text is none.
func splitURL(text string) (authority, rest string, ok bool) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || strings.ContainsAny(scheme, "/?#") {
		return "", "", false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return rest[:end], rest[end:], true
}

// Host gives the host of a whole URL in the form of sites[].hosts, "" for what is no URL
// or has a host that is no name.
func Host(text string) string {
	authority, _, ok := splitURL(strings.Trim(text, blank))
	if !ok {
		return ""
	}
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host, err := idna.Lookup.ToASCII(host); err == nil {
		return host
	}
	if net.ParseIP(host) != nil {
		return host
	}
	return ""
}

// checkHosts looks at the hosts of prefixes that are whole URLs. One that another site
// has is refused: that site's picture is meant, and would stay. One that nobody has may
// be how viewers see the site before the edge, and is remarked upon where it could have
// been known: the site has hosts, and is not the one for all others.
func checkHosts(site Site, all []Site, prefixes []string) (remark string, err error) {
	var unknown []string
	seen := map[string]bool{}
	for _, text := range prefixes {
		host := Host(text)
		if host == "" || seen[host] || slices.Contains(site.Hosts, host) {
			continue
		}
		seen[host] = true
		if slices.ContainsFunc(all, func(other Site) bool { return slices.Contains(other.Hosts, host) }) {
			return "", api.Invalid(fmt.Sprintf("prefix %s is of a host that another site has, and not %s", quote(text), site.ID),
				"purge the site that has the host in sites[].hosts, or send the path without it")
		}
		unknown = append(unknown, shorten(host))
	}
	if len(unknown) == 0 || len(site.Hosts) == 0 || site.Default {
		return "", nil
	}
	words := strings.Join(unknown[:min(len(unknown), 3)], ", ")
	if len(unknown) > 3 {
		words += fmt.Sprintf(" and %d more", len(unknown)-3)
	}
	return fmt.Sprintf("%s is in no sites[].hosts: the paths were purged as those of site %s", words, site.ID), nil
}
