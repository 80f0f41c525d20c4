package rules

import (
	"net/http"
	"strconv"
	"time"
)

// Freshness is what the origin said about how long an answer may be used.
type Freshness struct {
	// Base is the time that Lifetime counts from: the start of the fetch, so that
	// the time an answer took to arrive is not added to its life.
	Base time.Time
	// Explicit is whether the origin gave a lifetime at all.
	Explicit bool
	// Lifetime is what the origin gave, less the answer's Age; never negative.
	Lifetime time.Duration
	// NoCache asks to be revalidated before every use.
	NoCache bool
	// MustRevalidate forbids use after the lifetime without asking.
	MustRevalidate bool
}

// TTL is the section `ttl` of karui.yaml.
type TTL struct {
	Short         time.Duration
	Long          time.Duration
	Max           time.Duration
	Stale         time.Duration
	Degraded      time.Duration
	RespectOrigin bool
}

// ParseFreshness reads the freshness of an answer whose fetch started at start:
// s-maxage before max-age before Expires less Date, each less Age (RFC 9111
// section 4.2). Date is taken as start where it is missing.
func ParseFreshness(h http.Header, start time.Time) Freshness {
	cc := ParseCacheControl(h.Values("Cache-Control"))
	f := Freshness{Base: start, NoCache: cc.NoCache, MustRevalidate: cc.MustRevalidate}
	switch {
	case cc.SMaxAge >= 0:
		f.Explicit, f.Lifetime = true, cc.SMaxAge
	case cc.MaxAge >= 0:
		f.Explicit, f.Lifetime = true, cc.MaxAge
	case len(h.Values("Expires")) > 0:
		f.Explicit, f.Lifetime = true, expires(h, start)
	}
	if f.Explicit {
		f.Lifetime = max(0, f.Lifetime-age(h))
	}
	return f
}

// expires gives Expires less Date; an Expires that is no date, such as the
// widespread "0" and "-1", is in the past.
func expires(h http.Header, start time.Time) time.Duration {
	end, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		date = start
	}
	return min(max(0, end.Sub(date)), maxSeconds*time.Second)
}

func age(h http.Header) time.Duration {
	if h.Get("Age") == "" {
		return 0
	}
	return seconds(h.Get("Age"))
}

// Left returns how much longer the answer is fresh; zero and less mean that it
// is stale. With RespectOrigin false only Long counts.
func (t TTL) Left(f Freshness, now time.Time) time.Duration {
	return f.Base.Add(t.lifetime(f)).Sub(now)
}

func (t TTL) lifetime(f Freshness) time.Duration {
	switch {
	case !t.RespectOrigin:
		return t.Long
	case f.NoCache:
		return 0
	case f.Explicit:
		return min(f.Lifetime, t.Max)
	}
	return t.Long
}

// Usable tells whether a stale answer may still be given without asking the
// origin, because it is not older than Stale and the origin did not forbid it.
func (t TTL) Usable(f Freshness, now time.Time) bool {
	if f.MustRevalidate || f.NoCache {
		return false
	}
	return t.Left(f, now) > -t.Stale
}

// Useless returns the time from which the answer need not be kept any more: too
// stale to be given, and so old that asking the origin whether it still holds is
// not worth the room either.
func (t TTL) Useless(f Freshness) time.Time {
	return f.Base.Add(t.lifetime(f) + max(t.Stale, t.Long))
}

// LongAge is the value of Cache-Control for a settled answer: what is left of
// its lifetime.
func (t TTL) LongAge(f Freshness, now time.Time) string {
	return public(t.Left(f, now))
}

// ShortAge is the value of Cache-Control for an answer that is to be asked for
// again soon: Short, but never longer than what is left, and for a stale answer
// never longer than its whole lifetime was.
func (t TTL) ShortAge(f Freshness, now time.Time) string {
	short := t.Short
	if left := t.Left(f, now); left > 0 {
		short = min(short, left)
	} else {
		short = min(short, t.lifetime(f))
	}
	return public(short)
}

// DegradedAge is the value of Cache-Control for a variant that is not as good as
// the next one will be: Degraded, but never longer than what is left.
func (t TTL) DegradedAge(f Freshness, now time.Time) string {
	return public(min(t.Degraded, t.Left(f, now)))
}

// public writes a lifetime in whole seconds, at least one: an edge with a
// lifetime of 0 would ask for every single viewer. A begun second counts whole,
// as in the ages that caches compute, so that an answer that has just arrived
// has the lifetime that the origin gave it.
func public(d time.Duration) string {
	return "public, max-age=" + strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}
