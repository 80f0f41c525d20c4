package edge

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"karui/internal/cloudfront"
)

// Documented limits of requests, in bytes.
const (
	maxRequest = 20480
	maxURL     = 8192
)

// visit is one request of a viewer on its way.
type visit struct {
	e     *Edge
	w     http.ResponseWriter
	r     *http.Request
	rc    *http.ResponseController
	event Event

	deployment  cloudfront.Deployment
	behavior    cloudfront.Behavior
	recipe      recipe
	path, query string      // raw, after the function
	header      http.Header // the viewer's with Host, after the function
	key         string
	target      string // path and keyed query
	errand      errand
}

// ServeHTTP answers one viewer.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	e.wg.Add(1)
	e.mu.Unlock()
	defer e.wg.Done()
	v := &visit{e: e, w: w, r: r, rc: http.NewResponseController(w)}
	v.event = Event{ID: newRequestID(), Time: e.now(), Method: r.Method, Target: r.RequestURI}
	defer func() {
		v.event.Took = e.now().Sub(v.event.Time)
		e.observe(v.event)
		if v.event.Aborted != "" {
			panic(http.ErrAbortHandler) // the server's way to cut a connection, so that nobody keeps half an image
		}
	}()
	v.answer()
}

func (v *visit) answer() {
	e, r := v.e, v.r
	var ok bool
	if v.deployment, ok = e.deployment(r.Host); !ok || !v.deployment.Config.Enabled {
		v.refuse(http.StatusForbidden, whyHost, Error)
		return
	}
	v.event.Distribution = v.deployment.ID
	if !v.split() {
		return
	}
	v.behavior = behaviorFor(v.deployment.Config, v.path)
	v.event.Pattern = v.behavior.Pattern
	if !v.admit() || !v.runFunction() {
		return
	}
	if v.path == "/" && v.deployment.Config.DefaultRootObject != "" {
		v.path += v.deployment.Config.DefaultRootObject
	}
	v.recipe = recipeFor(e.control, v.behavior)
	v.event.Accept = v.header.Get("Accept")
	v.target = v.path
	if q := pickQuery(v.query, v.recipe.keyQuery); q != "" {
		v.target += "?" + q
	}
	v.key = v.keyFor(r.Method)
	v.errand = v.newErrand()
	e.applyInvalidations(v.deployment.ID)
	if !cachedMethod(v.behavior, r.Method) {
		v.pass()
		return
	}
	v.lookup()
}

func (v *visit) keyFor(method string) string {
	return v.recipe.key(v.deployment.ID, method, v.path, v.query, v.header)
}

// deployment is the distribution of a host as it is deployed now.
func (e *Edge) deployment(host string) (cloudfront.Deployment, bool) {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if d, ok := e.control.DeployedAt(strings.ToLower(host)); ok {
		return d, true
	}
	return e.control.Deployment(e.distribution)
}

// split takes the raw target apart and checks its size.
func (v *visit) split() bool {
	uri := v.r.RequestURI
	if !strings.HasPrefix(uri, "/") { // absolute form
		if _, rest, found := strings.Cut(uri, "://"); found {
			slash := strings.IndexAny(rest, "/?")
			uri = "/"
			if slash >= 0 {
				uri = "/" + strings.TrimPrefix(rest[slash:], "/")
			}
		}
	}
	v.path, v.query, _ = strings.Cut(uri, "?")
	v.header = v.r.Header.Clone()
	v.header.Set("Host", v.r.Host)
	size := len(v.r.Method) + len(uri) + len("  HTTP/1.1\r\n\r\n")
	for name, values := range v.header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	status := 0
	switch {
	case len(uri) > maxURL:
		status = http.StatusRequestURITooLong
	case size > maxRequest:
		status = http.StatusRequestEntityTooLarge
	case uri == "*":
		status = http.StatusBadRequest
	}
	if status != 0 {
		v.w.Header().Set("Connection", "close") // documented
		v.refuse(status, whyLong, Error)
		return false
	}
	return true
}

// admit applies what a behaviour demands of requests.
func (v *visit) admit() bool {
	if v.r.TLS == nil {
		switch v.behavior.ViewerProtocol {
		case "https-only":
			v.refuse(http.StatusForbidden, whyTLS, Error)
			return false
		case "redirect-to-https":
			status := http.StatusMovedPermanently
			if v.r.Method != http.MethodGet && v.r.Method != http.MethodHead {
				status = http.StatusTemporaryRedirect
			}
			v.event.Result = Redirect
			v.own(status, http.Header{"Location": {"https://" + v.r.Host + v.r.RequestURI}, "Content-Type": {"text/html"}}, nil)
			return false
		}
	}
	if !allowed(v.behavior, v.r.Method) {
		v.refuse(http.StatusForbidden, whyMethod, Error)
		return false
	}
	if v.r.ContentLength != 0 && (v.r.Method == http.MethodGet || v.r.Method == http.MethodHead) {
		v.refuse(http.StatusForbidden, whyBody, Error) // documented
		return false
	}
	return true
}

// dropped are the viewer's headers that never go on. Documented, but for the
// hop-by-hop ones, which HTTP forbids.
var dropped = []string{
	"Connection", "Expect", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade", "X-Forwarded-Proto", "X-Real-Ip", "Content-Length", "Host",
}

// legacyDropped are dropped as well unless chosen, with the older settings, which
// let all other headers through.
var legacyDropped = []string{
	"Accept", "Accept-Charset", "Accept-Language", "Authorization", "Referer", "X-Http-Method-Override",
}

// always are sent whatever the policies say: documented for conditions, ranges and
// the viewer's address.
var always = []string{
	"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range", "X-Forwarded-For",
	"Content-Type", "Content-Encoding", "Via",
}

// newErrand is the request that goes to the origin.
func (v *visit) newErrand() errand {
	a := errand{
		method: v.r.Method, path: v.path, query: pickQuery(v.query, v.recipe.keyQuery, v.recipe.addQuery),
		header: make(http.Header), viaTLS: v.r.TLS != nil, distribution: v.deployment.ID,
	}
	for name, values := range v.header {
		listed := v.recipe.sent(name)
		switch {
		case slices.Contains(dropped, name), strings.HasPrefix(name, "X-Edge-"), strings.HasPrefix(name, "X-Amz-Cf-"),
			name == "Cookie", name == "Accept-Encoding" && !listed:
			continue
		case listed, slices.Contains(always, name), v.recipe.legacy && !slices.Contains(legacyDropped, name):
			a.header[name] = slices.Clone(values)
		}
	}
	if v.recipe.sent("Host") {
		a.host = v.r.Host
	}
	if !v.recipe.sent("User-Agent") {
		a.header.Set("User-Agent", "Amazon CloudFront")
	} else if a.header.Get("User-Agent") == "" {
		a.header["User-Agent"] = nil // keeps net/http from adding its own
	}
	if jar := pickCookies(v.header, v.recipe.keyJar, v.recipe.addJar); jar != "" {
		a.header.Set("Cookie", jar)
	}
	if v.recipe.encodings && a.header.Get("Accept-Encoding") == "" {
		if coding := reducedEncoding(v.header); coding != "" {
			a.header.Set("Accept-Encoding", coding)
		}
	}
	address := v.r.RemoteAddr
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	a.header.Set("X-Forwarded-For", strings.Join(append(a.header["X-Forwarded-For"], address), ","))
	a.header.Set("Via", strings.Join(append(a.header["Via"], "1.1 double.cloudfront.net (CloudFront)"), ", "))
	a.header.Set("X-Amz-Cf-Id", v.event.ID)
	a.header.Set("Connection", "Keep-Alive")
	return a
}

// applyInvalidations drops what invalidations cover that are complete by now.
// Concluded: they take effect when they are complete and not before.
func (e *Edge) applyInvalidations(distribution string) {
	e.purgeMu.Lock()
	defer e.purgeMu.Unlock()
	fresh := e.control.InvalidationsAfter(distribution, e.seen[distribution])
	if len(fresh) == 0 && len(e.pending[distribution]) == 0 {
		return
	}
	e.seen[distribution] += len(fresh)
	now := e.now()
	var waiting []cloudfront.Invalidation
	for _, i := range append(e.pending[distribution], fresh...) {
		if i.Done.After(now) {
			waiting = append(waiting, i)
			continue
		}
		p := purge{distribution, i.Paths}
		// First what is on its way, which then cannot get into the store.
		e.mu.Lock()
		for key, f := range e.flights {
			if p.covers(f.distribution, f.target) {
				delete(e.flights, key)
			}
		}
		e.mu.Unlock()
		e.store.invalidate(p)
	}
	e.pending[distribution] = waiting
}
