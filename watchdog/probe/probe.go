// Package probe looks at web servers from outside: is the proxy well (a real
// JPEG), does the true origin live, has the watchdog a network at all.
//
// Guaranteed: every request has a connection of its own, so that a kept one
// cannot hide a server that takes no new ones; it ends within its timeout,
// whatever the server sends; it follows no redirect and reads a bounded body; and
// what went wrong is told apart by stage. At most a few pictures are decoded at
// a time, and only small ones.
//
// Not guaranteed: that viewers see what the probe sees. It asks from where the
// watchdog runs.
package probe

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"karui/watchdog/event"
)

const (
	// maxBody bounds what is read of an answer. A ping is a few kilobytes.
	maxBody = 1 << 20
	// maxHeader bounds an answer's headers.
	maxHeader = 64 << 10
	// maxDecodes bounds memory: a picture of maxPixels takes up to 16 MB.
	maxDecodes = 2

	// UserAgent is what the watchdog calls itself.
	UserAgent = "karui-watchdog"
)

// Header is a header to send with a ping.
type Header struct{ Name, Value string }

// Options are how a Prober reaches the world. The zero value is the real one.
type Options struct {
	// Dial makes connections. Default: a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is for tests with certificates of their own.
	TLS *tls.Config
	// Now stamps probes. Default: time.Now.
	Now func() time.Time
}

// Prober makes requests. It may be used from several goroutines.
type Prober struct {
	transport *http.Transport
	now       func() time.Time
	decodes   *semaphore.Weighted
}

// New makes a Prober. It keeps no connections and needs no closing.
func New(o Options) *Prober {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	return &Prober{
		transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment, // as the AWS SDK does
			DialContext:            o.Dial,
			TLSClientConfig:        o.TLS,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
		},
		now:     o.Now,
		decodes: semaphore.NewWeighted(maxDecodes),
	}
}

// Round asks for a ping up to count times, the starts spacing apart (or as soon
// as the one before has ended, if that is later). The first success ends it. The
// result is oldest first; the error is only ever that ctx ended.
func (p *Prober) Round(ctx context.Context, target string, headers []Header, count int, spacing, timeout time.Duration) ([]event.Probe, error) {
	var probes []event.Probe
	tick := time.NewTicker(spacing)
	defer tick.Stop()
	for i := range count {
		if i > 0 {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return probes, ctx.Err()
			}
		}
		one := p.Ping(ctx, target, headers, timeout)
		if ctx.Err() != nil && !one.OK {
			return probes, ctx.Err()
		}
		probes = append(probes, one)
		if one.OK {
			break
		}
	}
	return probes, nil
}

// Ping asks once. Good is status 200, an image type, and a body that decodes as
// a JPEG.
func (p *Prober) Ping(ctx context.Context, target string, headers []Header, timeout time.Duration) event.Probe {
	return p.ask(ctx, target, timeout, func(req *http.Request) {
		req.Header.Set("Accept", "image/jpeg")
		req.Header.Set("Cache-Control", "no-cache")
		for _, h := range headers {
			if strings.EqualFold(h.Name, "Host") {
				req.Host = h.Value
				continue
			}
			req.Header.Set(h.Name, h.Value)
		}
	}, p.checkPing)
}

// Patience is how often and how long something is asked before it counts as
// silent.
type Patience struct {
	Tries   int           // at least one is made
	Pause   time.Duration // from the end of a try to the next
	Timeout time.Duration // of one try
	// Within bounds all of them: no try is begun that could end later. The first is
	// made whatever it is.
	Within time.Duration
}

// Alive asks the true origin. Any status under 500 is good, and the first good
// answer ends it: one request that was lost on the way is no silence. The probe is
// the last one's, from the start of the first.
func (p *Prober) Alive(ctx context.Context, target string, how Patience) event.Probe {
	start := p.now()
	for try := 1; ; try++ {
		one := p.ask(ctx, target, how.Timeout, nil, func(_ context.Context, res *http.Response, out *event.Probe) {
			out.Text = statusText(res)
			if res.StatusCode >= http.StatusInternalServerError {
				out.Kind = event.FailStatus
			}
		})
		one.At, one.Took = start.UTC(), p.now().Sub(start)
		last := one.OK || try >= how.Tries || one.Took+how.Pause+how.Timeout > how.Within || ctx.Err() != nil
		if last {
			if !one.OK && try > 1 {
				one.Text = fmt.Sprintf("%s (the last of %d tries)", one.Text, try)
			}
			return one
		}
		timer := time.NewTimer(how.Pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Answers asks a control address. Any answer is good.
func (p *Prober) Answers(ctx context.Context, target string, timeout time.Duration) event.Probe {
	return p.ask(ctx, target, timeout, nil, func(_ context.Context, res *http.Response, out *event.Probe) {
		out.Text = statusText(res)
	})
}

// Beat requests the address of a heartbeat and returns an error unless it is
// answered with a 2xx.
func (p *Prober) Beat(ctx context.Context, target string, timeout time.Duration) error {
	one := p.ask(ctx, target, timeout, nil, func(_ context.Context, res *http.Response, out *event.Probe) {
		out.Text = statusText(res)
		if res.StatusCode/100 != 2 {
			out.Kind = event.FailStatus
		}
	})
	if !one.OK {
		return fmt.Errorf("heartbeat_url: %s", one.Text) // its path is a secret
	}
	return nil
}

// ask makes one request. check looks at the answer and sets Text, and Kind if it
// is not good.
func (p *Prober) ask(ctx context.Context, target string, timeout time.Duration, prepare func(*http.Request), check func(context.Context, *http.Response, *event.Probe)) event.Probe {
	start := p.now()
	out := event.Probe{URL: shown(target), At: start.UTC()}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var stage stages
	req, err := http.NewRequestWithContext(stage.trace(ctx), http.MethodGet, target, http.NoBody)
	if err != nil {
		out.Kind, out.Text = event.FailConnect, "not an address that can be asked"
		return out
	}
	req.Header.Set("User-Agent", UserAgent)
	if prepare != nil {
		prepare(req)
	}
	res, err := p.transport.RoundTrip(req)
	if err != nil {
		out.Kind, out.Text = stage.explain(err, timeout)
	} else {
		out.Status = res.StatusCode
		check(ctx, res, &out)
		res.Body.Close()
	}
	out.OK = out.Kind == ""
	out.Took = p.now().Sub(start)
	return out
}

// readAll reads a bounded body.
func readAll(r io.Reader) (body []byte, tooLong bool, err error) {
	body, err = io.ReadAll(io.LimitReader(r, maxBody+1))
	return body, len(body) > maxBody, err
}

// shown is a URL as mails and logs may show it: a query may hold a key.
func shown(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	if u.RawQuery != "" {
		u.RawQuery = "..."
	}
	u.User = nil
	return u.String()
}
