package proxy

import (
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"karui/convert/header"
	"karui/proxy/rules"
)

// maxAcceptLines bounds the Accept headers that a site remembers. Browsers have a
// few dozen of them, and behind an edge that normalises the header there are two
// or three.
const maxAcceptLines = 256

// acceptance remembers what Accept headers mean for a site, since all viewers of
// one browser send the same one.
type acceptance struct {
	known atomic.Pointer[map[string][]header.Format]
}

// wanted gives the site's formats that the viewer takes, best first.
func (s *site) wanted(h http.Header) []header.Format {
	lines := h["Accept"]
	if len(lines) != 1 {
		return s.negotiate(lines)
	}
	known := s.accepts.known.Load()
	if known != nil {
		if formats, found := (*known)[lines[0]]; found {
			return formats
		}
	}
	formats := s.negotiate(lines)
	if known == nil || len(*known) < maxAcceptLines {
		next := map[string][]header.Format{}
		if known != nil {
			next = maps.Clone(*known)
		}
		next[lines[0]] = formats
		s.accepts.known.CompareAndSwap(known, &next) // or somebody else was first, and it is learned next time
	}
	return formats
}

func (s *site) negotiate(lines []string) []header.Format {
	var formats []header.Format
	for _, t := range rules.Accepted(lines, s.types) {
		formats = append(formats, s.formats[slices.Index(s.types, t)])
	}
	return formats
}
