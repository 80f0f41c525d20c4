package main

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// browser is a client's own cache. It does what RFC 9111 lets a private cache do:
// it keeps answers by URL and by the headers that Vary names, uses fresh ones
// without asking, and asks with all the tags it has for a URL otherwise. So a
// missing Vary, or a 304 for the wrong tag, shows what it shows in earnest.
type browser struct {
	now func() time.Time
	// stored is what is kept, by URL; the newest last.
	stored map[string][]*kept
	order  []string
}

// kept is one answer in a browser's cache.
type kept struct {
	// selecting are the request's values of the headers that Vary names.
	selecting map[string]string
	header    http.Header
	body      []byte
	fresh     time.Time // until then
}

// maxURLs bounds a browser's cache.
const maxURLs = 200

func newBrowser(now func() time.Time) *browser {
	return &browser{now: now, stored: map[string][]*kept{}}
}

// fresh gives the stored answer that may be used without asking, if there is one.
func (b *browser) fresh(q request) *kept {
	for _, k := range slices.Backward(b.stored[q.target]) {
		if k.selects(q) && b.now().Before(k.fresh) {
			return k
		}
	}
	return nil
}

// tags are those of all stored answers for the URL.
func (b *browser) tags(q request) []string {
	var tags []string
	for _, k := range b.stored[q.target] {
		if tag := k.header.Get("ETag"); tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// confirmed gives the stored answer that a 304 speaks of: the one with its tag,
// or without a tag, the one that the request selects (RFC 9111 section 4.3.4).
func (b *browser) confirmed(q request, header http.Header) *kept {
	tag := header.Get("ETag")
	for _, k := range slices.Backward(b.stored[q.target]) {
		if tag != "" && weak(k.header.Get("ETag")) == weak(tag) || tag == "" && k.selects(q) {
			k.header = maps.Clone(k.header)
			for _, name := range []string{"Cache-Control", "Vary", "ETag"} {
				if values := header.Values(name); len(values) > 0 {
					k.header[http.CanonicalHeaderKey(name)] = values
				}
			}
			k.fresh = b.now().Add(lifetime(k.header))
			return k
		}
	}
	return nil
}

// put keeps a whole 200.
func (b *browser) put(q request, header http.Header, body []byte) {
	if names(header, "Cache-Control", "no-store") {
		return
	}
	k := &kept{selecting: map[string]string{}, header: header, body: body, fresh: b.now().Add(lifetime(header))}
	for _, line := range header.Values("Vary") {
		for name := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(name), "accept") {
				k.selecting["Accept"] = q.accept
			}
		}
	}
	list := b.stored[q.target]
	list = slices.DeleteFunc(list, func(old *kept) bool { return maps.Equal(old.selecting, k.selecting) })
	if len(list) == 0 {
		b.order = append(b.order, q.target)
	}
	b.stored[q.target] = append(list, k)
	if len(b.order) > maxURLs {
		delete(b.stored, b.order[0])
		b.order = b.order[1:]
	}
}

func (k *kept) selects(q request) bool {
	accept, varies := k.selecting["Accept"]
	return !varies || accept == q.accept
}

func weak(tag string) string { return strings.TrimPrefix(tag, "W/") }

// lifetime is how long an answer may be used without asking: its max-age.
func lifetime(h http.Header) time.Duration {
	if names(h, "Cache-Control", "no-cache") {
		return 0
	}
	for _, line := range h.Values("Cache-Control") {
		for member := range strings.SplitSeq(line, ",") {
			if value, ok := strings.CutPrefix(strings.TrimSpace(member), "max-age="); ok {
				if n, err := strconv.Atoi(value); err == nil {
					age, _ := strconv.Atoi(h.Get("Age"))
					return time.Duration(max(0, n-age)) * time.Second
				}
			}
		}
	}
	return 0
}
