package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptrace"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"karui/watchdog/event"
)

// stages is how far a request has come.
type stages struct{ at atomic.Int32 }

const (
	stageStart int32 = iota
	stageDNS
	stageConnect
	stageTLS
	stageSent
)

// trace makes a context that notes the stages. The hooks may run on other
// goroutines, and later than the request's end.
func (s *stages) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:          func(httptrace.DNSStartInfo) { s.at.Store(stageDNS) },
		ConnectStart:      func(string, string) { s.at.Store(stageConnect) },
		TLSHandshakeStart: func() { s.at.Store(stageTLS) },
		GotConn:           func(httptrace.GotConnInfo) { s.at.Store(stageSent) },
	})
}

// explain gives the kind and a text for a request that got no answer. The error's
// own text is not used as it is: it repeats the URL.
func (s *stages) explain(err error, timeout time.Duration) (kind, text string) {
	at := s.at.Load()
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
		op   *net.OpError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return event.FailDNS, fmt.Sprintf("the name %s does not exist", clean(dns.Name))
	case errors.As(err, &dns):
		return event.FailDNS, fmt.Sprintf("the name %s could not be looked up: %s", clean(dns.Name), clean(dns.Err))
	case errors.As(err, &cert):
		return event.FailTLS, clean("the certificate is not accepted: " + cert.Err.Error())
	case isTimeout(err):
		switch at {
		case stageStart, stageDNS:
			return event.FailDNS, fmt.Sprintf("the name was not found out within %s", timeout)
		case stageConnect:
			return event.FailTimeout, fmt.Sprintf("no connection within %s", timeout)
		case stageTLS:
			return event.FailTimeout, fmt.Sprintf("connected, but no TLS handshake within %s", timeout)
		default:
			return event.FailTimeout, fmt.Sprintf("connected, but no answer within %s", timeout)
		}
	case at == stageTLS:
		return event.FailTLS, clean("the TLS handshake failed: " + plain(err))
	case errors.Is(err, syscall.ECONNREFUSED):
		return event.FailConnect, "connection refused"
	case errors.As(err, &op) && op.Op == "dial":
		return event.FailConnect, clean("no connection: " + plain(op.Err))
	case at == stageSent && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), "server closed")):
		return event.FailConnect, "the connection was closed before an answer came"
	case at == stageSent:
		return event.FailConnect, clean("no answer that could be understood: " + plain(err))
	}
	return event.FailConnect, clean("no connection: " + plain(err))
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// plain is the error's text without the layers that name addresses twice.
func plain(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return err.Error()
}
