package server

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// listener bounds the connections of the public address and watches over their
// progress. A connection over the bound is accepted as soon as another one ends:
// it waits, and is never refused.
type listener struct {
	net.Listener
	slots  chan struct{}
	idle   time.Duration
	closed chan struct{}
	once   sync.Once
}

func newListener(inner net.Listener, connections int, idle time.Duration) *listener {
	return &listener{Listener: inner, slots: make(chan struct{}, connections), idle: idle, closed: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	free := func() { <-l.slots }
	inner, err := l.Listener.Accept()
	if err != nil {
		free()
		return nil, err
	}
	tcp, ok := inner.(*net.TCPConn)
	if !ok {
		free()
		_ = inner.Close()
		return nil, errors.New("the listener gave a connection that is not TCP")
	}
	return &conn{TCPConn: tcp, idle: l.idle, free: sync.OnceFunc(free)}, nil
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// conn is a viewer's connection. A write may take as long as it likes while bytes
// go, so that a slow viewer gets its image; one that takes no byte for idle is
// gone. It keeps sendfile within reach of net/http.
type conn struct {
	*net.TCPConn
	idle time.Duration
	free func()
}

func (c *conn) Write(p []byte) (int, error) {
	sent := 0
	for {
		if err := c.SetWriteDeadline(time.Now().Add(c.idle)); err != nil {
			return sent, err
		}
		n, err := c.TCPConn.Write(p[sent:])
		sent += n
		if !moved(int64(n), err) {
			return sent, err
		}
	}
}

// ReadFrom sends a file, or a limited part of one, by sendfile. Only there is it
// known where to go on after a deadline; anything else is copied through Write.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if ok {
		_, ok = limited.R.(*os.File)
	}
	if !ok {
		return io.Copy(struct{ io.Writer }{c}, r)
	}
	var sent int64
	for {
		if err := c.SetWriteDeadline(time.Now().Add(c.idle)); err != nil {
			return sent, err
		}
		n, err := c.TCPConn.ReadFrom(limited)
		sent += n
		if !moved(n, err) {
			return sent, err
		}
	}
}

// moved tells whether a write that ran into its deadline got on meanwhile.
func moved(n int64, err error) bool {
	return n > 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *conn) Close() error {
	defer c.free()
	return c.TCPConn.Close()
}
