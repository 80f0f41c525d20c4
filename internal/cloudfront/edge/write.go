package edge

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// write sends an object to the viewer as it grows.
func (v *visit) write(o *object, rd *reader) {
	h := v.w.Header()
	v.fillHeader(h, o)
	v.event.Member, v.event.ContentType = o.member, o.header.Get("Content-Type")

	status, begin, length := o.status, int64(0), o.length
	size, whole := o.body.length()
	if whole && v.r.Method != http.MethodHead && length < 0 {
		length = size
	}
	switch {
	case status == http.StatusOK && v.unchanged(o):
		status = http.StatusNotModified
		h.Del("Content-Length")
	case status == http.StatusOK && whole && v.r.Method == http.MethodGet && (v.event.Result == Hit || v.event.Result == RefreshHit):
		// Documented: a range is cut from an object that was there; whoever brings
		// it in gets the whole.
		if first, n, ok := v.rangeOf(o, size); ok {
			status, begin, length = http.StatusPartialContent, first, n
			h.Set("Content-Range", "bytes "+strconv.FormatInt(first, 10)+"-"+strconv.FormatInt(first+n-1, 10)+"/"+strconv.FormatInt(size, 10))
		}
	}
	bodyless := v.r.Method == http.MethodHead || status == http.StatusNotModified || status == http.StatusNoContent
	if length >= 0 && status != http.StatusNotModified && status != http.StatusNoContent {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	v.event.Status = status
	v.deadline()
	v.w.WriteHeader(status)
	if bodyless {
		return
	}
	if begin > 0 {
		rd.seek(begin)
	}
	if !whole {
		_ = v.rc.Flush() // the head goes out before the body is there; a viewer that left is noticed below
	}
	v.copy(rd, length)
}

// copy sends up to length bytes (all, if negative).
func (v *visit) copy(rd *reader, length int64) {
	ctx := v.r.Context()
	for length != 0 {
		data, more, err := rd.next(ctx)
		if err == io.EOF {
			if length > 0 {
				v.event.Aborted = "the object is shorter than announced"
			}
			return
		}
		if err != nil {
			if ctx.Err() != nil {
				v.event.Aborted = "viewer left"
				return
			}
			v.event.Aborted = "origin: " + err.Error()
			return
		}
		if length > 0 {
			data = data[:min(int64(len(data)), length)]
			length -= int64(len(data))
		}
		v.deadline()
		n, err := v.w.Write(data)
		v.event.Bytes += int64(n)
		if err == nil && !more {
			err = v.rc.Flush()
		}
		if err != nil {
			v.event.Aborted = "viewer: " + err.Error()
			return
		}
		rd.read(n)
	}
}

func (v *visit) deadline() {
	_ = v.rc.SetWriteDeadline(time.Now().Add(v.e.viewerWait)) // writers without deadlines need none
}

// fillHeader is what a viewer gets of an object's header.
func (v *visit) fillHeader(h http.Header, o *object) {
	for name, values := range o.header {
		h[name] = slices.Clone(values)
	}
	jar := v.recipe.keyJar
	if !jar.all && len(jar.names) == 0 && !v.recipe.addJar.all && len(v.recipe.addJar.names) == 0 {
		h.Del("Set-Cookie") // documented, unless cookies are forwarded
	}
	v.trimVary(h)
	if v.event.Result == Hit || v.event.Result == RefreshHit || v.event.Joined {
		h.Set("Age", strconv.FormatInt(int64((v.e.now().Sub(o.stored)+o.age)/time.Second), 10))
	}
	h.Del("Content-Length")
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // keeps net/http from guessing one
	}
	v.stamp(h)
}

// trimVary keeps of Vary what is documented: Accept-Encoding, Cookie, the headers
// in the key, and *.
func (v *visit) trimVary(h http.Header) {
	var kept []string
	for _, line := range h["Vary"] {
		for _, name := range strings.Split(line, ",") {
			name = strings.TrimSpace(name)
			switch low := strings.ToLower(name); {
			case low == "":
			case low == "*", low == "accept-encoding", low == "cookie", v.recipe.keyHeaders.has(low), v.recipe.addHeaders.has(low):
				kept = append(kept, name)
			}
		}
	}
	h.Del("Vary")
	if len(kept) > 0 {
		h.Set("Vary", strings.Join(kept, ", "))
	}
}

// unchanged tells whether the viewer has this representation already.
func (v *visit) unchanged(o *object) bool {
	etag := strings.TrimPrefix(o.header.Get("Etag"), "W/")
	if lines := v.header["If-None-Match"]; len(lines) > 0 {
		if etag == "" {
			return false // documented: ignored without an ETag
		}
		for _, tag := range strings.Split(strings.Join(lines, ","), ",") {
			if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == etag || tag == "*" {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(v.header.Get("If-Modified-Since"))
	modified, err2 := http.ParseTime(o.header.Get("Last-Modified"))
	return err == nil && err2 == nil && !modified.After(since)
}

// rangeOf reads a range of a whole body. Several ranges, ill-formed ones and those
// outside give the whole (documented for the first two).
func (v *visit) rangeOf(o *object, size int64) (first, length int64, ok bool) {
	if condition := v.header.Get("If-Range"); condition != "" {
		if condition != o.header.Get("Etag") && condition != o.header.Get("Last-Modified") || strings.HasPrefix(condition, "W/") {
			return 0, 0, false
		}
	}
	spec, found := strings.CutPrefix(v.header.Get("Range"), "bytes=")
	from, to, dash := strings.Cut(spec, "-")
	if !found || !dash || size == 0 {
		return 0, 0, false
	}
	last := size - 1
	if from == "" {
		n, err := strconv.ParseUint(to, 10, 62)
		if err != nil || n == 0 {
			return 0, 0, false
		}
		first = max(size-int64(n), 0)
		return first, size - first, true
	}
	n, err := strconv.ParseUint(from, 10, 62)
	if err != nil || int64(n) >= size {
		return 0, 0, false
	}
	if to != "" {
		m, err := strconv.ParseUint(to, 10, 62)
		if err != nil || m < n {
			return 0, 0, false
		}
		last = min(last, int64(m))
	}
	return int64(n), last - int64(n) + 1, true
}
