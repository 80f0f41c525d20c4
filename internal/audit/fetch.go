package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/dustin/go-humanize"
)

// Accept is what a browser of today sends with an image, so that what a site already
// negotiates is seen as its viewers see it.
const Accept = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"

const agent = "karui-audit"

// fetcher gets pages and images.
type fetcher struct {
	client *http.Client
	limits Limits
}

func newFetcher(limits Limits) *fetcher {
	return &fetcher{limits: limits, client: &http.Client{
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: limits.Parallel, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case len(via) > maxRedirects:
				return fmt.Errorf("more than %d redirects", maxRedirects)
			case r.URL.Scheme != "http" && r.URL.Scheme != "https":
				return fmt.Errorf("it redirects to %q, and only http and https are asked", cut(r.URL.Redacted(), 200))
			}
			return nil
		},
	}}
}

func (f *fetcher) close() { f.client.CloseIdleConnections() }

// answer is what an address gave.
type answer struct {
	body        []byte
	contentType string
	// from is where it came from in the end.
	from string
}

// get fetches what is at an address, of at most so many bytes.
func (f *fetcher) get(ctx context.Context, address, accept string, most int64) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.limits.Fetch, fmt.Errorf("no whole answer within %s", f.limits.Fetch))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answer{}, plainly(ctx, err)
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", accept)
	resp, err := f.client.Do(req)
	if err != nil {
		return answer{}, plainly(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return answer{}, fmt.Errorf("it was answered with %s", cut(resp.Status, 80))
	}
	body, err := readAll(resp.Body, most)
	if err != nil {
		return answer{}, plainly(ctx, err)
	}
	return answer{body, resp.Header.Get("Content-Type"), resp.Request.URL.String()}, nil
}

// tooLarge is about an answer that is larger than most.
type tooLarge struct{ most int64 }

func (e tooLarge) Error() string {
	return fmt.Sprintf("it is over %s", humanize.IBytes(uint64(e.most))) //nolint:gosec // a limit
}

func readAll(r io.Reader, most int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > most {
		return nil, tooLarge{most}
	}
	return body, nil
}

// plainly leaves the address out of an error that is shown beside it, and says which
// limit it ran into.
func plainly(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}

// cut bounds a text of others that stands in a message.
func cut(s string, most int) string {
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
