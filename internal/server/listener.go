package server

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
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
// arrive, so that a slow viewer gets its image; one to which nothing got through
// for idle is gone. It keeps sendfile within reach of net/http.
type conn struct {
	*net.TCPConn
	idle time.Duration
	free func()
	// deadline is the one that was set last for writing.
	deadline time.Time

	// What is held of an answer, see Cork. Answers of one connection follow one
	// another, so that nothing of this is shared.
	corked bool
	held   []byte
	pieces [2][]byte
	vector net.Buffers
}

// unreadable is what net/http answers to a request that it cannot read, such as
// one for `/100%.jpg`, before any handler sees it. The edge would show that to the
// viewer; elsewhere is what it takes to the true origin, which may know the name.
const (
	unreadable = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	elsewhere  = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n" +
		"X-Karui-Reason: request\r\nConnection: close\r\n\r\nkarui cannot read the request\n"
)

func (c *conn) Write(p []byte) (int, error) {
	if len(p) == len(unreadable) && string(p) == unreadable {
		if _, err := c.Write([]byte(elsewhere)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if c.hold(p) {
		return len(p), nil
	}
	if len(c.held) > 0 {
		return c.together(p)
	}
	n, err := c.push(func(sent int64) (int64, error) {
		n, err := c.TCPConn.Write(p[sent:])
		return int64(n), err
	})
	return int(n), err
}

// ReadFrom sends a file, or a limited part of one, by sendfile. Only there is it
// known where to go on after a deadline; anything else is copied through Write.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if n, err, ok := c.corkedBody(r); ok {
		return n, err
	}
	limited, ok := r.(*io.LimitedReader)
	if ok {
		_, ok = limited.R.(*os.File)
	}
	if !ok {
		return io.Copy(struct{ io.Writer }{c}, r)
	}
	return c.push(func(int64) (int64, error) { return c.TCPConn.ReadFrom(limited) })
}

// looks is how often within idle a write that waits is looked after.
const looks = 4

// push goes on with a write, which is told how much of it is done, until it ends
// or nothing has moved for idle.
func (c *conn) push(write func(sent int64) (int64, error)) (sent int64, err error) {
	moved, queued := time.Now(), -1
	for {
		// A deadline that is far enough away is left as it is: setting one costs more
		// than a small answer's own work.
		if now := time.Now(); c.deadline.Sub(now) < c.idle/looks/2 {
			c.deadline = now.Add(c.idle / looks)
			if err := c.SetWriteDeadline(c.deadline); err != nil {
				return sent, err
			}
		}
		n, err := write(sent)
		sent += n
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return sent, err
		}
		// The kernel takes more only when a third of its buffer is free, which a slow
		// viewer may not reach within idle: what the viewer acknowledged counts.
		left := c.queued()
		if n > 0 || left < queued {
			moved = time.Now()
		}
		queued = left
		if time.Since(moved) >= c.idle {
			return sent, err
		}
	}
}

// queued gives the bytes that the viewer has not acknowledged yet, 0 where that
// cannot be told.
func (c *conn) queued() int {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		n, err = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ)
	})
	if err != nil {
		return 0
	}
	return n
}

func (c *conn) Close() error {
	defer c.free()
	return c.TCPConn.Close()
}
