package probe

import (
	"context"
	"net/http"
	"time"

	"karui/watchdog/event"
)

// Fetched is an answer to look at.
type Fetched struct {
	event.Probe // OK: an answer came, whatever its status
	Header      http.Header
	// Cut tells that the body did not come whole, or was over the limit.
	Cut bool
	// Length of what came of the body.
	Length int
}

// Fetch asks for an address with these headers and reads a bounded body.
func (p *Prober) Fetch(ctx context.Context, target string, headers []Header, timeout time.Duration) Fetched {
	var out Fetched
	out.Probe = p.ask(ctx, target, timeout, func(req *http.Request) {
		for _, h := range headers {
			req.Header.Set(h.Name, h.Value)
		}
	}, func(_ context.Context, res *http.Response, one *event.Probe) {
		one.Text = statusText(res)
		out.Header = res.Header
		body, tooLong, err := readAll(res.Body)
		out.Cut, out.Length = err != nil || tooLong, len(body)
	})
	return out
}
