package warm

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"karui/convert/header"
	"karui/proxy/rules"
)

// heads makes the header of an answer from its fields.
func heads(fields ...string) http.Header {
	h := http.Header{}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		h.Add(name, value)
	}
	return h
}

func TestJudge(t *testing.T) {
	webp := Form{header.WebP}
	unreached := errors.New("connection refused")
	for name, c := range map[string]struct {
		form   Form
		answer answer
		next   next
		want   judgement
		reason string
	}{
		"hit": {
			webp,
			answer{status: 200, header: heads("X-Karui: hit", "X-Karui-Saved: 900", "Content-Type: image/webp"), bytes: 100, sniffed: header.WebP},
			settled,
			judgement{outcome: Variant, ready: true, before: 1000, after: 100},
			"",
		},
		"wait": {
			webp,
			answer{status: 200, header: heads("X-Karui: wait", "Content-Type: image/webp"), bytes: 100, sniffed: header.WebP},
			settled,
			judgement{outcome: Variant, after: 100},
			"",
		},
		"kept": {
			webp,
			answer{status: 200, header: heads("X-Karui: original", "X-Karui-Kept: not_smaller"), bytes: 100, sniffed: header.JPEG},
			settled,
			judgement{outcome: Kept, kept: "not_smaller", ready: true, before: 100, after: 100},
			"",
		},
		"original": {
			Original,
			answer{status: 200, header: heads("X-Karui: original", "X-Karui-Kept: not_accepted"), bytes: 100, sniffed: header.JPEG},
			settled,
			judgement{outcome: Kept, kept: "not_accepted", ready: true, before: 100, after: 100},
			"",
		},
		"bypass": {
			webp,
			answer{status: 200, header: heads("X-Karui: bypass"), bytes: 7},
			settled,
			judgement{outcome: Bypassed, before: 7, after: 7},
			"",
		},
		"miss":      {webp, answer{status: 200, header: heads("X-Karui: miss"), bytes: 7, sniffed: header.JPEG}, again, judgement{}, "still the original"},
		"stale":     {webp, answer{status: 200, header: heads("X-Karui: stale")}, again, judgement{}, "past its lifetime"},
		"changed":   {webp, answer{status: 200, header: heads("X-Karui: hit", "Content-Type: image/webp", `Etag: "k-00"`), sniffed: header.WebP}, again, judgement{}, "not those of its ETag"},
		"odd":       {webp, answer{status: 200, header: heads("X-Karui: hut")}, failed, judgement{}, "X-Karui: hut"},
		"lies":      {webp, answer{status: 200, header: heads("X-Karui: hit", "Content-Type: image/webp"), sniffed: header.JPEG}, failed, judgement{}, "the answer is jpeg, but webp was asked for"},
		"mistyped":  {webp, answer{status: 200, header: heads("X-Karui: hit", "Content-Type: image/jpeg"), sniffed: header.WebP}, failed, judgement{}, `says that it is "image/jpeg"`},
		"broken":    {webp, answer{status: 200, header: heads("X-Karui: hit"), bytes: 5, broken: unreached}, again, judgement{}, "broke off after 5 bytes"},
		"unreached": {webp, answer{unreached: unreached}, stressed, judgement{}, "could not be reached"},
		"latency":   {webp, answer{status: 503, header: heads("X-Karui-Reason: latency")}, stressed, judgement{}, "503 latency"},
		"disk":      {webp, answer{status: 503, header: heads("X-Karui-Reason: disk")}, stressed, judgement{}, "503 disk"},
		"shed":      {webp, answer{status: 503, header: heads("X-Karui-Reason: shed")}, stressed, judgement{}, "503 shed"},
		"drain":     {webp, answer{status: 503, header: heads("X-Karui-Reason: drain")}, stressed, judgement{}, "503 drain"},
		"origin":    {webp, answer{status: 503, header: heads("X-Karui-Reason: origin")}, unserved, judgement{}, "503 origin"},
		"panic":     {webp, answer{status: 503, header: heads("X-Karui-Reason: panic")}, stressed, judgement{}, "503 panic"},
		"other 503": {webp, answer{status: 503}, stressed, judgement{}, "not karui"},
		"route":     {webp, answer{status: 503, header: heads("X-Karui-Reason: route")}, hopeless, judgement{}, "does not know the site"},
		"secret":    {webp, answer{status: 503, header: heads("X-Karui-Reason: secret")}, hopeless, judgement{}, "edge.secrets"},
		"gone":      {webp, answer{status: 404, header: heads("X-Karui: bypass")}, missing, judgement{}, "no such file (404)"},
		"moved":     {webp, answer{status: 301, header: heads("Location: /b.jpg")}, failed, judgement{}, `sends viewers to "/b.jpg"`},
		"forbidden": {webp, answer{status: 403, header: heads()}, failed, judgement{}, "403 Forbidden"},

		// Without X-Karui.
		"quiet hit": {
			webp,
			answer{status: 200, header: heads("Etag: "+rules.DigestOf(nil).ETag(), "Content-Type: image/webp"), bytes: 9, sniffed: header.WebP, digest: rules.DigestOf(nil)},
			settled,
			judgement{outcome: Variant, ready: true, after: 9},
			"",
		},
		"quiet kept": {
			webp,
			answer{status: 200, header: heads("Vary: Accept", "Cache-Control: public, max-age=86400"), bytes: 9, sniffed: header.JPEG},
			settled,
			judgement{outcome: Kept, ready: true, before: 9, after: 9},
			"",
		},
		"quiet miss": {webp, answer{status: 200, header: heads("Vary: Accept", "Cache-Control: public, max-age=10"), sniffed: header.JPEG}, again, judgement{}, "still the original"},
		"quiet original": {
			Original,
			answer{status: 200, header: heads("Vary: Accept", "Cache-Control: public, max-age=10"), bytes: 9, sniffed: header.JPEG},
			settled,
			judgement{outcome: Kept, ready: true, before: 9, after: 9},
			"",
		},
		"quiet private": {webp, answer{status: 200, header: heads("Vary: Accept", "Cache-Control: private"), sniffed: header.JPEG}, settled, judgement{outcome: Bypassed}, ""},
		"quiet bypass":  {webp, answer{status: 200, header: heads("Cache-Control: max-age=5"), sniffed: header.JPEG}, settled, judgement{outcome: Bypassed}, ""},
		"quiet page":    {webp, answer{status: 200, header: heads("Vary: Accept", "Cache-Control: max-age=10")}, settled, judgement{outcome: Bypassed}, ""},
	} {
		if c.answer.header == nil {
			c.answer.header = http.Header{}
		}
		got := judge(c.answer, c.form, 10*time.Second)
		if !strings.Contains(got.reason, c.reason) || (got.reason == "") != (c.reason == "") {
			t.Errorf("%s: %q", name, got.reason)
		}
		c.want.next, c.want.reason = c.next, got.reason
		if got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestPressure(t *testing.T) {
	now := time.Unix(1000, 0)
	p := newPressure()
	if p.allowed(now, 4) != 4 || p.bears(now) != 0 {
		t.Error("a new one is not open")
	}
	var pauses []time.Duration
	for range 9 {
		began := now
		now = now.Add(time.Millisecond)
		p.bad(began, now, "latency")
		// The others that were under way are no news.
		p.bad(began, now, "latency")
		if p.allowed(now, 4) != 0 {
			t.Error("no pause")
		}
		pauses = append(pauses, p.until.Sub(now))
		now = p.until
		if p.allowed(now, 4) != 1 {
			t.Error("more than one after a pause")
		}
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}
	for i, w := range want {
		if pauses[i] != w*time.Second {
			t.Errorf("pause %d is %s", i, pauses[i])
		}
	}
	if p.share != slowest || p.bears(now) < 3*time.Minute {
		t.Errorf("%v %s", p.share, p.bears(now))
	}
	p.well(now)
	if p.allowed(now, 4) != 4 || p.bears(now) != 0 || p.share != slowest+recovery {
		t.Errorf("%+v", p)
	}
	for range 100 {
		p.well(now)
	}
	if p.share != 1 {
		t.Errorf("%v", p.share)
	}
}
