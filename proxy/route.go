package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// router finds the site of a request.
type router struct {
	header   string
	byID     map[string]*site
	byHost   map[string]*site
	fallback *site
}

func newRouter(header string, sites []*site) *router {
	r := &router{header: http.CanonicalHeaderKey(header), byID: map[string]*site{}, byHost: map[string]*site{}}
	for _, s := range sites {
		r.byID[s.config.ID] = s
		for _, host := range s.config.Hosts {
			r.byHost[hostname(host)] = s
		}
		if s.config.Default {
			r.fallback = s
		}
	}
	return r
}

// site gives the site that the routing header names, else the one with the
// host, else the default; nil where there is none. A routing header that names
// no site, or several, is never overruled by the host: the edge meant something.
func (r *router) site(h http.Header, host string) *site {
	if ids := h[r.header]; len(ids) > 0 {
		for _, id := range ids[1:] {
			if id != ids[0] {
				return nil
			}
		}
		return r.byID[strings.TrimSpace(ids[0])]
	}
	if s := r.byName(host); s != nil {
		return s
	}
	return r.fallback
}

// byName gives the site with the host, nil for none.
func (r *router) byName(host string) *site {
	if s := r.byHost[host]; s != nil {
		return s // the form in which nearly all viewers send it
	}
	return r.byHost[hostname(host)]
}

// foreign tells whether a request says nothing of any site: no routing header,
// and a host that belongs to none.
func (r *router) foreign(h http.Header, host string) bool {
	return len(h[r.header]) == 0 && r.byName(host) == nil
}

// hostname brings a Host header to the form in which hosts are compared: lower
// case, without port, brackets and the root's dot.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// secrets are the accepted values of X-Karui-Key, hashed, so that comparing
// takes the same time whatever the viewer sends and however long it is.
type secrets [][sha256.Size]byte

func newSecrets(values []string) secrets {
	var s secrets
	for _, v := range values {
		if v != "" {
			s = append(s, sha256.Sum256([]byte(v)))
		}
	}
	return s
}

// admit tells whether the request carries one of the secrets; without secrets
// everybody is admitted.
func (s secrets) admit(h http.Header) bool {
	if len(s) == 0 {
		return true
	}
	sum := sha256.Sum256([]byte(h.Get(KeyHeader)))
	admitted := 0
	for i := range s {
		admitted |= subtle.ConstantTimeCompare(sum[:], s[i][:])
	}
	return admitted == 1
}
