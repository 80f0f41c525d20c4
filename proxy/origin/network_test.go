package origin

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// A name with addresses of both families is reached at whichever answers.
func TestBothFamilies(t *testing.T) {
	ips, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", "localhost")
	if err != nil {
		t.Skipf("localhost cannot be resolved: %v", err)
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s cannot be listened on, and is left out: %v", address, err)
			continue
		}
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Host)
		})}}
		s.Start()
		defer s.Close()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		v4 := strings.HasPrefix(address, "127.")
		if slices.ContainsFunc(ips, func(ip netip.Addr) bool { return ip.Unmap().Is4() == v4 }) {
			_, body, err := get(t, newClient(t, "http://localhost:"+port), "/")
			if err != nil || body != "localhost:"+port {
				t.Errorf("%s by name: %q, %v", address, body, err)
			}
		}
		_, body, err := get(t, newClient(t, "http://"+l.Addr().String()), "/")
		if err != nil || body != l.Addr().String() {
			t.Errorf("%s by address: %q, %v", address, body, err)
		}
	}
}

// Nobody but the configured address is ever asked, whatever the answer and the
// environment say.
func TestRedirectsAndProxiesAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, other.URL)
	}
	for _, status := range []string{"301", "302", "303", "307", "308"} {
		url := say(t, "HTTP/1.1 "+status+" Moved\r\nLocation: "+other.URL+"/\r\nContent-Length: 0\r\n\r\n")
		resp, _, err := get(t, newClient(t, url), "/")
		if err != nil || resp.Header.Get("Location") != other.URL+"/" {
			t.Errorf("%s: %+v, %v", status, resp, err)
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("somebody else was asked %d times", n)
	}
}
