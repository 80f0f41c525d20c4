package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"karui/internal/cloudfront"
)

// Kinds of failures at an origin, as events name them.
const (
	FailRefused         = "refused"          // no connection: refused, unreachable, unknown name
	FailConnectTimeout  = "connect-timeout"  // no connection in time
	FailResponseTimeout = "response-timeout" // no byte in time, the first or a later one
	FailTLS             = "tls"              // a certificate that does not fit, or no TLS at all
	FailReset           = "reset"            // closed before an answer, or no HTTP
	FailStatus          = "status"           // an answer with a status that the group fails over on
)

var errResponseTimeout = errors.New("the origin sent nothing within its response timeout")

// unsafeTimeout is how long methods other than GET and HEAD wait. Documented,
// and not to be set.
const unsafeTimeout = 30 * time.Second

// failureOf names an error of a round trip.
func failureOf(err error) string {
	var dial *dialError
	var timeout net.Error
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, errResponseTimeout):
		return FailResponseTimeout
	case errors.As(err, &dial) && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()):
		return FailConnectTimeout
	case errors.As(err, &dial) || errors.Is(err, syscall.ECONNREFUSED):
		return FailRefused
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid),
		errors.As(err, &verification), errors.As(err, &record), strings.Contains(err.Error(), "tls:"),
		strings.Contains(err.Error(), "TLS handshake timeout"):
		return FailTLS
	}
	return FailReset
}

// statusOf is the status that the edge answers itself. Documented: 504 for
// timeouts, 502 for what cannot be connected to or understood.
func statusOf(failure string) int {
	if failure == FailConnectTimeout || failure == FailResponseTimeout {
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// errand is what an origin is asked.
type errand struct {
	method       string
	path, query  string // raw
	header       http.Header
	host         string // the viewer's, if it is forwarded
	body         io.Reader
	length       int64
	viaTLS       bool // the viewer's connection
	distribution string
}

// trip asks one origin once.
func (e *Edge) trip(ctx context.Context, o cloudfront.Origin, a errand) (*http.Response, *watch, error) {
	scheme, port := "http", o.HTTPPort
	if o.Protocol == "https-only" || o.Protocol == "match-viewer" && a.viaTLS {
		scheme, port = "https", o.HTTPSPort
	}
	address := net.JoinHostPort(o.Domain, strconv.Itoa(port))
	target := o.Path + a.path
	if a.query != "" {
		target += "?" + a.query
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{cancel: cancel, limit: o.ResponseTimeout}
	if a.method != http.MethodGet && a.method != http.MethodHead {
		w.limit = unsafeTimeout
	}
	// Waiting for an answer begins when there is a connection; connecting has a
	// limit of its own.
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { w.start() }})
	r, err := http.NewRequestWithContext(traced, a.method, scheme+"://"+address+"/", a.body)
	if err != nil {
		cancel(err)
		return nil, nil, fmt.Errorf("make request: %w", err)
	}
	r.URL = rawURL(scheme, address, o.Domain, target)
	r.ContentLength = a.length
	r.Header = a.header.Clone()
	r.Host = o.Domain
	if a.host != "" && !o.S3 {
		r.Host = a.host
	}
	for _, h := range o.Headers { // documented: they overwrite the viewer's
		r.Header.Set(h.Name, h.Value)
	}
	resp, err := e.transports.of(a.distribution, o).RoundTrip(r)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errResponseTimeout) {
			err = cause
		}
		w.stop(err)
		return nil, nil, err
	}
	w.pause()
	return resp, w, nil
}

// rawURL makes net/http write a target as it is. A path that begins with two
// slashes has to go the regular way, or the absolute form, since net/url puts the
// scheme before an opaque part like that.
func rawURL(scheme, address, host, target string) *url.URL {
	if !strings.HasPrefix(target, "//") {
		return &url.URL{Scheme: scheme, Host: address, Opaque: target}
	}
	path, query, found := strings.Cut(target, "?")
	if clear, err := url.PathUnescape(path); err == nil {
		u := &url.URL{Scheme: scheme, Host: address, Path: clear, RawPath: path, RawQuery: query, ForceQuery: found}
		if u.RequestURI() == target {
			return u
		}
	}
	return &url.URL{Scheme: scheme, Host: address, Opaque: "//" + host + target}
}

// watch ends a request when the origin is silent for too long.
type watch struct {
	cancel context.CancelCauseFunc
	limit  time.Duration

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(w.limit, func() { w.cancel(errResponseTimeout) })
		return
	}
	w.timer.Reset(w.limit)
}

func (w *watch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watch) stop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(err)
}
