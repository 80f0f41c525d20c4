package edge

import (
	"net/http"
	"testing"
	"time"
)

func TestHowLongAnswersAreFresh(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	const none = -time.Second // not kept at all
	free := ttls{0, time.Hour, 24 * time.Hour, false}
	floor := ttls{10 * time.Minute, time.Hour, 24 * time.Hour, false}
	for _, c := range []struct {
		name    string
		ttls    ttls
		cc      string
		expires string
		want    time.Duration
	}{
		{"max-age counts", free, "public, max-age=60", "", time.Minute},
		{"max-age is capped by MaxTTL", free, "max-age=999999", "", 24 * time.Hour},
		{"an absurd max-age is capped too", free, "max-age=99999999999999999999999", "", 24 * time.Hour},
		{"DefaultTTL counts without one", free, "public", "", time.Hour},
		{"DefaultTTL counts without any header", free, "", "", time.Hour},
		{"a max-age that is no number counts as none", free, "max-age=soon", "", time.Hour},
		{"s-maxage wins over max-age", free, "max-age=60, s-maxage=600", "", 10 * time.Minute},
		{"max-age wins over Expires", free, "max-age=60", in(5 * time.Hour), time.Minute},
		{"Expires counts", free, "", in(5 * time.Hour), 5 * time.Hour},
		{"Expires is capped by MaxTTL", free, "", in(1000 * time.Hour), 24 * time.Hour},
		{"Expires in the past is over", free, "", in(-time.Hour), 0},
		{"an Expires that is no date is over", free, "", "0", 0},
		{"names count in any case", free, "Max-Age=60", "", time.Minute},
		{"no-store is respected", free, "no-store", "", none},
		{"private is respected", free, "private, max-age=60", "", none},
		{"no-store wins over max-age", free, "max-age=60, no-store", "", none},
		{"no-cache is kept to be asked about", free, "no-cache, max-age=60", "", 0},
		{"max-age=0 is kept to be asked about", free, "max-age=0", "", 0},
		{"MinTTL above 0 overrides no-store", floor, "no-store", "", 10 * time.Minute},
		{"MinTTL above 0 overrides private", floor, "private", "", 10 * time.Minute},
		{"MinTTL above 0 overrides no-cache", floor, "no-cache", "", 10 * time.Minute},
		{"MinTTL lifts max-age", floor, "max-age=60", "", 10 * time.Minute},
		{"a max-age above MinTTL counts", floor, "max-age=1200", "", 20 * time.Minute},
		{"MinTTL lifts Expires", floor, "", in(-time.Hour), 10 * time.Minute},
		{"the greater of MinTTL and DefaultTTL counts", floor, "", "", time.Hour},
		{"a MaxTTL of 0 keeps nothing", ttls{disabled: true}, "max-age=60", "", none},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			if c.cc != "" {
				h.Set("Cache-Control", c.cc)
			}
			if c.expires != "" {
				h.Set("Expires", c.expires)
			}
			got := successLifetime(h, c.ttls, now)
			if !got.keep {
				got.ttl = none
			}
			if got.ttl != c.want {
				t.Errorf("fresh for %v, want %v", got.ttl, c.want)
			}
		})
	}
}

func TestVaryStarIsNotKeptUnlessMinTTLSaysSo(t *testing.T) {
	h := http.Header{"Vary": {"*"}, "Cache-Control": {"max-age=60"}}
	if successLifetime(h, ttls{0, 0, time.Hour, false}, time.Time{}).keep {
		t.Error("kept with a MinTTL of 0")
	}
	if !successLifetime(h, ttls{time.Second, time.Second, time.Hour, false}, time.Time{}).keep {
		t.Error("not kept with a MinTTL")
	}
}

func FuzzDirectives(f *testing.F) {
	for _, s := range []string{"max-age=60, no-store", "s-maxage=\"5\"", "max-age=-1", "max-age=99999999999999999999", ",,=,;", "stale-if-error=0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		d := readDirectives([]string{line})
		for _, v := range []time.Duration{d.maxAge, d.sharedAge, d.whileSWR, d.ifError} {
			if v < -1 || v > longest || v > 0 && v%time.Second != 0 {
				t.Errorf("%q: %+v", line, d)
			}
		}
	})
}
