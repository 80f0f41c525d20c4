package warm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"karui/convert/header"
	"karui/proxy/rules"
)

// Proxy is how the proxy is asked.
type Proxy struct {
	// URL is its address, such as http://127.0.0.1:8080.
	URL *url.URL
	// Routing is the header that names the site, and Key the edge's secret, sent as
	// KeyHeader; an empty Key is not sent.
	Routing, Site, KeyHeader, Key string
	// Host is what requests carry, empty for that of URL.
	Host string
	// Short is ttl.short: what leaves with a longer lifetime is settled.
	Short time.Duration
}

// answerTime is how long one answer may take. The proxy gives its origin 60 s for a
// body by default.
const answerTime = 90 * time.Second

// maxBody bounds one answer; what is larger is no image for a page.
const maxBody = 1 << 30

// answer is what came of one request.
type answer struct {
	// unreached says why nobody answered, nil if somebody did.
	unreached error
	status    int
	header    http.Header
	// bytes is the length of the body, sniffed what its first bytes are, and digest the
	// name of all of them.
	bytes   int64
	sniffed header.Format
	digest  rules.Digest
	// broken says why the body is not whole, nil if it is.
	broken error
}

// asker asks the proxy.
type asker struct {
	proxy  Proxy
	client *http.Client
}

func newAsker(p Proxy, parallel int) *asker {
	return &asker{proxy: p, client: &http.Client{
		Transport: &http.Transport{
			Proxy:       nil, // karui is asked itself
			DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, TLSHandshakeTimeout: 5 * time.Second,
			DisableCompression: true, MaxIdleConnsPerHost: parallel, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (a *asker) close() { a.client.CloseIdleConnections() }

// ask asks for a target in one form, and reads the answer to its end.
func (a *asker) ask(ctx context.Context, target string, form Form) answer {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	req, err := a.request(ctx, target, form)
	if err != nil {
		return answer{unreached: err}
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return answer{unreached: plainly(err, answerTime)}
	}
	defer resp.Body.Close()
	out := answer{status: resp.StatusCode, header: resp.Header}
	sum := sha256.New()
	body := io.TeeReader(io.LimitReader(resp.Body, maxBody+1), sum)
	prefix := make([]byte, header.SniffLen)
	n, err := io.ReadFull(body, prefix)
	out.bytes, out.sniffed = int64(n), header.Sniff(prefix[:n])
	if err == nil {
		var rest int64
		rest, err = io.Copy(io.Discard, body)
		if out.bytes += rest; out.bytes > maxBody {
			err = fmt.Errorf("it is over %d bytes", maxBody)
		}
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && (resp.ContentLength < 0 || resp.ContentLength == out.bytes) {
		err = nil // it is shorter than what is looked at
	}
	out.digest = rules.Digest(sum.Sum(nil)[:16])
	if err != nil {
		out.broken = plainly(err, answerTime)
	}
	return out
}

// request asks as the edge would.
func (a *asker) request(ctx context.Context, target string, form Form) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.proxy.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	// Opaque goes out byte for byte. A target of two slashes would be taken for a host.
	req.URL.Opaque, req.URL.Path, req.URL.RawPath, req.URL.RawQuery = target, "", "", ""
	if strings.HasPrefix(target, "//") {
		req.URL.Opaque = "//" + req.URL.Host + target
	}
	if a.proxy.Host != "" {
		req.Host = a.proxy.Host
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", form.accept())
	req.Header.Set(a.proxy.Routing, a.proxy.Site)
	if a.proxy.Key != "" {
		req.Header.Set(a.proxy.KeyHeader, a.proxy.Key)
	}
	return req, nil
}
