package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"karui/internal/picture"
	"karui/internal/sample"
)

// variantOf is a good WebP of a JPEG, made elsewhere than in karui.
func variantOf(t *testing.T, photo []byte) []byte {
	t.Helper()
	if _, err := exec.LookPath("cwebp"); err != nil {
		t.Skip("cwebp is not installed")
	}
	in := filepath.Join(t.TempDir(), "in.jpg")
	if err := replaceFile(in, string(photo)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cwebp", "-quiet", "-q", "80", in, "-o", "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every kind of answer is judged as it should be, so that a green run means something.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	small := parts(sample.Photo(), 24)
	variant, card := variantOf(t, small[0]), small[1]
	photo := &original{id: "0.jpg", body: small[0], mediaType: "image/jpeg"}
	logo := &original{id: "1.png", body: sample.Logo(), mediaType: "image/png"}
	webp := []string{"image/webp"}
	karui := func(pairs ...string) http.Header {
		h := http.Header{"X-Karui": {"hit"}, "Vary": {"Accept"}, "Content-Type": {"image/webp"}}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	jpeg := http.Header{"Content-Type": {"image/jpeg"}}
	get := request{method: "GET", path: "/images/near/0.jpg", takes: webp}
	with := func(f func(q *request)) request { q := get; f(&q); return q }
	plain := with(func(q *request) { q.takes = nil })
	ranged := with(func(q *request) { q.part = "bytes=0-9" })
	personalPage := request{method: "GET", path: cardPath, private: true}
	own := func(n uint64) http.Header {
		return http.Header{"Content-Type": {"image/jpeg"}, "Set-Cookie": {fmt.Sprintf("visitor=%d", n)}}
	}
	tests := []struct {
		name   string
		q      request
		status int
		header http.Header
		body   []byte
		want   []reason
	}{
		{"the original", get, 200, jpeg, photo.body, nil},
		{"a variant", get, 200, karui(), variant, nil},
		{"the original to a plain client", plain, 200, jpeg, photo.body, nil},
		{"a variant to a plain client", plain, 200, karui(), variant, []reason{wrongFormat}},
		{"a variant without Vary", get, 200, karui("Vary", "Origin"), variant, []reason{noVary}},
		{"a variant under the wrong type", get, 200, karui("Content-Type", "image/jpeg"), variant, []reason{wrongType}},
		{"the original under the wrong type", get, 200, karui(), photo.body, []reason{wrongType}},
		{"half of the original", get, 200, jpeg, photo.body[:1000], []reason{truncated}},
		{"nothing", get, 200, jpeg, nil, []reason{truncated}},
		{"half of a variant", get, 200, karui(), variant[:len(variant)/2], []reason{truncated}},
		{"a variant with a hole", get, 200, karui(), append(bytes.Clone(variant[:40]), make([]byte, len(variant)-40)...), []reason{wrongPicture}},
		{"a variant of noise", get, 200, karui(), append(bytes.Clone(variant[:20]), bytes.Repeat([]byte{0xa5}, len(variant)-20)...), []reason{undecodable}},
		{"another original", get, 200, http.Header{"Content-Type": {"image/png"}}, logo.body, []reason{wrongPicture}},
		{"a variant of another", with(func(q *request) { q.path = "/images/near/1.png" }), 200, karui(), variant, []reason{wrongPicture}},
		{"a tag of other bytes", get, 200, karui("ETag", `"k-00000000000000000000000000000000"`), variant, []reason{foreignETag}},
		{"an error page", get, 502, http.Header{}, nil, []reason{badStatus}},
		{"a 503 that is not kept", get, 503, http.Header{"X-Karui-Reason": {"origin"}, "Cache-Control": {"no-store"}}, nil, []reason{badStatus}},
		{"a 503 that is kept", get, 503, http.Header{"X-Karui-Reason": {"origin"}, "Cache-Control": {"max-age=5"}}, nil, []reason{kept503, badStatus}},
		{"a 404", get, 404, http.Header{}, nil, []reason{badStatus}},
		{"a 404 where there is nothing", with(func(q *request) { q.missing = true }), 404, http.Header{}, nil, nil},
		{"something where there is nothing", with(func(q *request) { q.missing = true }), 200, jpeg, photo.body, []reason{badStatus}},
		{"a 304 for nothing", get, 304, http.Header{}, nil, []reason{badStatus}},
		{"a 304", with(func(q *request) { q.tags = []string{`"a"`} }), 304, http.Header{}, nil, nil},
		{"HEAD of the original", with(func(q *request) { q.method = "HEAD" }), 200, http.Header{"Content-Type": {"image/jpeg"}, "Content-Length": {fmt.Sprint(len(photo.body))}}, nil, nil},
		{"HEAD with another length", with(func(q *request) { q.method = "HEAD" }), 200, http.Header{"Content-Type": {"image/jpeg"}, "Content-Length": {"5"}}, nil, []reason{truncated}},
		{"HEAD of a variant to a plain client", with(func(q *request) { q.method, q.takes = "HEAD", nil }), 200, karui(), nil, []reason{wrongFormat}},
		{"a part", ranged, 206, http.Header{"Content-Type": {"image/jpeg"}, "Content-Range": {fmt.Sprintf("bytes 0-9/%d", len(photo.body))}}, photo.body[:10], nil},
		{"a part from elsewhere", ranged, 206, http.Header{"Content-Type": {"image/jpeg"}, "Content-Range": {fmt.Sprintf("bytes 0-9/%d", len(photo.body))}}, photo.body[10:20], []reason{wrongPart}},
		{"a part of another length", ranged, 206, http.Header{"Content-Type": {"image/jpeg"}, "Content-Range": {"bytes 0-9/99"}}, photo.body[:10], []reason{wrongPart}},
		{"a part of something never seen", ranged, 206, karui("ETag", `"k-1"`, "Content-Range", "bytes 0-9/100"), photo.body[:10], []reason{unseenPart}},
		{"a part that does not say which", ranged, 206, karui("ETag", `"k-1"`), photo.body[:10], []reason{wrongPart}},
		{"a part that nobody asked for", get, 206, jpeg, photo.body[:10], []reason{badStatus}},
		{"a personal picture", personalPage, 200, own(7), personal(card, 7), nil},
		{"the same once more", personalPage, 200, own(7), personal(card, 7), []reason{sharedCookie}},
		{"one with another's cookie", personalPage, 200, own(9), personal(card, 8), []reason{sharedCookie}},
		{"one that was converted", personalPage, 200, karui(), variant, []reason{sharedCookie}},
		{"half of a personal picture", personalPage, 200, own(10), personal(card, 10)[:100], []reason{truncated}},
	}
	c := newChecker([]*original{photo, logo}, nil, card, picture.New(""))
	for _, test := range tests {
		_, found := c.check(&answer{request: test.q, status: test.status, header: test.header, body: test.body})
		got := map[reason]bool{}
		for _, f := range found {
			got[f.reason] = true
		}
		if reasons := slices.Sorted(maps.Keys(got)); !slices.Equal(reasons, test.want) {
			t.Errorf("%s: %q, want %q: %v", test.name, reasons, test.want, found)
		}
	}
	if c.variants["image/webp"] == 0 {
		t.Error("no variant was counted")
	}
}

// A browser shows what it keeps to whom Vary lets it, and asks with all its tags.
func TestBrowserKeepsByVary(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBrowser(func() time.Time { return now })
	image, other := request{target: "/a", accept: "image/webp"}, request{target: "/a", accept: "*/*"}
	b.put(image, http.Header{"Vary": {"Origin, accept"}, "Cache-Control": {"public, max-age=10"}, "Etag": {`"w"`}}, []byte("webp"))
	if k := b.fresh(image); k == nil || string(k.body) != "webp" {
		t.Error("what is fresh is not used")
	}
	if b.fresh(other) != nil {
		t.Error("Vary is not heeded")
	}
	b.put(other, http.Header{"Cache-Control": {"max-age=20"}, "Etag": {`W/"j"`}}, []byte("jpeg"))
	if k := b.fresh(request{target: "/a", accept: "text/html"}); k == nil || string(k.body) != "jpeg" {
		t.Error("without Vary an answer is not good for everybody")
	}
	now = now.Add(time.Minute)
	if b.fresh(image) != nil || b.fresh(other) != nil {
		t.Error("what is stale is used")
	}
	if tags := b.tags(image); !slices.Equal(tags, []string{`"w"`, `W/"j"`}) {
		t.Errorf("tags %q", tags)
	}
	if k := b.confirmed(image, http.Header{"Etag": {`"j"`}, "Cache-Control": {"max-age=5"}}); k == nil || string(k.body) != "jpeg" {
		t.Error("a 304 confirms what its tag names")
	}
	if b.confirmed(image, http.Header{"Etag": {`"x"`}}) != nil {
		t.Error("a 304 for a tag that nobody has")
	}
	if k := b.fresh(other); k == nil {
		t.Error("what was confirmed is not fresh")
	}
	b.put(request{target: "/b"}, http.Header{"Cache-Control": {"no-store, max-age=5"}}, nil)
	if b.fresh(request{target: "/b"}) != nil {
		t.Error("no-store is not heeded")
	}
	for i := range 2 * maxURLs {
		b.put(request{target: fmt.Sprint(i)}, http.Header{}, nil)
	}
	if len(b.stored) > maxURLs {
		t.Errorf("%d URLs are kept", len(b.stored))
	}
}

// Cuts and errors are excused only where something was done that explains them.
func TestHistoryExcusesWhatItExplains(t *testing.T) {
	h := newHistory()
	at := func(s float64) time.Time { return h.start.Add(time.Duration(s * float64(time.Second))) }
	h.cuts = []*window{{at(10), at(11)}}
	h.outages = []*window{{from: at(20)}}
	for _, test := range []struct {
		from, to    float64
		cut, outage bool
	}{
		{8, 9, false, false},
		{8, 10.5, true, false},
		{10.2, 10.3, true, false},
		{11.4, 13, true, false},
		{11.6, 13, false, false},
		{8, 13, true, false},
		{18, 19, false, false},
		{19, 21, false, true},
		{100, 101, false, true},
	} {
		if got := h.cutAllowed(at(test.from), at(test.to)); got != test.cut {
			t.Errorf("a cut from %v to %v: %v", test.from, test.to, got)
		}
		if got := h.nobodyThere(at(test.from), at(test.to)); got != test.outage {
			t.Errorf("an outage from %v to %v: %v", test.from, test.to, got)
		}
	}
}

// A run that tested nothing proves nothing.
func TestEmptyRunsAreNotGood(t *testing.T) {
	full := func() *Report {
		return &Report{
			Requests: 1000, Faults: []faultSummary{{Name: "restart", Count: 1}}, Variants: map[string]int{"image/webp": 3},
			Operated: operations{Changes: 1, Purges: 1}, Seconds: 60,
			Kinds:    map[string]int{"get": 1, "head": 1, "conditional": 1, "range": 1, "personal": 1, "missing": 1},
			Outcomes: map[outcome]int{gotVariant: 1, gotOriginal: 1, gotNothing: 1},
		}
	}
	if found := full().emptiness(); len(found) > 0 {
		t.Errorf("a full run: %q", found)
	}
	outages := full()
	outages.Faults[0].Name, outages.Excluded = "outage", 300
	if found := outages.emptiness(); len(found) > 0 {
		t.Errorf("a run of outages: %q", found)
	}
	for name, change := range map[string]func(*Report){
		"no faults": func(r *Report) { r.Faults = nil }, "few requests": func(r *Report) { r.Requests = 99 },
		"no variants": func(r *Report) { r.Variants = nil }, "no HEAD": func(r *Report) { r.Kinds["head"] = 0 },
		"no originals": func(r *Report) { r.Outcomes[gotOriginal] = 0 }, "no 304": func(r *Report) { r.Outcomes[gotNothing] = 0 },
		"no swap":         func(r *Report) { r.Faults = append(r.Faults, faultSummary{Name: "api-slow", Count: leastAway}) },
		"no worker hit":   func(r *Report) { r.Faults = append(r.Faults, faultSummary{Name: "kill-workers", Count: 2}) },
		"no change":       func(r *Report) { r.Operated.Changes = 0 },
		"no purge":        func(r *Report) { r.Operated.Purges = 0 },
		"no kill":         func(r *Report) { r.Faults = append(r.Faults, faultSummary{Name: "purge-kill", Count: 2}) },
		"none postponed":  func(r *Report) { r.Faults = append(r.Faults, faultSummary{Name: "dial-defer", Count: 2}) },
		"mostly excluded": func(r *Report) { r.Excluded = 300 },
		"hardly anything but outages, and more than that excluded": func(r *Report) {
			r.Faults[0].Name, r.Excluded = "outage", 600
		},
	} {
		r := full()
		change(r)
		if r.Problems = r.emptiness(); r.Good() {
			t.Errorf("%s: taken for a proof", name)
		}
	}
}

// The same seed means the same faults with the same values.
func TestTimetableFollowsTheSeed(t *testing.T) {
	list := func(seed uint64) (out []string) {
		table := newTimetable(&proof{}, faults(), seed)
		for range 60 {
			deeds, calm := table.next()
			for _, d := range deeds {
				out = append(out, d.name+d.what)
			}
			out = append(out, calm.String())
		}
		return out
	}
	if !slices.Equal(list(1), list(1)) {
		t.Error("one seed, two timetables")
	}
	if slices.Equal(list(1), list(2)) {
		t.Error("two seeds, one timetable")
	}
	all := fmt.Sprint(list(3))
	for _, f := range faults() {
		if !bytes.Contains([]byte(all), []byte(f.name)) {
			t.Errorf("%s never comes", f.name)
		}
	}
}

// Without a corpus there is enough to be drawn, of every kind.
func TestGatherDrawsWhereThereIsNoCorpus(t *testing.T) {
	files, err := gather(filepath.Join(t.TempDir(), "none"), 40, 1)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, f := range files {
		kinds[f.mediaType]++
		if f.mediaType == "" || len(f.body) == 0 || f.id == "" {
			t.Errorf("%+v", f.name)
		}
	}
	if len(files) < 15 || len(kinds) != 3 {
		t.Errorf("%d files: %v", len(files), kinds)
	}
}

func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{{"-seed", "x"}, {"-faults", "earthquake"}, {"-duration", "0s"}, {"more"}, {"-no-such-flag"}} {
		var out bytes.Buffer
		if code := run(t.Context(), args, &out, &out); code != 2 || out.Len() == 0 {
			t.Errorf("%q: exit code %d, %s", args, code, &out)
		}
	}
}
