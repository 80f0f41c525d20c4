package origin

import (
	"net/http"
	"net/textproto"
	"strings"
)

// hopByHop are the headers that mean one connection and not the message (RFC
// 9110 section 7.6.1 and what is in use besides). Expect is answered by each
// server for itself, and Host and Content-Length are written anew.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// endToEnd removes the hop-by-hop headers from h, with those that its Connection
// header names. (Those that an answer names beside `close` stay: net/http has
// removed that Connection header already.)
func endToEnd(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
}

// outgoing gives what is sent: the request's own headers without those that must
// not travel, then the place's fixed ones in their stead.
func (c *Client) outgoing(own http.Header) http.Header {
	h := own.Clone()
	if h == nil {
		h = make(http.Header, len(c.fixed)+2)
	}
	endToEnd(h)
	for _, name := range c.strip {
		h.Del(name)
	}
	for name, values := range c.fixed {
		h[name] = values
	}
	if _, found := h["User-Agent"]; !found {
		h["User-Agent"] = []string{""} // else net/http would send its own name
	}
	return h
}
