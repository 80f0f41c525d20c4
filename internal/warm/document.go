package warm

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// agent is what pages and images are asked for as.
const agent = "karui-warm"

// maxRedirects bounds the redirects of one document.
const maxRedirects = 5

// document is what was fetched or read.
type document struct {
	body        []byte
	contentType string
	// from is where it came from in the end.
	from address
}

// fetcher gets documents: sitemaps and pages, never images.
type fetcher struct {
	client *http.Client
	scope  *Scope
	limits Limits
}

func newFetcher(scope *Scope, limits Limits) *fetcher {
	f := &fetcher{scope: scope, limits: limits}
	f.client = &http.Client{
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			to, ok := resolve(address{}, r.URL.String())
			switch {
			case len(via) > maxRedirects:
				return fmt.Errorf("more than %d redirects", maxRedirects)
			case !ok || !scope.mayFetch(to):
				return fmt.Errorf("it redirects to %s, which is none of the site's hosts: name that address, or add --host %s",
					cut(r.URL.Redacted(), 200), cut(hostname(r.URL.Host), 80))
			}
			return nil
		},
	}
	return f
}

func (f *fetcher) close() { f.client.CloseIdleConnections() }

// statusError is about a document that was answered with another status than 200.
type statusError struct {
	code   int
	status string
}

func (e statusError) Error() string { return "it was answered with " + cut(e.status, 80) }

// gone tells whether an error says that a document does not exist.
func gone(err error) bool {
	s, ok := errors.AsType[statusError](err)
	return ok && (s.code == http.StatusNotFound || s.code == http.StatusGone)
}

// get fetches a document of at most so many bytes, unpacked.
func (f *fetcher) get(ctx context.Context, from address, most int64) (document, error) {
	ctx, cancel := context.WithTimeout(ctx, f.limits.Fetch)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return document{}, err
	}
	req.Header.Set("User-Agent", agent)
	resp, err := f.client.Do(req)
	if err != nil {
		return document{}, plainly(err, f.limits.Fetch)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return document{}, statusError{resp.StatusCode, resp.Status}
	}
	body, err := readBounded(resp.Body, most)
	if err != nil {
		return document{}, plainly(err, f.limits.Fetch)
	}
	d := document{body: body, contentType: resp.Header.Get("Content-Type"), from: from}
	if to, ok := resolve(address{}, resp.Request.URL.String()); ok {
		d.from = to
	}
	return d, nil
}

// readFile reads a document from a file.
func readFile(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: name a file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file, most)
}

// readBounded reads all of r, and unpacks what is packed by gzip. Neither form may be
// over most bytes.
func readBounded(r io.Reader, most int64) ([]byte, error) {
	body, err := readAll(r, most)
	if err != nil || !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		return body, err
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if body, err = readAll(z, most); err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return body, nil
}

func readAll(r io.Reader, most int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > most {
		return nil, fmt.Errorf("it is over %d bytes", most)
	}
	return body, nil
}

// plainly leaves the address out of an error that is shown beside it, and says how
// long was waited.
func plainly(err error, limit time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no whole answer within %s", limit)
	}
	if outer := (*url.Error)(nil); errors.As(err, &outer) {
		return outer.Err
	}
	return err
}
