package origin

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// resetting answers one request of each connection, and takes a second one only
// to close the connection on it.
func resetting(requests *atomic.Int64) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReader(c)
		for first := true; ; first = false {
			if _, err := readHead(r); err != nil {
				return
			}
			requests.Add(1)
			if !first {
				return
			}
			if _, err := io.WriteString(c, fine); err != nil {
				return
			}
		}
	}
}

func TestLostConnectionsAreReplacedAsOftenAsAllowed(t *testing.T) {
	for _, tc := range []struct {
		replays  int
		requests int64 // for the one after all connections have had their first
		good     bool
	}{{0, 1, false}, {1, 2, false}, {2, 3, false}, {3, 4, false}, {9, 6, true}} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, "http://origin.example", realistic)
			var requests atomic.Int64
			piped(c, resetting(&requests))
			// Five connections are kept, each of them used once.
			var all []*Response
			for range 5 {
				resp, err := c.Do(t.Context(), Request{Method: "GET", Target: "/"})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, resp)
			}
			for _, resp := range all {
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			synctest.Wait()
			before := requests.Load()
			resp, err := c.do(t.Context(), Request{Method: "GET", Target: "/"}, allowance{
				first: time.Second, late: errDeadline, total: time.Minute, replays: tc.replays,
			})
			if err == nil {
				_ = resp.Body.Close()
			} else {
				wantKind(t, err, KindReset)
			}
			synctest.Wait()
			if n := requests.Load() - before; n != tc.requests || (err == nil) != tc.good {
				t.Errorf("%d allowed: the origin saw %d requests, and the end was %v", tc.replays, n, err)
			}
			c.Close()
			pass(time.Minute) // for the scripts to find out
		})
	}
}

// The bound holds behind TLS as well, and HTTP/2 has no need of it.
func TestLostConnectionsBehindTLS(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		var requests atomic.Int64
		url, ca := tlsServer(t, h2, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if requests.Add(1) > 1 {
				panic(http.ErrAbortHandler) // resets the connection, or the stream
			}
			_, _ = io.WriteString(w, "ok")
		}))
		c := newClient(t, url, trusting(ca))
		if _, body, err := get(t, c, "/"); err != nil || body != "ok" {
			t.Fatalf("%q, %v", body, err)
		}
		_, err := c.do(t.Context(), Request{Method: "GET", Target: "/"}, allowance{first: time.Minute, late: errDeadline, total: time.Minute})
		wantKind(t, err, KindReset)
		if n := requests.Load(); n != 2 {
			t.Errorf("HTTP/2 %t: the origin saw %d requests", h2, n)
		}
	}
}
