package origin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// why says in a few words why a try failed, for people who look after a place. The
// words are from a fixed set, so that nothing foreign is among them.
func why(err error) string {
	var name *net.DNSError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "its address cannot be reached"
	case errors.As(err, &name) && name.IsNotFound:
		return "its name does not exist"
	}
	switch KindOf(err) {
	case KindDNS:
		return "its name cannot be resolved"
	case KindConnect:
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "no connection in time"
		}
		return "no connection"
	case KindTLS:
		return "no trusted TLS session"
	case KindTimeout:
		return "no answer in time"
	case KindReset:
		return "connection lost"
	case KindProtocol:
		return "no valid answer"
	case KindBusy:
		return "too many requests under way"
	case KindSetup:
		return "the store refuses the bucket, the region or the credentials"
	}
	return "it failed"
}

// whyStatus is why for an answer that says that the place is overloaded.
func whyStatus(status int) string { return fmt.Sprintf("it answers %d", status) }
