package cloudfront

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Pipe is a network inside the process: a listener for Serve and the client that
// reaches it. HTTP is spoken over it as over TCP, but everything that blocks
// blocks on channels, so that tests can run it under testing/synctest, with a
// clock of their own.
type Pipe struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewPipe makes a Pipe. Closing the Server that serves it closes it.
func NewPipe() *Pipe {
	return &Pipe{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept waits for the next connection.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr is a made-up address.
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "double.invalid" }

// Dial connects to the listener, whatever the address.
func (p *Pipe) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	var err error
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		err = &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr{}, Err: net.ErrClosed}
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = client.Close() // a pipe's end, nothing to lose
	_ = server.Close()
	return nil, err
}

// Transport is for clients that are to reach the listener. Close its idle
// connections when done.
func (p *Pipe) Transport() *http.Transport {
	return &http.Transport{DialContext: p.Dial}
}
