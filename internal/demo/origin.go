package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/html"
)

// picture is one image that the visitors ask for.
type picture struct {
	Path  string // with its query, as it stands in a request
	Title string
}

// Bounds of what is taken from a real site.
const (
	maxPictures = 8
	pageMax     = 4 << 20
	// siteTimeout bounds one answer of a real site, as far as its headers.
	siteTimeout = 10 * time.Second
)

// gate is the site's own server as karui and the edge reach it: the sample images
// or a relay to a real site, and broken on demand.
type gate struct {
	url    string // by which it is reached
	broken atomic.Bool
	next   http.Handler
}

// ServeHTTP answers, or fails as a server does whose database is gone.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.broken.Load() {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "the origin is broken", http.StatusInternalServerError)
		return
	}
	g.next.ServeHTTP(w, r)
}

// siteProxy asks a real site, and passes its answers on as they are.
func siteProxy(site *url.URL, transport http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(site)
			r.Out.Host = site.Host
		},
		Transport: transport,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "the site cannot be asked: "+err.Error(), http.StatusBadGateway)
		},
	}
}

func siteTransport() *http.Transport {
	return &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		// Bytes must arrive as the site sent them.
		DisableCompression:    true,
		ResponseHeaderTimeout: siteTimeout, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}
}

// discover looks for images of the site itself on its page.
func discover(ctx context.Context, site *url.URL, transport http.RoundTripper) ([]picture, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*siteTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, site.JoinPath("/").String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "karui-demo")
	client := &http.Client{Transport: transport}
	resp, err := client.Do(req)
	if err != nil {
		return nil, &siteError{site: site, cause: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, pageMax))
	if err != nil {
		return nil, &siteError{site: site, cause: err}
	}
	return imagesOf(body, resp.Request.URL, site.Host), nil
}

// siteError is about a real site that cannot be asked.
type siteError struct {
	site  *url.URL
	cause error
}

func (e *siteError) Error() string {
	cause := e.cause
	if in := (*url.Error)(nil); errors.As(cause, &in) {
		cause = in.Err // without the address once more
	}
	why := cause.Error()
	if errors.Is(e.cause, context.DeadlineExceeded) {
		why = fmt.Sprintf("no answer within %s", 2*siteTimeout)
	}
	return fmt.Sprintf("%s does not answer: %s\nSee that a browser on this machine can open it, and that --origin names the right scheme, host and port; without --origin, sample images are shown.",
		e.site.Redacted(), why)
}

func (e *siteError) Unwrap() error { return e.cause }

// imagesOf lists images of a page with convertible names that lie at host, each
// path once, in the order of the page.
func imagesOf(page []byte, base *url.URL, host string) []picture {
	var out []picture
	seen := make(map[string]bool)
	tokens := html.NewTokenizer(bytes.NewReader(page))
	for len(out) < maxPictures {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		token := tokens.Token()
		if token.Data != "img" {
			continue
		}
		var src, alt string
		for _, a := range token.Attr {
			switch a.Key {
			case "src":
				src = a.Val
			case "alt":
				alt = a.Val
			}
		}
		u, err := base.Parse(strings.TrimSpace(src))
		if src == "" || err != nil || u.Host != host && u.Host != base.Host {
			continue
		}
		p, err := newPicture(u.RequestURI(), alt)
		if err != nil || seen[p.Path] {
			continue
		}
		seen[p.Path] = true
		out = append(out, p)
	}
	return out
}

// newPicture checks a path with its query, as a person gave it.
func newPicture(target, title string) (picture, error) {
	u, err := url.ParseRequestURI(target)
	if err != nil || u.Host != "" || !strings.HasPrefix(target, "/") || len(target) > 1024 {
		return picture{}, fmt.Errorf("the path of an image is %q, but it must be like /images/photo.jpg", target)
	}
	switch strings.ToLower(path.Ext(u.Path)) {
	case ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif":
	default:
		return picture{}, fmt.Errorf("the path of an image is %q, but its name must end in .jpg, .jpeg, .png or .gif", target)
	}
	title = strings.Join(strings.Fields(title), " ")
	if r := []rune(title); len(r) > 60 {
		title = string(r[:59]) + "…"
	}
	if title == "" {
		title = path.Base(u.Path)
	}
	return picture{Path: u.RequestURI(), Title: title}, nil
}

// service is an HTTP server on this machine, which close ends.
type service struct {
	URL     string
	server  *http.Server
	running sync.WaitGroup
}

// serve starts a server on the listener, which it closes in the end.
func serve(l net.Listener, h http.Handler) *service {
	s := &service{URL: "http://" + l.Addr().String(), server: &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
	}}
	s.running.Go(func() { _ = s.server.Serve(l) })
	return s
}

func (s *service) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		s.server.Close()
	}
	s.running.Wait()
}
