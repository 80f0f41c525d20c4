package warm

// PageImages gives the addresses of the images of an HTML page, in order and once each:
// those that a browser would load for it and those that its metadata names, of whatever
// host, over HTTP and HTTPS. Images that the page holds in itself are left out. From is
// the page's own address, and contentType that of its answer, where they are known:
// without an address, only whole addresses are given. The error is what stopped the
// reading of the page; what was found before it is returned, too.
func PageImages(body []byte, contentType, from string) ([]string, error) {
	p, failure := parsePage(body, contentType)
	base, ok := resolve(address{}, from)
	if !ok {
		base = address{scheme: "https", path: "/"}
	}
	if p.base != "" {
		if a, ok := resolve(base, p.base); ok {
			base = a
		}
	}
	seen := map[string]bool{}
	var found []string
	for _, reference := range p.images {
		if a, ok := resolve(base, reference); ok && !seen[a.String()] {
			seen[a.String()] = true
			found = append(found, a.String())
		}
	}
	return found, failure
}
