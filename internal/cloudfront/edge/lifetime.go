package edge

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"karui/internal/cloudfront"
)

// directives is what the double reads of an answer's Cache-Control. It is read
// here anew and not by karui's own reader, so that a mistake in that one shows.
// Negative durations are absent.
type directives struct {
	refused   bool // no-store or private
	check     bool // no-cache
	maxAge    time.Duration
	sharedAge time.Duration
	whileSWR  time.Duration // stale-while-revalidate
	ifError   time.Duration // stale-if-error
}

// longest is the largest lifetime that CloudFront documents: 100 years.
const longest = 100 * 365 * 24 * time.Hour

func readDirectives(lines []string) directives {
	d := directives{maxAge: -1, sharedAge: -1, whileSWR: -1, ifError: -1}
	for _, member := range strings.Split(strings.Join(lines, ","), ",") {
		name, value, _ := strings.Cut(member, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "no-store", "private":
			d.refused = true
		case "no-cache":
			d.check = true
		case "max-age":
			d.maxAge = deltaSeconds(value)
		case "s-maxage":
			d.sharedAge = deltaSeconds(value)
		case "stale-while-revalidate":
			d.whileSWR = deltaSeconds(value)
		case "stale-if-error":
			d.ifError = deltaSeconds(value)
		}
	}
	return d
}

func deltaSeconds(text string) time.Duration {
	n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(text), `"`), 10, 62)
	switch {
	case err != nil && strings.Contains(err.Error(), "range"):
		return longest
	case err != nil:
		return -1
	}
	return time.Duration(min(n, uint64(longest/time.Second))) * time.Second
}

// given is the lifetime that the origin asks for. Documented: s-maxage wins over
// max-age, and max-age over Expires. Concluded: Age is not subtracted.
func (d directives) given(h http.Header, now time.Time) (time.Duration, bool) {
	switch {
	case d.sharedAge >= 0:
		return d.sharedAge, true
	case d.maxAge >= 0:
		return d.maxAge, true
	}
	text := h.Get("Expires")
	if text == "" {
		return 0, false
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, true // RFC 9111: an Expires that is no date is in the past
	}
	return min(max(at.Sub(now), 0), longest), true
}

// ttls are the three lifetimes of a behaviour. disabled means that no answer is
// kept at all: all headers forwarded, or a MaxTTL of 0.
type ttls struct {
	min, usual, max time.Duration
	disabled        bool
}

// lifetime is what becomes of an answer.
type lifetime struct {
	keep bool          // store it, if only to revalidate it later
	ttl  time.Duration // how long it is fresh
	swr  time.Duration // then: how long it goes out while it is refreshed; 0 is none
	sie  time.Duration // how long after expiry an error lets it out; negative is without limit
}

// successLifetime is documented for answers below 400, as a table of Cache-Control
// against MinTTL 0 and above.
func successLifetime(h http.Header, t ttls, now time.Time) lifetime {
	d := readDirectives(h.Values("Cache-Control"))
	out := lifetime{swr: max(d.whileSWR, 0), sie: d.ifError}
	given, explicit := d.given(h, now)
	switch {
	case t.disabled:
		return out
	case t.min == 0 && (d.refused || strings.TrimSpace(h.Get("Vary")) == "*"):
		return out
	case t.min == 0 && d.check:
		out.keep = true // and asked about every time
	case d.refused || d.check:
		out.keep, out.ttl = true, t.min
	case explicit:
		out.keep, out.ttl = true, min(max(given, t.min), t.max)
	default:
		out.keep, out.ttl = true, max(t.min, t.usual)
	}
	return out
}

var (
	// keptErrors are kept whatever the origin says, but for heedingErrors.
	keptErrors = []int{404, 410, 414, 500, 501, 502, 503, 504}
	// heedingErrors heed no-store, no-cache and private.
	heedingErrors = []int{404, 410, 414, 501}
	// askedErrors are kept only when the origin gives them a lifetime.
	askedErrors = []int{400, 403, 405, 412, 415}
)

// errorLifetime is documented for answers of 400 and above: the error caching
// minimum TTL or the origin's own lifetime (capped by MaxTTL), whichever is
// longer; no-store does not help a 503.
func errorLifetime(status int, h http.Header, t ttls, config *cloudfront.Config, now time.Time) lifetime {
	d := readDirectives(h.Values("Cache-Control"))
	given, explicit := d.given(h, now)
	given = min(given, t.max)
	switch {
	case slices.Contains(askedErrors, status):
		if !explicit || d.sharedAge < 0 && d.maxAge < 0 {
			return lifetime{}
		}
	case !slices.Contains(keptErrors, status):
		return lifetime{}
	case slices.Contains(heedingErrors, status) && (d.refused || d.check):
		return lifetime{}
	}
	ttl := max(config.ErrorTTL(status), given)
	return lifetime{keep: ttl > 0, ttl: ttl}
}
