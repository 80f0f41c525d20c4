package distribution

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

type refusing struct{ next http.RoundTripper }

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.next != nil && !strings.Contains(req.Host, "cloudfront") && req.Method == http.MethodPost {
		return r.next.RoundTrip(req)
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// Whoever sets an endpoint that nobody listens at reads why, also when the time of
// a round ends before the tries do.
func TestRefusedConnectionsAreNamed(t *testing.T) {
	inLab(t, func(ctx context.Context, l *lab) {
		working := l.base.HTTPClient.(*http.Client).Transport
		for name, way := range map[string]http.RoundTripper{"at all": refusing{}, "after the role": refusing{working}} {
			l.base.HTTPClient = &http.Client{Transport: way}
			c := l.client(shopTarget())
			round, cancel := context.WithTimeout(ctx, 30*time.Second)
			_, err := c.Read(round)
			cancel()
			c.Close()
			e := wantKind(t, err, KindTimeout)
			if !strings.Contains(e.Error(), "connection refused") {
				t.Errorf("%s: %s", name, e)
			}
		}
	})
}
