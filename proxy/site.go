package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"karui/cache"
	"karui/convert/header"
	"karui/proxy/origin"
	"karui/proxy/rules"
	"karui/proxy/stress"
)

// Fetcher asks a site's origin; origin.Client is one.
type Fetcher interface {
	Do(ctx context.Context, r origin.Request) (*origin.Response, error)
}

// site is what the configuration says of one site, in the form that requests use.
type site struct {
	config SiteConfig
	// formats are the site's, best first, and types their media types.
	formats []header.Format
	types   []string
	// forward names the viewer's headers that a fetch carries, keyed those of them
	// that join the key, in lower case.
	forward []string
	keyed   []string
	origin  Fetcher
	counts  *counts
	// misses is the latency of the site's fetches, and first has the path patterns
	// that are turned away before the others.
	misses  *stress.Group
	first   []string
	accepts acceptance
}

// unkeyed are headers that say nothing about which picture is meant.
var unkeyed = []string{"User-Agent", "X-Forwarded-For", "X-Amz-Cf-Id"}

// unforwarded are the viewer's headers that a shared fetch never carries,
// whatever the configuration says: they would make the answer one viewer's own,
// or part of an answer.
var unforwarded = []string{
	"Accept", "Accept-Encoding", "Authorization", "Cookie", "Host", "If-Match", "If-Modified-Since", "If-None-Match",
	"If-Range", "If-Unmodified-Since", "Range",
}

func newSite(config SiteConfig, fetcher Fetcher, counts *counts) *site {
	s := &site{config: config, origin: fetcher, counts: counts}
	for _, name := range config.Formats {
		if f, ok := header.ParseFormat(name); ok {
			s.formats = append(s.formats, f)
			s.types = append(s.types, f.ContentType())
		}
	}
	for _, name := range config.ForwardHeaders {
		name = http.CanonicalHeaderKey(name)
		if slices.Contains(unforwarded, name) || slices.Contains(s.forward, name) {
			continue
		}
		s.forward = append(s.forward, name)
		if !slices.Contains(unkeyed, name) {
			s.keyed = append(s.keyed, strings.ToLower(name))
		}
	}
	slices.Sort(s.keyed)
	for _, class := range config.Classes {
		if class.ShedFirst {
			s.first = append(s.first, class.Match)
		}
	}
	return s
}

// convertible tells whether the site wants variants for the path, going by its
// name alone.
func (s *site) convertible(path string) bool {
	return rules.ConvertiblePath(path) && s.included(path)
}

func (s *site) included(path string) bool {
	if len(s.config.Include) > 0 && !rules.MatchAny(s.config.Include, path) {
		return false
	}
	return !rules.MatchAny(s.config.Exclude, path)
}

// goesFirst tells whether the path is of a class that is turned away before the
// others.
func (s *site) goesFirst(path string) bool { return rules.MatchAny(s.first, path) }

// private tells whether a request is one viewer's own.
func (s *site) private(h http.Header) bool {
	if len(h["Authorization"]) > 0 {
		return true
	}
	return s.config.Cookies != "ignore" && len(h["Cookie"]) > 0
}

// fetch is one shared request to the origin: everything that two viewers must
// have in common to get the same bytes.
type fetch struct {
	site *site
	// key has no Form.
	key    cache.Key
	target string
	// viewer has the headers of the viewer that the fetch was made for. Those that
	// the origin gets are picked when it is asked: most requests never come so far.
	viewer http.Header
	// origin is whether the viewer's Origin header is sent and keyed.
	origin bool
	// named is whether the path says that this is an image with variants; else the
	// type of the answer does.
	named bool
}

// fetch makes the shared request for a target. The Origin header is keyed and
// sent where the viewer has one: an origin that answers by it often says so only
// when asked with one.
func (s *site) fetch(t rules.Target, viewer http.Header) fetch {
	query := s.config.Query.Keyed(t.Query)
	f := fetch{
		site:   s,
		key:    cache.Key{Site: s.config.ID, Path: t.Path, Rest: query},
		target: t.Path + query,
		viewer: viewer,
		// A site that keys Origin has it in its fetches anyway.
		origin: len(viewer["Origin"]) > 0 && !slices.Contains(s.keyed, "origin"),
	}
	for _, name := range s.keyed {
		f.key.Rest += keyedHeader(name, viewer)
	}
	if f.origin {
		f.key.Rest += keyedHeader("origin", viewer)
	}
	return f
}

// withoutOrigin gives the same fetch for viewers without an Origin.
func (f fetch) withoutOrigin() fetch {
	f.key.Rest = strings.TrimSuffix(f.key.Rest, keyedHeader("origin", f.viewer))
	f.origin = false
	return f
}

// header gives what is sent to the origin. The map is the caller's.
func (f fetch) header() http.Header {
	h := make(http.Header, len(f.site.forward)+2)
	for _, name := range f.site.forward {
		if values := f.viewer[name]; len(values) > 0 {
			h[name] = values
		}
	}
	h["Accept-Encoding"] = []string{"identity"}
	if f.origin {
		h["Origin"] = f.viewer["Origin"]
	}
	return h
}

// keyedHeader writes a header into a key. A line feed cannot stand in a query or
// in a header, so no two sets of them share a form; an absent header leaves no
// trace, an empty one does.
func keyedHeader(name string, h http.Header) string {
	var b strings.Builder
	for _, value := range h[http.CanonicalHeaderKey(name)] {
		b.WriteByte('\n')
		b.WriteString(name)
		b.WriteByte(':')
		b.WriteString(value)
	}
	return b.String()
}

// varies gives the headers, in lower case, that an answer to the fetch may vary
// by and still be shared.
func (f fetch) varies() []string {
	if slices.Contains(f.site.keyed, "origin") {
		return f.site.keyed
	}
	return append(slices.Clone(f.site.keyed), "origin")
}

// form gives the key of one kind of entry under the fetch.
func (f fetch) form(name string) cache.Key {
	key := f.key
	key.Form = name
	return key
}
