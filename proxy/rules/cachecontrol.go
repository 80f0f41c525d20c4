package rules

import (
	"strconv"
	"strings"
	"time"
)

// CacheControl is what a Cache-Control header of an answer says, as far as a
// shared cache needs it. MaxAge and SMaxAge are negative where they are absent.
type CacheControl struct {
	NoStore        bool
	NoCache        bool
	Private        bool
	NoTransform    bool
	MustRevalidate bool
	MaxAge         time.Duration
	SMaxAge        time.Duration
}

// maxSeconds is the largest lifetime that is read; RFC 9111 section 1.2.2 asks
// for at least 2^31 seconds, and that is what larger numbers count as.
const maxSeconds = 1 << 31

// ParseCacheControl reads the lines of a Cache-Control header. Names are
// matched in any case and values may be quoted. Of a lifetime that is given
// twice the shorter counts; one that cannot be read counts as 0. `private` and
// `no-cache` with field names count as without.
func ParseCacheControl(lines []string) CacheControl {
	cc := CacheControl{MaxAge: -1, SMaxAge: -1}
	for member := range elements(lines) {
		name, value, _ := strings.Cut(member, "=")
		switch strings.ToLower(trim(name)) {
		case "no-store":
			cc.NoStore = true
		case "no-cache":
			cc.NoCache = true
		case "private":
			cc.Private = true
		case "no-transform":
			cc.NoTransform = true
		case "must-revalidate", "proxy-revalidate":
			cc.MustRevalidate = true
		case "max-age":
			cc.MaxAge = shorter(cc.MaxAge, seconds(value))
		case "s-maxage":
			cc.SMaxAge = shorter(cc.SMaxAge, seconds(value))
		}
	}
	return cc
}

func shorter(had, now time.Duration) time.Duration {
	if had < 0 {
		return now
	}
	return min(had, now)
}

// seconds reads a delta-seconds; what is none is 0.
func seconds(value string) time.Duration {
	value = unquote(trim(value))
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n > maxSeconds {
		n = maxSeconds
	}
	return time.Duration(n) * time.Second
}
