package cloudfront

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server is a Double that listens. Whoever starts it closes it.
type Server struct {
	// URL is what AWS_ENDPOINT_URL_CLOUDFRONT, _STS and _SESV2 are set to.
	URL string

	http   *http.Server
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// Start listens on addr ("127.0.0.1:0" for any free port) and serves until
// Close.
func (d *Double) Start(addr string) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for the CloudFront double: %w", addr, err)
	}
	return d.Serve(listener), nil
}

// Serve serves on a listener of the caller's making, which Close closes.
func (d *Double) Serve(listener net.Listener) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		URL: "http://" + listener.Addr().String(),
		http: &http.Server{
			Handler:           d,
			BaseContext:       func(net.Listener) context.Context { return ctx },
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       30 * time.Second,
			IdleTimeout:       30 * time.Second,
			MaxHeaderBytes:    64 << 10,
		},
		cancel: cancel,
		done:   make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.err = fmt.Errorf("serve the CloudFront double: %w", err)
		}
	}()
	return s
}

// Close ends what is waiting (latency), lets answers under way finish until ctx
// ends, cuts the rest, and returns when the serving goroutine is gone.
func (s *Server) Close(ctx context.Context) error {
	s.cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.done
	return errors.Join(err, s.err)
}
