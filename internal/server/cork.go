package server

import (
	"bytes"
	"io"
	"net"
)

// corkMost is the longest head that is held back: net/http's buffer for it.
const corkMost = 4 << 10

// Cork implements proxy.Corker: the next bytes, the head of an answer, are held
// back until those of its body come, so that both leave in one call of the kernel
// and without being copied. Between Cork and Uncork nothing may be waited for.
func (c *conn) Cork() { c.corked = true }

// Uncork sends what is still held.
func (c *conn) Uncork() error {
	c.corked = false
	if len(c.held) == 0 {
		return nil
	}
	_, err := c.together(nil)
	return err
}

// hold takes bytes in if they are the first and few.
func (c *conn) hold(p []byte) bool {
	if !c.corked || len(c.held) > 0 || len(p) > corkMost {
		return false
	}
	c.held = append(c.held, p...)
	return true
}

// together sends what is held and then p, and tells how much of p went.
func (c *conn) together(p []byte) (int, error) {
	head := c.held
	defer func() { c.held = c.held[:0] }()
	n, err := c.push(func(sent int64) (int64, error) {
		rest := c.pieces[:0]
		if sent < int64(len(head)) {
			rest = append(rest, head[sent:], p)
		} else {
			rest = append(rest, p[sent-int64(len(head)):])
		}
		c.vector = net.Buffers(rest)
		n, err := c.vector.WriteTo(c.TCPConn)
		clear(c.pieces[:])
		return n, err
	})
	return int(max(n-int64(len(head)), 0)), err
}

// bodyOf is the writer of a body that is in memory as a whole: bytes.Reader gives
// it in one piece.
type bodyOf struct{ *conn }

func (b bodyOf) Write(p []byte) (int, error) { return b.together(p) }

// corkedBody sends a body behind a head that is held.
func (c *conn) corkedBody(r io.Reader) (n int64, err error, ok bool) { //nolint:revive // the order of io.ReaderFrom
	body, ok := r.(*bytes.Reader)
	if !ok || len(c.held) == 0 {
		return 0, nil, false
	}
	n, err = body.WriteTo(bodyOf{c})
	return n, err, true
}
