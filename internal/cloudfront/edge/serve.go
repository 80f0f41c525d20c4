package edge

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// conditions are the headers that make a request ask for less than the object.
var conditions = []string{"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range"}

func (v *visit) conditional() bool {
	return slices.ContainsFunc(conditions, func(name string) bool { return v.header.Get(name) != "" })
}

// lookup answers from the store if it may, and from the origins else.
func (v *visit) lookup() {
	e, now := v.e, v.e.now()
	o := e.store.get(v.key)
	if v.r.Method == http.MethodHead {
		// A whole object answers HEAD as well.
		if whole := e.store.get(v.keyFor(http.MethodGet)); whole != nil && (whole.fresh(now) || now.Before(whole.quiet)) {
			o = whole
		}
	}
	switch {
	case o == nil:
	case o.fresh(now):
		v.hit(o)
		return
	case now.Before(o.quiet):
		v.event.Stale = true
		v.hit(o)
		return
	case o.whileRefreshing(now):
		v.refreshBehind(o)
		v.event.Stale = true
		v.hit(o)
		return
	case o.failed():
		o = nil
	}
	// Documented: without an object the viewer's conditions and range go to the
	// origin, so that the answer is only for this one.
	v.fetch(o, o == nil && v.conditional())
}

// newFlight is a request to the origins on behalf of this visit.
func (v *visit) newFlight(prior *object) *flight {
	return &flight{
		key: v.key, distribution: v.deployment.ID, target: v.target, config: v.deployment.Config,
		origin: v.behavior.Target, errand: v.errand, ttls: v.recipe.ttls, prior: prior,
		store: cachedMethod(v.behavior, v.r.Method),
	}
}

// refreshBehind revalidates in the background, once at a time.
func (v *visit) refreshBehind(o *object) {
	e := v.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flights[v.key] == nil && !e.closed {
		e.begin(v.newFlight(o), true, 0)
	}
}

// pass sends a request through that is never cached.
func (v *visit) pass() {
	if v.r.ContentLength != 0 {
		v.errand.body, v.errand.length = v.r.Body, v.r.ContentLength
	}
	v.fetch(nil, true)
}

// fetch waits for an answer of the origins, its own or one on its way.
func (v *visit) fetch(prior *object, alone bool) {
	e := v.e
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		v.event.Aborted = "edge closed"
		return
	}
	f := e.flights[v.key]
	joined := f != nil && !alone
	switch {
	case joined:
		f.viewers++
	case !alone:
		// The flight that was under way when the store was looked at may have
		// landed since.
		if o := e.store.get(v.key); o != nil && o != prior && o.fresh(e.now()) {
			e.mu.Unlock()
			v.hit(o)
			return
		}
		fallthrough
	default:
		f = v.newFlight(prior)
		e.begin(f, !alone, 1)
	}
	e.mu.Unlock()

	again := v.await(f, joined)
	e.leave(f, !again && v.event.Aborted == "" && f.kept)
	if again {
		// Documented: what may not be shared is fetched by each for itself.
		v.fetch(prior, true)
	}
}

// await serves what a flight brings. It tells whether this visit has to fetch for
// itself.
func (v *visit) await(f *flight, joined bool) (again bool) {
	if !joined {
		defer f.abandonLead()
	}
	select {
	case <-f.landed:
	case <-v.r.Context().Done():
		v.event.Aborted = "viewer left"
		return false
	}
	if joined && !f.shared {
		return true
	}
	o := f.object
	if o == nil {
		v.event.Aborted = "edge closed"
		return joined // the others of a flight left just now: this one did not
	}
	var rd *reader
	if joined {
		var ok bool
		if rd, ok = o.body.open(); !ok {
			return true
		}
		v.event.Joined = true
	} else if rd = f.takeLead(); rd == nil {
		if rd, _ = o.body.open(); rd == nil {
			v.event.Aborted = "body lost"
			return false
		}
	}
	defer rd.close()
	v.event.Aborted = ""
	v.event.Result, v.event.Stale = f.result, f.stale
	v.event.Tries, v.event.FailedOver = f.tries, failedOver(f.tries)
	v.write(o, rd)
	return false
}

// hit answers from the store.
func (v *visit) hit(o *object) {
	rd, ok := o.body.open()
	if !ok {
		v.event.Aborted = "body lost"
		return
	}
	defer rd.close()
	v.event.Result = Hit
	if o.failed() {
		v.event.Result = Error
	}
	v.write(o, rd)
}

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
