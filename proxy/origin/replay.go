package origin

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// errReplayed is the cause with which a fetch ends that net/http would have sent
// once more than it may be.
var errReplayed = errors.New("the connection was lost before an answer, and the request is not sent again")

// replays bounds how often net/http sends one request. By itself it repeats a
// request whose kept connection is lost before an answer, as often as there are
// kept connections: an origin that resets would see several times what this
// package decided to send. A connection on which nothing of the request had left
// yet does not count.
//
// HTTP/2 needs no bound: there net/http repeats only what the origin declared
// unprocessed.
type replays struct {
	left   int
	conn   *countedConn // that has the request
	before int64        // bytes written on it before
	wrote  atomic.Bool
	cancel func(error)
}

// newReplays allows so many repetitions; cancel ends the fetch.
func newReplays(left int, cancel func(error)) *httptrace.ClientTrace {
	r := &replays{left: left, cancel: cancel}
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { r.next(info.Conn) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				r.wrote.Store(true)
			}
		},
	}
}

// next is told of each connection that the request is about to go to.
func (r *replays) next(conn net.Conn) {
	c := counted(conn)
	if c == nil {
		return
	}
	if r.conn != nil && r.wrote.Load() && r.conn.written.Load() > r.before {
		if r.left == 0 {
			c.refused.Store(true) // it may be written to before net/http looks at the context
			r.cancel(errReplayed)
			return
		}
		r.left--
	}
	r.conn, r.before = c, c.written.Load()
	r.wrote.Store(false)
}

// countedConn is a connection that knows how much was written to it. One that is
// refused takes no more.
type countedConn struct {
	net.Conn
	written atomic.Int64
	refused atomic.Bool
}

func (c *countedConn) Write(p []byte) (int, error) {
	if c.refused.Load() {
		return 0, errReplayed
	}
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// counted gives the connection behind one of net/http's, nil for HTTP/2.
func counted(conn net.Conn) *countedConn {
	if t, ok := conn.(*tls.Conn); ok {
		if t.ConnectionState().NegotiatedProtocol == "h2" {
			return nil
		}
		conn = t.NetConn()
	}
	c, _ := conn.(*countedConn)
	return c
}
