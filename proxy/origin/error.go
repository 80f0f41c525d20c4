package origin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// Kind says at which step a fetch failed.
type Kind uint8

// The kinds of failure. DNS, Connect and TLS include running out of
// origin.connect at that step; Timeout is any other limit.
const (
	// KindDNS: the origin's name could not be resolved.
	KindDNS Kind = iota + 1
	// KindConnect: no connection (refused, unreachable, no answer within origin.connect).
	KindConnect
	// KindTLS: no trusted TLS session.
	KindTLS
	// KindTimeout: origin.deadline, origin.idle or origin.total ran out.
	KindTimeout
	// KindReset: the connection or stream ended before the answer did.
	KindReset
	// KindProtocol: what came is not a valid answer.
	KindProtocol
	// KindCancelled: the caller gave up; the origin is not to blame.
	KindCancelled
	// KindRequest: the request cannot be sent as it is; nothing was dialled.
	KindRequest
	// KindBusy: so many requests to the place are under way that no more are sent.
	KindBusy
	// KindSetup: the store refuses what is configured (no such bucket, another
	// region, credentials that are not to be had or not taken).
	KindSetup
	// KindAccess: the store does not let karui read, and does not say whether there
	// is anything to read.
	KindAccess
)

// String gives the stable word for metrics and logs.
func (k Kind) String() string {
	switch k {
	case KindDNS:
		return "dns"
	case KindConnect:
		return "connect"
	case KindTLS:
		return "tls"
	case KindTimeout:
		return "timeout"
	case KindReset:
		return "reset"
	case KindProtocol:
		return "protocol"
	case KindCancelled:
		return "cancelled"
	case KindRequest:
		return "request"
	case KindBusy:
		return "busy"
	case KindSetup:
		return "setup"
	case KindAccess:
		return "access"
	default:
		return "unknown"
	}
}

// Error is a fetch that failed, before or after its head arrived. Its text is
// safe to log: it is bounded and holds no target, query or header value.
type Error struct {
	Kind  Kind
	Place string // the place's name, "" if it has none
	// Tries is how often places were asked; 0 for none.
	Tries int
	// Detail says in words what happened.
	Detail string
	cause  error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Place == "" {
		return fmt.Sprintf("origin: %s: %s", e.Kind, e.Detail)
	}
	return fmt.Sprintf("origin %q: %s: %s", e.Place, e.Kind, e.Detail)
}

// Unwrap gives the cause, so that errors.Is finds io.ErrUnexpectedEOF in a body
// that was cut off and context.Canceled in a fetch that was given up.
func (e *Error) Unwrap() error { return e.cause }

// afterAnother adds to the error of a second try what came of the first one, at
// place: an error, or the status of its answer. Whoever reads of one place alone
// would look for the trouble there only.
func afterAnother(err error, place string, first error, status int) error {
	second, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	both := *second
	both.Tries++
	if first != nil {
		both.Detail += "; before that " + first.Error()
	} else {
		both.Detail += fmt.Sprintf("; before that origin %q answered %d", place, status)
	}
	return &both
}

// KindOf gives the kind of the *Error in err's chain, or 0.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}

// expired is the cause with which a limit of this package cancels a fetch.
type expired struct{ limit string }

func (e *expired) Error() string { return e.limit + " ran out" }

// Timeout implements net.Error's half that callers ask for.
func (e *expired) Timeout() bool { return true }

// Is makes an expired limit count as the deadlines of os and context.
func (e *expired) Is(target error) bool {
	return target == os.ErrDeadlineExceeded || target == context.DeadlineExceeded
}

var (
	errDeadline = &expired{"origin.deadline (time to the first byte)"}
	errShare    = &expired{"half of origin.deadline (time to the first byte of a try that another may follow)"}
	errIdle     = &expired{"origin.idle (pause between two reads of the body)"}
	errTotal    = &expired{"origin.total (time for the whole fetch)"}
)

// failure turns what net/http returned into an *Error. ctx is the fetch's own
// context, whose cause tells a limit from a caller that left.
func (c *Client) failure(ctx context.Context, err error) *Error {
	kind, detail, cause := classify(context.Cause(ctx), err)
	return &Error{Kind: kind, Place: c.name, Tries: 1, Detail: detail, cause: cause}
}

// classify is the decision behind failure. cause is nil while the fetch's
// context lives. It gives the error to unwrap to as well.
func classify(cause, err error) (Kind, string, error) {
	if limit, ok := errors.AsType[*expired](cause); ok {
		return KindTimeout, limit.Error(), limit
	}
	if errors.Is(cause, errReplayed) {
		return KindReset, cause.Error(), cause
	}
	if cause != nil {
		if errors.Is(cause, context.DeadlineExceeded) {
			return KindTimeout, "the caller's own limit ran out", context.DeadlineExceeded
		}
		return KindCancelled, "the caller gave up", context.Canceled
	}
	if c, ok := errors.AsType[*credentialsError](err); ok {
		return KindSetup, "no credentials to sign with: " + bounded(c.err.Error()), c.err
	}
	if d, ok := errors.AsType[*dialError](err); ok {
		return d.kind, bounded(d.err.Error()), d.err
	}
	if s, ok := errors.AsType[streamError](err); ok {
		return KindReset, fmt.Sprintf("HTTP/2 stream ended with code %d", s.Code), err
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return KindReset, "cut off before its end", err
	case errors.Is(err, io.EOF):
		// The cause must not be io.EOF: to a reader of a body that would be its regular end.
		return KindReset, "closed without an answer", io.ErrUnexpectedEOF
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return KindReset, "connection reset", err
	}
	text := err.Error()
	for _, lost := range []string{"server closed idle connection", "client connection lost", "GOAWAY", "client connection force closed"} {
		if strings.Contains(text, lost) {
			return KindReset, "connection closed by the origin", err
		}
	}
	if n, ok := errors.AsType[net.Error](err); ok {
		if n.Timeout() {
			return KindTimeout, "connection timed out", err
		}
		return KindReset, "connection failed", err
	}
	return KindProtocol, protocolDetail(text), err
}

// protocolDetail keeps the words of net/http's message and drops what it quotes
// from the wire: that may be a part of somebody's data.
func protocolDetail(text string) string {
	if i := strings.IndexByte(text, '"'); i >= 0 {
		text = strings.TrimRight(text[:i], " :")
	}
	return bounded(text)
}

// bounded cuts a text that holds foreign parts to what a log line bears.
func bounded(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

// streamError has the shape of net/http's unexported HTTP/2 stream error, which
// copies itself into any struct of that shape for errors.As.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return fmt.Sprintf("stream %d: code %d", e.StreamID, e.Code) }
