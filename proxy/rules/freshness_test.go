package rules

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestParseCacheControl(t *testing.T) {
	const none = -1
	tests := []struct {
		name  string
		lines []string
		want  CacheControl
	}{
		{"absent", nil, CacheControl{MaxAge: none, SMaxAge: none}},
		{"usual", []string{"public, max-age=3600"}, CacheControl{MaxAge: time.Hour, SMaxAge: none}},
		{"any case, no space", []string{"PRIVATE,No-Store,MAX-AGE=1"}, CacheControl{Private: true, NoStore: true, MaxAge: time.Second, SMaxAge: none}},
		{"quoted", []string{`max-age="60", s-maxage="\3\0"`}, CacheControl{MaxAge: time.Minute, SMaxAge: 30 * time.Second}},
		{"twice, the shorter", []string{"max-age=60", "max-age=10, max-age=20"}, CacheControl{MaxAge: 10 * time.Second, SMaxAge: none}},
		{"garbage is over", []string{"max-age=soon"}, CacheControl{MaxAge: 0, SMaxAge: none}},
		{"negative is over", []string{"max-age=-5"}, CacheControl{MaxAge: 0, SMaxAge: none}},
		{"fraction is over", []string{"max-age=1.5"}, CacheControl{MaxAge: 0, SMaxAge: none}},
		{"without value", []string{"max-age"}, CacheControl{MaxAge: 0, SMaxAge: none}},
		{"huge", []string{"max-age=99999999999999999999999"}, CacheControl{MaxAge: maxSeconds * time.Second, SMaxAge: none}},
		{"named fields count as all", []string{`private="x-a, max-age=5", no-cache="set-cookie"`}, CacheControl{Private: true, NoCache: true, MaxAge: none, SMaxAge: none}},
		{"directive inside quotes", []string{`ext="no-store, private"`}, CacheControl{MaxAge: none, SMaxAge: none}},
		{"must revalidate", []string{"must-revalidate"}, CacheControl{MustRevalidate: true, MaxAge: none, SMaxAge: none}},
		{"proxies must", []string{"proxy-revalidate"}, CacheControl{MustRevalidate: true, MaxAge: none, SMaxAge: none}},
		{"no transform", []string{"no-transform"}, CacheControl{NoTransform: true, MaxAge: none, SMaxAge: none}},
		{"space before the sign", []string{"max-age = 7"}, CacheControl{MaxAge: 7 * time.Second, SMaxAge: none}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := ParseCacheControl(test.lines); got != test.want {
				t.Errorf("ParseCacheControl(%q)\n got %+v\nwant %+v", test.lines, got, test.want)
			}
		})
	}
}

func FuzzParseCacheControl(f *testing.F) {
	for _, s := range []string{"public, max-age=3600", `private="a,b"`, `max-age="1`, "s-maxage=1,s-maxage=2", "=,;\"\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		cc := ParseCacheControl([]string{line})
		for _, age := range []time.Duration{cc.MaxAge, cc.SMaxAge} {
			if age < -1 || age > maxSeconds*time.Second {
				t.Errorf("ParseCacheControl(%q): lifetime %v is out of bounds", line, age)
			}
		}
	})
}

var start = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestParseFreshness(t *testing.T) {
	const date = "Date: Tue, 03 Nov 2026 11:59:00 GMT"
	tests := []struct {
		name     string
		header   http.Header
		explicit bool
		lifetime time.Duration
	}{
		{"nothing", headers(), false, 0},
		{"max-age", headers("Cache-Control: max-age=60"), true, time.Minute},
		{"s-maxage first", headers("Cache-Control: max-age=60, s-maxage=10", "Expires: Tue, 03 Nov 2026 13:00:00 GMT"), true, 10 * time.Second},
		{"less age", headers("Cache-Control: max-age=60", "Age: 20"), true, 40 * time.Second},
		{"older than its life", headers("Cache-Control: max-age=60", "Age: 100"), true, 0},
		{"age that is none counts nothing", headers("Cache-Control: max-age=60", "Age: old"), true, time.Minute},
		{"expires less date", headers("Expires: Tue, 03 Nov 2026 12:09:00 GMT", date), true, 10 * time.Minute},
		{"expires less date less age", headers("Expires: Tue, 03 Nov 2026 12:09:00 GMT", date, "Age: 60"), true, 9 * time.Minute},
		{"expires without date", headers("Expires: Tue, 03 Nov 2026 12:09:00 GMT"), true, 9 * time.Minute},
		{"expired", headers("Expires: Tue, 03 Nov 2026 11:00:00 GMT", date), true, 0},
		{"expires zero", headers("Expires: 0", date), true, 0},
		{"expires empty", headers("Expires: ", date), true, 0},
		{"max-age before expires", headers("Cache-Control: max-age=0", "Expires: Tue, 03 Nov 2026 13:00:00 GMT"), true, 0},
		{"far future", headers("Expires: Fri, 31 Dec 9999 23:59:59 GMT", date), true, maxSeconds * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ParseFreshness(test.header, start)
			want := Freshness{Base: start, Explicit: test.explicit, Lifetime: test.lifetime}
			if got != want {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestLifetimes(t *testing.T) {
	ttl := TTL{Short: 10 * time.Second, Long: 24 * time.Hour, Max: 720 * time.Hour, Stale: 168 * time.Hour, RespectOrigin: true}
	ignore := ttl
	ignore.RespectOrigin = false
	tests := []struct {
		name        string
		ttl         TTL
		header      http.Header
		after       time.Duration
		long, short string
		stale       bool
		usable      bool
	}{
		{"origin silent", ttl, headers(), 0, "86400", "10", false, true},
		{"remainder", ttl, headers(), time.Hour, "82800", "10", false, true},
		{"a begun second counts whole", ttl, headers("Cache-Control: max-age=60"), 1500 * time.Millisecond, "59", "10", false, true},
		{"just arrived", ttl, headers("Cache-Control: max-age=60"), 80 * time.Millisecond, "60", "10", false, true},
		{"origin's wins", ttl, headers("Cache-Control: max-age=60"), 0, "60", "10", false, true},
		{"short is not longer than the origin's", ttl, headers("Cache-Control: max-age=4"), 0, "4", "4", false, true},
		{"short is not longer than what is left", ttl, headers("Cache-Control: max-age=60"), 57 * time.Second, "3", "3", false, true},
		{"at least a second", ttl, headers("Cache-Control: max-age=60"), 59900 * time.Millisecond, "1", "1", false, true},
		{"capped", ttl, headers("Cache-Control: max-age=31536000"), 0, "2592000", "10", false, true},
		{"zero", ttl, headers("Cache-Control: max-age=0"), 0, "1", "1", true, true},
		{"stale", ttl, headers("Cache-Control: max-age=60"), time.Hour, "1", "10", true, true},
		{"stale of a short life", ttl, headers("Cache-Control: max-age=4"), time.Hour, "1", "4", true, true},
		{"too stale", ttl, headers("Cache-Control: max-age=60"), 169 * time.Hour, "1", "10", true, false},
		{"must revalidate, fresh", ttl, headers("Cache-Control: max-age=60, must-revalidate"), 0, "60", "10", false, false},
		{"no-cache", ttl, headers("Cache-Control: max-age=60, no-cache"), 0, "1", "1", true, false},
		{"ignored", ignore, headers("Cache-Control: max-age=60"), 0, "86400", "10", false, true},
		{"ignored no-cache", ignore, headers("Cache-Control: no-cache"), 0, "86400", "10", false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := ParseFreshness(test.header, start)
			now := start.Add(test.after)
			if got, want := test.ttl.LongAge(f, now), "public, max-age="+test.long; got != want {
				t.Errorf("long: %q, want %q", got, want)
			}
			if got, want := test.ttl.ShortAge(f, now), "public, max-age="+test.short; got != want {
				t.Errorf("short: %q, want %q", got, want)
			}
			if got := test.ttl.Left(f, now) <= 0; got != test.stale {
				t.Errorf("stale: %v, want %v", got, test.stale)
			}
			if got := test.ttl.Usable(f, now); got != test.usable {
				t.Errorf("usable when stale: %v, want %v", got, test.usable)
			}
			if got := test.ttl.Useless(f); got.Before(start.Add(test.ttl.Stale)) {
				t.Errorf("useless from %v, before it is too stale", got)
			}
		})
	}
}

func TestDegradedAge(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ttl := TTL{Short: 10 * time.Second, Long: 24 * time.Hour, Max: 720 * time.Hour, Degraded: 10 * time.Minute, RespectOrigin: true}
	for left, want := range map[time.Duration]string{
		time.Hour: "public, max-age=600", 10 * time.Minute: "public, max-age=600", time.Minute: "public, max-age=60", 0: "public, max-age=1",
	} {
		f := Freshness{Base: now, Explicit: true, Lifetime: left}
		if got := ttl.DegradedAge(f, now); got != want {
			t.Errorf("with %s left: %q, want %q", left, got, want)
		}
	}
}
