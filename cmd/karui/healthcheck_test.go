package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answering is an admin listener on an address of this machine.
func answering(t *testing.T, address string, handler http.HandlerFunc) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("cannot listen on %s here: %v", address, err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	s.Start()
	t.Cleanup(s.Close)
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func readyz(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/readyz" || r.Method != http.MethodGet {
		w.WriteHeader(http.StatusTeapot)
	}
}

func TestHealthcheck(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // must not be asked
	port := answering(t, "127.0.0.1:0", readyz)
	site := "\nsites: [{id: shop, default: true, origins: [{name: a, urls: [\"https://www.example.com\"]}]}]\n"
	token := `, tokens: [{name: probe, token: "0123456789abcdef", rights: [read]}]`
	for name, args := range map[string][]string{
		"address":            {"--admin", "http://127.0.0.1:" + port},
		"address with slash": {"--admin", "http://127.0.0.1:" + port + "/"},
		"configuration":      {"--config", file(t, `admin: { listen: "127.0.0.1:`+port+`" }`+site)},
		"any address":        {"--config", file(t, `admin: { listen: ":`+port+`"`+token+` }`+site)},
		"any IPv4 address":   {"--config", file(t, `admin: { listen: "0.0.0.0:`+port+`"`+token+` }`+site)},
		"any IPv6 address":   {"--config", file(t, `admin: { listen: "[::]:`+port+`"`+token+` }`+site)},
		"no sites (--origin)": {
			"--config", file(t, `admin: { listen: "127.0.0.1:`+port+`" }`), "--timeout", "20s",
		},
	} {
		if code, stdout, stderr := karui(t, append([]string{"healthcheck"}, args...)...); code != 0 || stdout != "ready\n" || stderr != "" {
			t.Errorf("%s: %d %q %q", name, code, stdout, stderr)
		}
	}
	t.Setenv("KARUI_ADMIN_LISTEN", "127.0.0.1:"+port)
	if code, stdout, stderr := karui(t, "healthcheck", "--config", "/dev/null"); code != 0 {
		t.Errorf("from the environment: %d %q %q", code, stdout, stderr)
	}
}

func TestHealthcheckOverIPv6(t *testing.T) {
	port := answering(t, "[::1]:0", readyz)
	for _, listen := range []string{"[::1]:", ":", "[::]:"} {
		t.Setenv("KARUI_ADMIN_LISTEN", listen+port)
		t.Setenv("KARUI_ADMIN_TOKENS", `[{"name": "probe", "token": "0123456789abcdef", "rights": ["read"]}]`)
		if code, stdout, stderr := karui(t, "healthcheck", "--config", "/dev/null"); code != 0 || stdout != "ready\n" {
			t.Errorf("%s: %d %q %q", listen, code, stdout, stderr)
		}
	}
}

// What is wrong is said in one line.
func TestHealthcheckFails(t *testing.T) {
	closed := func() string { // an address where nobody listens
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}()
	hanging := make(chan struct{})
	defer close(hanging)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		args    []string
		word    string
	}{
		"drains": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, "not\nready\n", strings.Repeat("x", 1000))
		}, nil, `/readyz answered 503: "not ready xxx`},
		"somebody else": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, nil, "answered 302"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hanging:
			case <-r.Context().Done():
			}
		}, []string{"--timeout", "50ms"}, "has not answered within 50ms"},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("SSH-2.0\r\n"))
				_ = conn.Close()
			}
		}, nil, "ask http://127.0.0.1:"},
		"nobody": {nil, []string{"--admin", "http://" + closed}, "connection refused (nothing listens there: is karui running, and is this its admin.listen?"},
	} {
		args := []string{"healthcheck"}
		if c.handler != nil {
			args = append(args, "--admin", "http://127.0.0.1:"+answering(t, "127.0.0.1:0", c.handler))
		}
		code, stdout, stderr := karui(t, append(args, c.args...)...)
		if code != 1 || stdout != "" || !strings.Contains(stderr, c.word) || strings.Count(stderr, "\n") != 1 || len(stderr) > 400 {
			t.Errorf("%s: %d %q %q", name, code, stdout, stderr)
		}
	}
}

// A karui that has just started gets time, but not for ever.
func TestHealthcheckWaits(t *testing.T) {
	var asked atomic.Int32
	port := answering(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	if code, stdout, stderr := karui(t, "healthcheck", "--wait", "1m", "--admin", "http://127.0.0.1:"+port); code != 0 || stdout != "ready\n" || stderr != "" || asked.Load() != 4 {
		t.Errorf("%d %q %q, asked %d times", code, stdout, stderr, asked.Load())
	}
	port = answering(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if code, stdout, stderr := karui(t, "healthcheck", "--wait", "300ms", "--admin", "http://127.0.0.1:"+port); code != 1 || stdout != "" ||
		!strings.Contains(stderr, "not ready within 300ms") || !strings.Contains(stderr, "answered 503") || !strings.Contains(stderr, "just started") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}

func TestWhenSystemdIsTold(t *testing.T) {
	var well atomic.Bool
	var asked atomic.Int32
	port := answering(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 3 {
			well.Store(true)
		}
		if !well.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	started := make(chan string, 1)
	started <- "127.0.0.1:" + port
	told := 0
	tellReady(t.Context(), started, time.Minute, func() {
		if told++; !well.Load() {
			t.Error("before it was ready")
		}
	})
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	// It does not come up, and is left alone all the same.
	tellReady(t.Context(), make(chan string), time.Millisecond, func() { told++ })
	if told != 2 {
		t.Errorf("told %d times", told)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tellReady(ended, make(chan string), time.Minute, func() { t.Error("after the end") })
}

func TestHealthcheckUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--admin", "127.0.0.1:9090"},
		{"--admin", "ftp://127.0.0.1"},
		{"--admin", "http://"},
		{"--admin", ""},
		{"--admin", "http://127.0.0.1:9090", "--config", "/dev/null"},
		{"--timeout", "0s"},
		{"--timeout", "-1s"},
		{"--timeout", "2h"},
		{"--timeout", "3"},
		{"--wait", "-1s"},
		{"--wait", "11m"},
		{"extra"},
		{"--config", "/nowhere/karui.yaml"},
		{"--config", file(t, "admin: { listen: nonsense }\n")},
		{"--config", file(t, "admin: { listen: \"127.0.0.1:0\" }\n")},
		{"--config", file(t, "admn: {}\n")},
	} {
		if code, stdout, stderr := karui(t, append([]string{"healthcheck"}, args...)...); code != 2 || stdout != "" || stderr == "" {
			t.Errorf("%q: %d %q %q", args, code, stdout, stderr)
		}
	}
}

func TestDialable(t *testing.T) {
	for listen, want := range map[string][]string{
		":9090":              {"127.0.0.1:9090", "[::1]:9090"},
		"0.0.0.0:9090":       {"127.0.0.1:9090"},
		"[::]:9090":          {"127.0.0.1:9090", "[::1]:9090"},
		"[::0]:9090":         {"127.0.0.1:9090", "[::1]:9090"},
		"10.0.0.5:1":         {"10.0.0.5:1"},
		"[fe80::1%eth0]:9":   {"[fe80::1%eth0]:9"},
		"localhost:9090":     {"localhost:9090"},
		"karui.internal:443": {"karui.internal:443"},
	} {
		if got, err := dialable(listen); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", listen, got, err, want)
		}
	}
}
