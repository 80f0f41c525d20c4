package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"time"

	"karui/internal/cloudfront"
)

// maxAnswerHead bounds the header of an origin's answer, in bytes. Concluded
// from the documented 20,480 for requests, with room.
const maxAnswerHead = 32 << 10

// dialFunc connects to host:port.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// transports holds the connections to origins, one pool for each way of
// connecting.
type transports struct {
	dial  dialFunc
	roots *x509.CertPool

	mu   sync.Mutex
	byID map[string]*pool
}

type pool struct {
	origin    cloudfront.Origin
	transport *http.Transport
}

// maxPools bounds how many pools there are. A distribution has up to 25 origins.
const maxPools = 250

// of is the pool for an origin; one whose settings changed gets a new one.
func (t *transports) of(distribution string, o cloudfront.Origin) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := distribution + "\x00" + o.ID
	p := t.byID[id]
	same := p != nil && p.origin.ConnectTimeout == o.ConnectTimeout && p.origin.Attempts == o.Attempts &&
		p.origin.KeepaliveTimeout == o.KeepaliveTimeout && p.origin.Domain == o.Domain
	if same {
		return p.transport
	}
	if p != nil {
		p.transport.CloseIdleConnections()
	}
	if len(t.byID) >= maxPools {
		for other, p := range t.byID {
			p.transport.CloseIdleConnections()
			delete(t.byID, other)
			break
		}
	}
	p = &pool{origin: o, transport: &http.Transport{
		DialContext:            t.connect(o),
		TLSClientConfig:        &tls.Config{RootCAs: t.roots, ServerName: o.Domain, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    o.ConnectTimeout,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // documented: HTTP/1.1 only
		DisableCompression:     true,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        o.KeepaliveTimeout,
		MaxResponseHeaderBytes: maxAnswerHead,
		ExpectContinueTimeout:  time.Second,
	}}
	t.byID[id] = p
	return p.transport
}

func (t *transports) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.byID {
		p.transport.CloseIdleConnections()
	}
}

// connect dials as often as the origin's connection attempts say, each within
// its connection timeout. Concluded: without a pause.
func (t *transports) connect(o cloudfront.Origin) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var err error
		for range max(o.Attempts, 1) {
			var conn net.Conn
			one, cancel := context.WithTimeout(ctx, o.ConnectTimeout)
			conn, err = t.dial(one, network, address)
			cancel()
			if err == nil {
				return conn, nil
			}
			if ctx.Err() != nil {
				break
			}
		}
		return nil, &dialError{err}
	}
}

// dialError marks what went wrong before there was a connection.
type dialError struct{ err error }

func (e *dialError) Error() string { return "connect: " + e.err.Error() }

func (e *dialError) Unwrap() error { return e.err }
