package origin

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig has limits that a test on a slow machine never meets by accident.
func testConfig() Config {
	return Config{Deadline: 30 * time.Second, Connect: 30 * time.Second, Idle: 30 * time.Second, Total: time.Minute}
}

func newClient(t *testing.T, url string, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{Config: testConfig(), Place: DefaultPlace()}
	o.Place.Name, o.Place.URLs = "tokyo", []string{url}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// get fetches and reads the whole body.
func get(t *testing.T, c *Client, target string) (*Response, string, error) {
	t.Helper()
	resp, err := c.Do(t.Context(), Request{Method: http.MethodGet, Target: target})
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// rawServer answers each connection with serve, which gets everything up to the
// empty line that ends a request's head.
func rawServer(t *testing.T, serve func(head string, c net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := make(map[net.Conn]bool)
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				r := bufio.NewReader(c)
				for {
					head, err := readHead(r)
					if err != nil {
						return
					}
					serve(head, c)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

func readHead(r *bufio.Reader) (string, error) {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		if line == "\r\n" {
			return head.String(), nil
		}
		head.WriteString(line)
	}
}

// say is a rawServer that always writes the same and then closes.
func say(t *testing.T, text string) string {
	return rawServer(t, func(_ string, c net.Conn) {
		_, _ = io.WriteString(c, text)
		_ = c.Close()
	})
}

// tlsServer serves h with a certificate for example.com and 127.0.0.1 and gives
// the address with a file of its authority.
func tlsServer(t *testing.T, http2 bool, h http.Handler) (url, caFile string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = http2
	return startTLS(t, s)
}

// tlsServerWith hands each connection, which has agreed on HTTP/2, to serve.
func tlsServerWith(t *testing.T, serve func(*http.Server, *tls.Conn, http.Handler)) (url, caFile string) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": serve}
	s.TLS = &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	return startTLS(t, s)
}

func startTLS(t *testing.T, s *httptest.Server) (url, caFile string) {
	t.Helper()
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(caFile, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, caFile
}

func trusting(caFile string) func(*Options) {
	return func(o *Options) { o.Config.CAFile = caFile }
}

func wantKind(t *testing.T, err error, want Kind) {
	t.Helper()
	if got := KindOf(err); got != want {
		t.Fatalf("got kind %s (%v), want %s", got, err, want)
	}
}

// piped makes c speak to serve over a pipe, so that time in a synctest bubble
// stands still until everybody waits.
func piped(c *Client, serve func(net.Conn)) {
	c.dial.dial = func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			serve(server)
		}()
		return client, nil
	}
}
