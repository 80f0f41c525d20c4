package origin

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// endpoint is one configured address.
type endpoint struct {
	scheme string // http or https
	addr   string // what is dialled: host or host:port
	base   string // path before every target, "" or "/base", as written
	host   string // the Host header
}

// parseEndpoint reads one of a place's urls. host replaces the URL's own in the
// Host header if it is not empty.
func parseEndpoint(raw, host string) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// url.Error repeats the URL, which may hold a password.
		return endpoint{}, errors.New("is not a URL: write https://origin.example.com")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return endpoint{}, fmt.Errorf("has the scheme %q: write http:// or https://", u.Scheme)
	case u.Hostname() == "":
		return endpoint{}, errors.New("names no host: write https://origin.example.com")
	case u.User != nil:
		return endpoint{}, errors.New("holds a user name: send an Authorization header by `headers` instead")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return endpoint{}, errors.New("holds a query or a fragment: leave it out")
	case !validPort(u.Port()):
		return endpoint{}, fmt.Errorf("has the port %s: ports go from 1 to 65535", u.Port())
	}
	e := endpoint{scheme: u.Scheme, addr: u.Host, base: strings.TrimRight(u.EscapedPath(), "/"), host: host}
	if e.host == "" {
		e.host = u.Host
	}
	if e.host, err = asciiHost(e.host); err != nil {
		return endpoint{}, err
	}
	return e, nil
}

// validPort tells whether a port can be dialled; none is the scheme's.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// asciiHost writes an international name the way it stands in a Host header.
func asciiHost(host string) (string, error) {
	name, port := host, ""
	if h, p, err := net.SplitHostPort(host); err == nil {
		name, port = h, p
	}
	if strings.ContainsAny(host, "/@?# \\") || name == "" {
		return "", fmt.Errorf("host %q is not a host name", host)
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		// Underscores and addresses are no names in IDNA's sense, and yet in use.
		for i := range len(name) {
			if name[i] <= ' ' || name[i] >= 0x7f {
				return "", fmt.Errorf("host %q is not a host name", host)
			}
		}
		ascii = name
	}
	if port != "" {
		return net.JoinHostPort(strings.Trim(ascii, "[]"), port), nil
	}
	return ascii, nil
}

// serverName is the name a certificate is checked for.
func (e endpoint) serverName() string {
	if h, _, err := net.SplitHostPort(e.host); err == nil {
		return h
	}
	return strings.Trim(e.host, "[]")
}

// url gives the URL that makes net/http dial e and write base and target as they are.
func (e endpoint) url(method, target string) (*url.URL, error) {
	if err := checkTarget(method, target); err != nil {
		return nil, err
	}
	u := &url.URL{Scheme: e.scheme, Host: e.addr}
	if target == "*" {
		u.Opaque = target
		return u, nil
	}
	full := e.base + target
	if !strings.HasPrefix(full, "//") {
		u.Opaque = full // written as it is
		return u, nil
	}
	// Before an Opaque that starts with "//" net/url would write the scheme, so
	// the path goes the regular way where that leaves every byte alone.
	path, query, found := strings.Cut(full, "?")
	if clear, err := url.PathUnescape(path); err == nil {
		u.Path, u.RawPath, u.RawQuery, u.ForceQuery = clear, path, query, found
		if u.RequestURI() == full {
			return u, nil
		}
	}
	// What is left has raw bytes that net/url would escape. The absolute form
	// names the same resource, and RFC 9112 section 3.2.2 obliges servers to take
	// it; HTTP/2 cuts scheme and host off again.
	return &url.URL{Scheme: e.scheme, Host: e.addr, Opaque: "//" + e.host + full}, nil
}

// checkTarget refuses what is no origin-form target (RFC 9112 section 3.2.1) or
// would end the request line early.
func checkTarget(method, target string) error {
	const most = 64 << 10 // twice the default of limits.header_bytes
	switch {
	case target == "*" && method == "OPTIONS":
		return nil
	case !strings.HasPrefix(target, "/"):
		return errors.New("the request target does not begin with a slash")
	case len(target) > most:
		return fmt.Errorf("the request target has %d bytes, %d are taken", len(target), most)
	}
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f {
			return fmt.Errorf("the request target holds the byte 0x%02x at position %d", target[i], i)
		}
	}
	return nil
}
