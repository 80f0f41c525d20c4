package warm

import (
	"slices"
	"strings"

	"karui/proxy/rules"
)

// Scope says which addresses belong to the site.
type Scope struct {
	// Hosts are the site's own, without ports; the first is the Host of the requests.
	Hosts []string
	// Include, Exclude and Extensionless are the site's settings.
	Include, Exclude []string
	Extensionless    bool
	// Keyed gives the part of a query, with its question mark, by which the cache tells
	// images apart; nil for all of it.
	Keyed func(query string) string
	// named are the hosts, with ports, of the documents that the caller named.
	named []string
}

// kind is what an address is to a run.
type kind int

const (
	ownImage kind = iota
	foreign       // of another host
	leftOut       // of the site, but nothing that karui converts
)

// name takes a host that the caller named for one of the site's.
func (s *Scope) name(host string) {
	if !slices.Contains(s.named, host) {
		s.named = append(s.named, host)
	}
}

// host is what requests for images carry.
func (s *Scope) host() string {
	if len(s.Hosts) > 0 {
		return s.Hosts[0]
	}
	if len(s.named) > 0 {
		return s.named[0]
	}
	return ""
}

// nameless stands for the host of a site of which none is known: paths need none.
const nameless = "site.invalid"

// hostless tells whether no host of the site is known, so that no URL can be told to be
// its own.
func (s *Scope) hostless() bool { return len(s.Hosts)+len(s.named) == 0 }

// root is what paths are read against that are in no document.
func (s *Scope) root() address {
	a := address{scheme: "https", host: s.host(), path: "/"}
	if s.hostless() {
		a.host = nameless
	}
	return a
}

// own tells whether the host is the site's, on whatever port.
func (s *Scope) own(a address) bool {
	if s.hostless() {
		return a.host == nameless
	}
	return slices.ContainsFunc(s.Hosts, func(h string) bool { return strings.EqualFold(h, a.name()) }) || slices.Contains(s.named, a.host)
}

// mayFetch tells whether a document may be fetched from there: from the site's hosts
// on their usual ports, and from what the caller named. A document must not make this
// machine knock at other doors.
func (s *Scope) mayFetch(a address) bool {
	return !s.hostless() && (slices.Contains(s.named, a.host) || s.own(a) && a.name() == strings.Trim(a.host, "[]"))
}

// image tells what an image's address is, and the target under which the cache knows
// it.
func (s *Scope) image(a address) (string, kind) {
	switch {
	case !s.own(a):
		return "", foreign
	case !s.convertible(a.path):
		return "", leftOut
	}
	if s.Keyed != nil {
		a.query = s.Keyed(a.query)
	}
	return a.target(), ownImage
}

// convertible tells whether karui might convert what is at the path. Where the type of
// the answer decides, everything might be.
func (s *Scope) convertible(path string) bool {
	if !rules.ConvertiblePath(path) && !s.Extensionless {
		return false
	}
	return (len(s.Include) == 0 || rules.MatchAny(s.Include, path)) && !rules.MatchAny(s.Exclude, path)
}
