package warm

import (
	"net"
	"strings"

	"golang.org/x/net/idna"
)

// address is a URL of HTTP in the parts that matter here, byte for byte as a browser
// would send them: net/url would write some of these bytes in another way, and the
// cache would know the image under another name than its viewers.
type address struct {
	scheme string // http or https
	// host is in lower case and ASCII, with its port unless that is the scheme's own.
	host string
	// path begins with a slash; query has its question mark, or is empty.
	path, query string
}

func (a address) String() string { return a.scheme + "://" + a.host + a.path + a.query }

// target is what a request line has.
func (a address) target() string { return a.path + a.query }

// name is the host without its port.
func (a address) name() string { return hostname(a.host) }

// hostname drops the port of a host.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// resolve reads a reference as a browser does where base is the page's address. It is
// not ok for what is not of HTTP, and for what no browser would ask for.
func resolve(base address, reference string) (address, bool) {
	ref := strings.Map(func(c rune) rune {
		if c == '\t' || c == '\n' || c == '\r' {
			return -1
		}
		return c
	}, strings.TrimFunc(reference, func(c rune) bool { return c <= ' ' }))
	if len(ref) > maxAddress {
		return address{}, false
	}
	ref, _, _ = strings.Cut(ref, "#")
	ref, query := splitQuery(ref)
	ref = strings.ReplaceAll(ref, `\`, "/")

	a := base
	if scheme, rest, ok := splitScheme(ref); ok {
		if scheme != "http" && scheme != "https" || !strings.HasPrefix(rest, "//") {
			return address{}, false
		}
		a.scheme, ref = scheme, rest
	}
	a.query = encode(query, `"<>'`)
	switch {
	case strings.HasPrefix(ref, "//"):
		authority, path := ref[2:], ""
		if i := strings.IndexByte(authority, '/'); i >= 0 {
			authority, path = authority[:i], authority[i:]
		}
		host, ok := readHost(a.scheme, authority)
		if !ok {
			return address{}, false
		}
		a.host, a.path = host, path
	case strings.HasPrefix(ref, "/"):
		a.path = ref
	case ref == "":
		if query == "" {
			a.query = base.query
		}
	default:
		a.path = base.path[:strings.LastIndexByte(base.path, '/')+1] + ref
	}
	if a.host == "" {
		return address{}, false
	}
	a.path = withoutDots(encode(a.path, "\"<>^`{}"))
	return a, len(a.path)+len(a.query) <= maxAddress
}

func splitQuery(ref string) (rest, query string) {
	if i := strings.IndexByte(ref, '?'); i >= 0 {
		return ref[:i], ref[i:]
	}
	return ref, ""
}

func splitScheme(ref string) (scheme, rest string, ok bool) {
	i := strings.IndexAny(ref, ":/")
	if i <= 0 || ref[i] != ':' {
		return "", ref, false
	}
	for n, c := range []byte(ref[:i]) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (n == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return "", ref, false
		}
	}
	return strings.ToLower(ref[:i]), ref[i+1:], true
}

// readHost brings the part between the slashes into the form that address has.
func readHost(scheme, authority string) (string, bool) {
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	name, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") {
		name, port = authority[:i], authority[i+1:]
	}
	if strings.HasPrefix(name, "[") {
		if !strings.HasSuffix(name, "]") || net.ParseIP(name[1:len(name)-1]) == nil {
			return "", false
		}
		name = strings.ToLower(name)
	} else {
		ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
		if err != nil || ascii == "" || strings.ContainsAny(ascii, "%:[] /?#@\\") {
			return "", false
		}
		name = ascii
	}
	if strings.Trim(port, "0123456789") != "" || len(port) > 5 {
		return "", false
	}
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		return name, true
	}
	return name + ":" + port, true
}

// encode writes what a browser never sends as it is: controls, spaces, what is beyond
// ASCII, and the other bytes that the standard names for this part of a URL.
func encode(s, others string) string {
	plain := func(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte(others, c) < 0 }
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// withoutDots takes "." and ".." out of a path, also where they are encoded, as
// browsers do. Empty segments stay.
func withoutDots(path string) string {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	out := segments[:0]
	for i, s := range segments {
		last := i == len(segments)-1
		switch strings.ReplaceAll(strings.ToLower(s), "%2e", ".") {
		case ".":
		case "..":
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		default:
			out = append(out, s)
			continue
		}
		if last {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}
