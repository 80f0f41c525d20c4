package proxy

import (
	"io"
	"net/http"
)

// holdMost is how many bytes of a body are held before its head is sent. It is
// more than net/http's own buffers take in (2 KiB of body, 4 KiB of connection),
// so that what is past it has begun to reach the viewer.
const holdMost = 8 << 10

// holding is the viewer of a body that is still arriving. It sends nothing, not
// even the head, before bytes are due on the wire: an origin that breaks off
// before that is answered with 503 instead of an aborted connection.
type holding struct {
	x      *exchange
	status int
	held   []byte
	sent   bool
}

var _ io.Writer = (*holding)(nil)

func (h *holding) Write(p []byte) (int, error) {
	if !h.sent {
		if len(h.held)+len(p) <= holdMost {
			h.held = append(h.held, p...)
			return len(p), nil
		}
		if err := h.send(); err != nil {
			return 0, err
		}
	}
	n, err := h.x.w.Write(p)
	h.x.bytes += int64(n)
	return n, err
}

// send lets go of what is held.
func (h *holding) send() error {
	if h.sent {
		return nil
	}
	h.sent = true
	h.x.head(h.status)
	n, err := h.x.w.Write(h.held)
	h.x.bytes += int64(n)
	h.held = nil
	return err
}

// Flush implements what package flight looks for: bytes are due on the wire.
func (h *holding) Flush() error {
	if err := h.send(); err != nil {
		return err
	}
	return http.NewResponseController(h.x.w).Flush()
}
