package acceptance

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

// convertible reports whether a target's extension makes its path a convertible one.
func convertible(target string) bool {
	name, _, _ := strings.Cut(target, "?")
	return slices.Contains([]string{".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif"}, strings.ToLower(path.Ext(name)))
}

// listed reports whether a comma-separated header holds a word.
func listed(h http.Header, name, word string) bool {
	for _, value := range h.Values(name) {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), word) {
				return true
			}
		}
	}
	return false
}

// breaches names what an answer breaks of the rules that hold for every answer.
func breaches(q request, a *reply) []string {
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }

	for _, name := range []string{"Content-Type", "Content-Length", "Etag", "Cache-Control", "Date", "X-Karui", "X-Karui-Saved", "X-Karui-Kept", "Content-Disposition"} {
		if n := len(a.header.Values(name)); n > 1 {
			say("%d fields named %s", n, name)
		}
	}
	if q.verb() != http.MethodGet && q.verb() != http.MethodHead {
		return found
	}
	if a.status == http.StatusServiceUnavailable {
		if got := a.header.Get("Cache-Control"); got != "no-store" {
			say("503 with Cache-Control %q", got)
		}
		if strings.HasPrefix(a.header.Get("Content-Type"), "image/") {
			say("503 with an image's type")
		}
		for _, name := range []string{"Etag", "Content-Disposition"} {
			if a.header.Get(name) != "" {
				say("503 with %s", name)
			}
		}
	}
	if a.err == nil && a.length >= 0 && q.verb() == http.MethodGet && a.status == http.StatusOK && int64(len(a.body)) != a.length {
		say("length %d declared, %d bytes sent", a.length, len(a.body))
	}
	if !convertible(q.target) || q.target == "/.karui/ping.jpg" {
		return found
	}

	reason := a.header.Get("X-Karui-Reason")
	if !listed(a.header, "Vary", "Accept") && reason != "route" && reason != "secret" {
		say("a convertible path without Vary: Accept")
	}
	// A stale original is marked like a stale variant; the type tells them apart.
	kind := a.header.Get("Content-Type")
	made := slices.Contains([]string{"image/webp", "image/avif", "image/heic"}, kind)
	variant := a.status == http.StatusOK && (a.karui() == "hit" || a.karui() == "wait" || a.karui() == "stale" && made)
	if variant {
		if !made {
			say("a variant of type %q", kind)
		}
		if !strings.Contains(q.field("Accept"), kind) {
			say("a variant for a viewer that did not ask for one")
		}
		if tag := a.header.Get("Etag"); !strings.HasPrefix(tag, `"k-`) || !strings.HasSuffix(tag, `"`) {
			say("a variant with ETag %q", tag)
		}
		if a.header.Get("X-Content-Type-Options") != "nosniff" {
			say("a variant without nosniff")
		}
		if saved, err := strconv.Atoi(a.header.Get("X-Karui-Saved")); err != nil || saved <= 0 {
			say("a variant that saved %q", a.header.Get("X-Karui-Saved"))
		}
		if a.length <= 0 {
			say("a variant without Content-Length")
		}
		if cc := a.header.Get("Cache-Control"); !strings.HasPrefix(cc, "public, max-age=") {
			say("a variant with Cache-Control %q", cc)
		}
	}
	if slices.Contains([]string{"hit", "wait", "stale", "miss", "original"}, a.karui()) {
		if a.header.Get("Age") != "" {
			say("Age: %s", a.header.Get("Age"))
		}
		if a.header.Get("Last-Modified") != "" {
			say("Last-Modified on a convertible path")
		}
		if a.status == http.StatusOK && a.maxAge() < 1 {
			say("max-age below 1: Cache-Control %q", a.header.Get("Cache-Control"))
		}
	}
	return found
}
