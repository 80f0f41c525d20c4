package edge

import (
	"net/http"
	"testing"
	"time"
)

// validating answers 304 to its own ETag, and only to that.
func validating(body, etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == etag {
			tell(w, 304, "", "Cache-Control: max-age=60", "Etag: "+etag)
			return
		}
		tell(w, 200, body, "Cache-Control: max-age=60", "Etag: "+etag, "Last-Modified: Mon, 02 Jan 2006 15:04:05 GMT")
	}
}

func TestA304RefreshesTheObject(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(validating("variant", `"k-1"`))
		l.want("/img/a", "variant", Miss)
		pass(60 * time.Second)
		s := l.want("/img/a", "variant", RefreshHit)
		if s.status != 200 || s.header.Get("Age") != "0" {
			t.Errorf("%d, Age %s", s.status, s.header.Get("Age"))
		}
		pass(59 * time.Second)
		l.want("/img/a", "variant", Hit)
		l.asked(2, 0)
	})
}

func TestRevalidationUsesTheETagAndDateOfWhoeverAnsweredBefore(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(validating("variant", `"k-1"`))
		l.origin.handle(validating("original", `"o-1"`))
		l.want("/img/a", "variant", Miss)
		pass(60 * time.Second)

		l.karui.down(refused)
		l.want("/img/a", "original", Miss)
		r := l.origin.last(t)
		if r.Header.Get("If-None-Match") != `"k-1"` || r.Header.Get("If-Modified-Since") == "" {
			t.Errorf("the origin was asked with %v", r.Header)
		}

		pass(60 * time.Second)
		l.karui.down(nil)
		l.want("/img/a", "variant", Miss)
		if r := l.karui.last(t); r.Header.Get("If-None-Match") != `"o-1"` {
			t.Errorf("karui was asked with %v", r.Header)
		}
	})
}

// Whoever answers 304 to an ETag that is not its own makes the edge go on with the
// other one's bytes: the double must show that, or the proof would miss it.
func TestA304ToAForeignETagKeepsTheWrongBytes(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.down(refused)
		l.origin.handle(validating("original", `"o-1"`))
		l.want("/img/a", "original", Miss)
		pass(60 * time.Second)
		l.karui.down(nil)
		l.karui.says(304, "", "Cache-Control: max-age=86400")
		l.want("/img/a", "original", RefreshHit)
		pass(time.Hour)
		l.want("/img/a", "original", Hit)
	})
}

func TestRevalidationDoesNotCarryTheViewersConditions(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(validating("variant", `"k-1"`))
		l.want("/img/a", "variant", Miss)
		pass(60 * time.Second)
		s := l.get("/img/a", `If-None-Match: "viewers"`, "Range: bytes=0-1")
		if r := l.karui.last(t); r.Header.Get("If-None-Match") != `"k-1"` || r.Header.Get("Range") != "" {
			t.Errorf("karui was asked with %v", r.Header)
		}
		if s.status != 206 || s.body != "va" {
			t.Errorf("%d %q", s.status, s.body)
		}
	})
}

func TestConditionsOfAViewerAreJudgedAgainstTheObject(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(validating("variant", `"k-1"`))
		l.want("/img/a", "variant", Miss)
		for _, c := range []struct {
			line   string
			status int
		}{
			{`If-None-Match: "k-1"`, 304},
			{`If-None-Match: W/"k-1"`, 304},
			{`If-None-Match: "x", "k-1"`, 304},
			{"If-None-Match: *", 304},
			{`If-None-Match: "o-1"`, 200},
			{"If-Modified-Since: Mon, 02 Jan 2006 15:04:05 GMT", 304},
			{"If-Modified-Since: Mon, 02 Jan 2006 15:04:04 GMT", 200},
		} {
			s := l.get("/img/a", c.line)
			if s.status != c.status || s.err != nil || s.cache() != Hit || c.status == 304 && s.body != "" {
				t.Errorf("%s: %d %q, want %d", c.line, s.status, s.body, c.status)
			}
		}
		l.asked(1, 0)
	})
}

// Without an object the viewer's own conditions go to the origin.
func TestConditionsGoToTheOriginOnAMiss(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(validating("variant", `"k-1"`))
		if s := l.get("/img/a", `If-None-Match: "k-1"`); s.status != 304 || s.cache() != Miss {
			t.Errorf("%d %s", s.status, s.cache())
		}
		l.want("/img/a", "variant", Miss) // the 304 was not kept
		l.want("/img/b", "variant", Miss, `If-None-Match: "other"`)
		l.want("/img/b", "variant", Hit) // a 200 is
	})
}
