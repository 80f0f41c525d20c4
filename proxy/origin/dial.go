package origin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// dialError carries the step at which a connection could not be made.
type dialError struct {
	kind Kind
	err  error
}

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// dialer makes connections, each within limit, TLS included. net/http calls it
// in goroutines that outlive a cancelled request by at most that limit, and
// keeps the connection for the next request.
type dialer struct {
	limit time.Duration
	tls   *tls.Config
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (d *dialer) plain(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	return d.connect(ctx, network, addr)
}

func (d *dialer) secure(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	raw, err := d.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conf := d.tls
	if conf.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			_ = raw.Close()
			return nil, &dialError{KindTLS, err}
		}
		conf = conf.Clone()
		conf.ServerName = host
	}
	conn := tls.Client(raw, conf)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, &dialError{KindTLS, d.explain(ctx, err)}
	}
	return conn, nil
}

func (d *dialer) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, addr)
	if err == nil {
		return &countedConn{Conn: conn}, nil
	}
	kind := KindConnect
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		kind = KindDNS
	}
	return nil, &dialError{kind, d.explain(ctx, err)}
}

func (d *dialer) explain(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("origin.connect (%s) ran out: %w", d.limit, err)
	}
	return err
}

// trust gives the TLS settings of a place. An empty caFile means the system's
// authorities alone.
func trust(caFile, serverName string) (*tls.Config, error) {
	conf := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         serverName,
		NextProtos:         []string{"h2", "http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	if caFile == "" {
		return conf, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read origin.ca_file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificate authorities: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("origin.ca_file: %s holds no certificate: write one or more PEM blocks of type CERTIFICATE", caFile)
	}
	conf.RootCAs = pool
	return conf, nil
}
