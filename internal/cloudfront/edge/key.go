package edge

import (
	"net/http"
	"slices"
	"strings"

	"karui/internal/cloudfront"
)

// selection is what of one kind (headers, cookies or query parameters) counts.
type selection struct {
	all    bool
	names  []string // lower case for headers
	except bool     // all but names
}

func (s selection) has(name string) bool {
	switch {
	case s.except:
		return !slices.Contains(s.names, name)
	case s.all:
		return true
	}
	return slices.Contains(s.names, name)
}

func modeSelection(mode string, names []string) selection {
	switch mode {
	case "all", "allViewer":
		return selection{all: true}
	case "allExcept":
		return selection{except: true, names: names}
	case "whitelist":
		return selection{names: names}
	}
	return selection{}
}

// recipe says what of a request is in the cache key and what goes to the origin
// beside it.
type recipe struct {
	ttls
	encodings                    bool
	keyHeaders, keyQuery, keyJar selection
	addHeaders, addQuery, addJar selection
	legacy                       bool
}

// recipeFor reads a behaviour's policies, or its older settings.
func recipeFor(control *cloudfront.Double, b cloudfront.Behavior) recipe {
	if v := b.Legacy; v != nil {
		r := recipe{
			ttls:       ttls{v.MinTTL, v.DefaultTTL, v.MaxTTL, v.MaxTTL == 0 || slices.Contains(v.Headers, "*")},
			keyHeaders: selection{names: lower(v.Headers)},
			keyQuery:   selection{all: v.Query && len(v.QueryKeys) == 0, names: v.QueryKeys},
			addQuery:   selection{all: v.Query},
			keyJar:     modeSelection(v.Cookies, v.CookieNames),
			encodings:  true,
			legacy:     true,
		}
		if slices.Contains(v.Headers, "*") {
			r.keyHeaders = selection{}
			r.addHeaders = selection{all: true}
		}
		return r
	}
	p, _ := control.CachePolicy(b.CachePolicyID) // checked when the distribution was put
	r := recipe{
		ttls:       ttls{p.MinTTL, p.DefaultTTL, p.MaxTTL, p.MaxTTL == 0},
		encodings:  p.Encodings,
		keyHeaders: selection{names: lower(p.Headers)},
		keyQuery:   selection{all: p.QueryAll, names: p.Queries},
		keyJar:     selection{all: p.CookieAll, names: p.Cookies},
	}
	if o, ok := control.OriginRequestPolicy(b.OriginRequestPolicyID); ok {
		r.addHeaders = modeSelection(o.HeaderMode, lower(o.Headers))
		r.addQuery = modeSelection(o.QueryMode, o.Queries)
		r.addJar = modeSelection(o.CookieMode, o.Cookies)
	}
	return r
}

func lower(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ToLower(n)
	}
	return out
}

// sent tells whether a viewer's header goes to the origin.
func (r recipe) sent(name string) bool {
	name = strings.ToLower(name)
	return r.keyHeaders.has(name) || r.addHeaders.has(name)
}

// key is the cache key of a request. Header values are compared as text;
// headers that are missing differ from empty ones. GET and HEAD have keys of
// their own here, see Edge.lookup.
func (r recipe) key(distribution, method, path, query string, h http.Header) string {
	var b strings.Builder
	b.WriteString(distribution + "\x00" + method + "\x00" + path + "\x00" + pickQuery(query, r.keyQuery))
	for _, name := range r.keyHeaders.names {
		if values, ok := h[http.CanonicalHeaderKey(name)]; ok {
			b.WriteString("\x00" + name + ":" + strings.Join(values, ","))
		}
	}
	b.WriteString("\x00" + pickCookies(h, r.keyJar))
	if r.encodings {
		b.WriteString("\x00" + reducedEncoding(h))
	}
	return b.String()
}

// pickQuery keeps the chosen parameters, in their order and as written.
func pickQuery(query string, chosen ...selection) string {
	for _, s := range chosen {
		if s.all {
			return query
		}
	}
	var kept []string
	for _, part := range strings.Split(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		if part != "" && slices.ContainsFunc(chosen, func(s selection) bool { return s.has(name) }) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

func pickCookies(h http.Header, chosen ...selection) string {
	var kept []string
	for _, line := range h["Cookie"] {
		for _, part := range strings.Split(line, ";") {
			part = strings.TrimSpace(part)
			name, _, _ := strings.Cut(part, "=")
			if part != "" && slices.ContainsFunc(chosen, func(s selection) bool { return s.has(name) }) {
				kept = append(kept, part)
			}
		}
	}
	return strings.Join(kept, "; ")
}

// reducedEncoding is Accept-Encoding as documented: br and gzip, or nothing.
func reducedEncoding(h http.Header) string {
	var found []string
	for _, name := range []string{"br", "gzip"} {
		for _, part := range strings.Split(strings.Join(h["Accept-Encoding"], ","), ",") {
			coding, params, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(coding), name) && !strings.Contains(strings.ReplaceAll(params, " ", "")+";", "q=0;") {
				found = append(found, name)
				break
			}
		}
	}
	return strings.Join(found, ",")
}
