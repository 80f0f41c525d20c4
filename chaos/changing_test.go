package main

import (
	"bytes"
	"fmt"
	"image"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"karui/internal/picture"
)

// changed are changing pictures with two versions each, of which the first was replaced
// at the time that is given back.
func changed(t *testing.T, ago time.Duration) (list []*changing, replaced time.Time) {
	t.Helper()
	list, err := newChanging()
	if err != nil {
		t.Fatal(err)
	}
	replaced = time.Now().Add(-ago)
	for _, c := range list {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		c.versions[0].replaced = replaced
	}
	return list, replaced
}

// Versions are told apart by size and by length, and each seventh is broken.
func TestVersionsDiffer(t *testing.T) {
	list, err := newChanging()
	if err != nil {
		t.Fatal(err)
	}
	judge := picture.New("")
	for _, c := range list {
		sizes, bodies := map[image.Point]bool{}, map[string]bool{}
		for range 14 {
			v := c.present()
			if sizes[v.size] || bodies[string(v.body)] || picture.Format(v.body) != c.mediaType {
				t.Errorf("%s: version %d is like another, or no %s", c.id, v.number, c.mediaType)
			}
			sizes[v.size], bodies[string(v.body)] = true, true
			r, err := judge.Render(v.body)
			if whole := v.number%7 != 6; whole && (err != nil || r.Size() != v.size) {
				t.Errorf("%s: version %d: %v, size %v, want %v", c.id, v.number, err, r.Size(), v.size)
			}
			if err := c.change(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A version may be answered for as long as caches may keep it, and after a purge only to
// requests that began before its end.
func TestOldVersions(t *testing.T) {
	list, replaced := changed(t, time.Hour)
	for _, c := range list {
		old, present := c.versions[0], c.versions[1]
		for after, want := range map[time.Duration]bool{-time.Second: false, c.keeps: false, c.keeps + time.Second: true} {
			if why, aged := c.tooOld(old, replaced.Add(after), true); (why != "") != want || aged != want {
				t.Errorf("%s: %v after the change: %q", c.id, after, why)
			}
		}
		purged := replaced.Add(time.Second)
		c.purging()(purged.Add(-time.Second/2), true)
		for direct, want := range map[bool]bool{false: false, true: true} { // the edge is still to come
			if why, aged := c.tooOld(old, purged.Add(-time.Second/4), direct); (why != "") != want || aged {
				t.Errorf("%s: asked for directly %v: %q", c.id, direct, why)
			}
		}
		c.purging()(purged, false)
		for after, want := range map[time.Duration]bool{-time.Millisecond: false, 0: false, time.Millisecond: true} {
			if why, aged := c.tooOld(old, purged.Add(after), false); (why != "") != want || aged {
				t.Errorf("%s: %v after the purge: %q", c.id, after, why)
			}
		}
		if why, _ := c.tooOld(present, purged.Add(time.Hour), true); why != "" {
			t.Errorf("%s: the present version: %q", c.id, why)
		}
		// A purge that was asked for before a change says nothing about it.
		done := c.purging()
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		done(time.Now().Add(-time.Second), false)
		if why, _ := c.tooOld(present, time.Now(), true); why != "" {
			t.Errorf("%s: changed while it was purged: %q", c.id, why)
		}
	}
}

// Answers with an old version are found, in whatever way they come.
func TestOldPicturesAreFound(t *testing.T) {
	list, replaced := changed(t, time.Minute)
	c := newChecker(nil, list, nil, picture.New(""))
	turning := list[0]
	old, present := turning.versions[0], turning.versions[1]
	variant := variantOf(t, old.body)
	get := request{method: "GET", path: turning.path(nearPath), accept: "image/webp", takes: []string{"image/webp"}}
	head, ranged, purged := get, get, replaced.Add(time.Second)
	head.method, ranged.part = "HEAD", "bytes=0-9"
	jpeg, webp := http.Header{"Content-Type": {"image/jpeg"}}, http.Header{"Content-Type": {"image/webp"}, "Etag": {`"w"`}}
	with := func(h http.Header, name, value string) http.Header {
		h = h.Clone()
		h.Set(name, value)
		return h
	}
	length := func(v *version) http.Header { return with(jpeg, "Content-Length", fmt.Sprint(len(v.body))) }
	part := func(h http.Header, whole []byte) http.Header {
		return with(h, "Content-Range", fmt.Sprintf("bytes 0-9/%d", len(whole)))
	}
	tests := []struct {
		name   string
		q      request
		status int
		header http.Header
		body   []byte
		old    bool
	}{
		{"the old variant", get, 200, webp, variant, true},
		{"the same once more", get, 200, webp, variant, true},
		{"the old original", get, 200, jpeg, old.body, true},
		{"the new original", get, 200, jpeg, present.body, false},
		{"HEAD of the old original", head, 200, length(old), nil, true},
		{"HEAD of the new original", head, 200, length(present), nil, false},
		{"HEAD of the old variant", head, 200, webp, nil, true},
		{"a part of the old original", ranged, 206, part(jpeg, old.body), old.body[:10], true},
		{"a part of the new original", ranged, 206, part(jpeg, present.body), present.body[:10], false},
		{"a part of the old variant", ranged, 206, part(webp, variant), variant[:10], true},
	}
	for _, late := range []bool{false, true} {
		for _, test := range tests {
			a := &answer{request: test.q, status: test.status, header: test.header, body: test.body, began: purged.Add(-time.Millisecond)}
			var want []reason
			if late {
				a.began = purged.Add(time.Millisecond)
				if test.old {
					want = []reason{oldPicture}
				}
			}
			_, found := c.check(a)
			var got []reason
			for _, f := range found {
				got = append(got, f.reason)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, late %v: %v, want %v", test.name, late, found, want)
			}
			a.own = true
			if _, found := c.check(a); len(found) > 0 {
				t.Errorf("%s out of the client's own cache: %v", test.name, found)
			}
		}
		if !late {
			turning.purged = append(turning.purged, purgeMark{purged, 1, false})
		}
	}
}

// The edge may answer with old pictures while there is no origin, but not with purged ones.
func TestAnOutageExcusesAge(t *testing.T) {
	list, _ := changed(t, 2*time.Hour)
	c := newChecker(nil, list, nil, picture.New(""))
	turning := list[0]
	look := func() bool {
		a := &answer{
			request: request{method: "GET", path: turning.path(farPrefix)}, status: 200, began: time.Now(),
			header: http.Header{"Content-Type": {turning.mediaType}}, body: turning.versions[0].body,
		}
		_, found := c.check(a)
		return len(found) == 0
	}
	if look() {
		t.Error("an old picture is not found")
	}
	c.nobodyThere = func(time.Time, time.Time) bool { return true }
	if !look() {
		t.Error("an outage does not excuse age")
	}
	turning.purging()(time.Now().Add(-time.Second), false)
	if look() {
		t.Error("an outage excuses a picture that was purged")
	}
}

// The origin confirms the present version alone, by tag or by date.
func TestTheOriginAnswersConditions(t *testing.T) {
	list, _ := changed(t, time.Minute)
	o := &origin{files: map[string]*original{}, changing: map[string]*changing{}}
	d := &door{origin: o}
	d.behave(trouble{})
	for _, c := range list {
		o.changing[c.id] = c
		for _, v := range c.all() {
			r := httptest.NewRequest("GET", c.path(nearPath)+"?v=1", nil)
			if tag := v.header.Get("ETag"); tag != "" {
				r.Header.Set("If-None-Match", tag)
			}
			if !v.modified.IsZero() {
				r.Header.Set("If-Modified-Since", v.modified.Format(http.TimeFormat))
			}
			want := http.StatusOK
			if v == c.present() && len(r.Header) > 0 {
				want = http.StatusNotModified
			}
			w := httptest.NewRecorder()
			d.ServeHTTP(w, r)
			if w.Code != want || want == 200 && !bytes.Equal(w.Body.Bytes(), c.present().body) {
				t.Errorf("%s, asked about version %d: %d, want %d", c.id, v.number, w.Code, want)
			}
		}
	}
}
