package origin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// pass lets the clock of a synctest bubble pass.
func pass(d time.Duration) { <-time.After(d) }

// piece is what a scripted server writes, and its pause before that.
type piece struct {
	after time.Duration
	text  string
}

// script answers the first request of a connection, and leaves with the client.
func script(pieces ...piece) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReader(c)
		if _, err := readHead(r); err != nil {
			return
		}
		for _, p := range pieces {
			pass(p.after)
			if _, err := io.WriteString(c, p.text); err != nil {
				return
			}
		}
		_, _ = r.ReadByte() // keep the connection until the client leaves
	}
}

func realistic(o *Options) {
	o.Config = DefaultConfig() // 8 s, 1 s, 10 s, 60 s
}

func TestLimits(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
	for _, tc := range []struct {
		name  string
		serve func(net.Conn)
		read  time.Duration // the caller's pause before each read
		took  time.Duration
		limit *expired // nil: the body is whole
	}{
		{"never answers", script(), 0, 8 * time.Second, errDeadline},
		{"half a head", script(piece{0, "HTTP/1.1 200 OK\r\nX-A: "}), 0, 8 * time.Second, errDeadline},
		{"only early hints", script(piece{time.Second, "HTTP/1.1 103 Early Hints\r\n\r\n"}), 0, 8 * time.Second, errDeadline},
		{"slow head", script(piece{7 * time.Second, head + "0123456789"}), 0, 7 * time.Second, nil},
		{"head and no body", script(piece{3 * time.Second, head}), 0, 8 * time.Second, errDeadline},
		{"body stalls", script(piece{3 * time.Second, head + "0"}), 0, 13 * time.Second, errIdle},
		{"body pauses", script(piece{0, head + "0"}, piece{9 * time.Second, "1"}, piece{9 * time.Second, "23456789"}), 0, 18 * time.Second, nil},
		{"body trickles", script(
			piece{0, head + "0"}, piece{9 * time.Second, "1"}, piece{9 * time.Second, "2"}, piece{9 * time.Second, "3"}, piece{9 * time.Second, "4"},
			piece{9 * time.Second, "5"}, piece{9 * time.Second, "6"}, piece{9 * time.Second, "7"},
		), 0, 60 * time.Second, errTotal},
		{"the caller takes its time", script(piece{0, head + "01"}, piece{0, "23456789"}), 50 * time.Second, 100 * time.Second, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, "http://origin.example", realistic)
				piped(c, tc.serve)
				start := time.Now()
				resp, err := c.Do(t.Context(), Request{Method: "GET", Target: "/a.jpg"})
				if err == nil {
					for err == nil {
						pass(tc.read)
						_, err = resp.Body.Read(make([]byte, 16))
					}
					_ = resp.Body.Close()
				}
				if took := time.Since(start); took != tc.took {
					t.Errorf("took %s, want %s", took, tc.took)
				}
				if tc.limit == nil {
					if err != io.EOF {
						t.Errorf("got %v", err)
					}
				} else if KindOf(err) != KindTimeout || !errors.Is(err, tc.limit) || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("got %v, want %v", err, tc.limit)
				}
				c.Close()
				pass(time.Minute) // for the script to find out
			})
		})
	}
}

func TestConnectLimitCoversTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "https://origin.example", realistic)
		piped(c, func(n net.Conn) { _, _ = io.Copy(io.Discard, n) }) // takes the hello and is silent
		dial := c.dial.dial
		c.dial.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			pass(600 * time.Millisecond)
			return dial(ctx, network, addr)
		}
		start := time.Now()
		_, err := c.Do(t.Context(), Request{Method: "GET", Target: "/"})
		wantKind(t, err, KindTLS)
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestConnectLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://origin.example", realistic)
		c.dial.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		}
		start := time.Now()
		_, err := c.Do(t.Context(), Request{Method: "GET", Target: "/"})
		wantKind(t, err, KindConnect)
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestCallerThatLeavesEndsTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://origin.example", realistic)
		piped(c, script(piece{2 * time.Second, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0"}))
		for _, after := range []time.Duration{time.Second, 3 * time.Second} { // before the head, in the body
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(after, cancel)
			start := time.Now()
			resp, err := c.Do(ctx, Request{Method: "GET", Target: "/"})
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			wantKind(t, err, KindCancelled)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v is not context.Canceled", err)
			}
			if took := time.Since(start); took != after {
				t.Errorf("took %s, want %s", took, after)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Do(ctx, Request{Method: "GET", Target: "/"})
		wantKind(t, err, KindTimeout)
		c.Close()
		pass(time.Minute) // for the scripts to find out
	})
}

func TestStartIsTheInstantBeforeTheRequest(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var sent bool
	c := newClient(t, rawServer(t, func(_ string, c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}), func(o *Options) {
		o.Now = func() time.Time { return at }
	})
	dial := c.dial.dial
	c.dial.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		sent = true
		at = at.Add(time.Hour)
		return dial(ctx, network, addr)
	}
	resp, _, err := get(t, c, "/")
	if err != nil || !sent || !resp.Start.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestConnectionsFollowTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://origin.example", realistic)
		dials := 0
		piped(c, func(n net.Conn) {
			r := bufio.NewReader(n)
			for {
				if _, err := readHead(r); err != nil {
					return
				}
				if _, err := io.WriteString(n, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
					return
				}
			}
		})
		dial := c.dial.dial
		c.dial.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return dial(ctx, network, addr)
		}
		for range 10 { // never idle for long
			if _, _, err := get(t, c, "/"); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
		}
		if dials != 2 {
			t.Errorf("10 requests in 10 minutes made %d connections, want 2", dials)
		}
		pass(2 * time.Minute) // all are closed by now
		if _, _, err := get(t, c, "/"); err != nil {
			t.Fatal(err)
		}
		if dials != 3 {
			t.Errorf("%d connections after a pause, want 3", dials)
		}
		c.Close()
		pass(time.Minute) // for the scripts to find out
	})
}

func TestKeptConnectionClosedByTheOriginIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://origin.example", realistic)
		piped(c, script(piece{0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}))
		dial := c.dial.dial
		dials := 0
		c.dial.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			return dial(ctx, network, addr)
		}
		for range 3 { // script serves one request per connection and goes at the second
			if _, body, err := get(t, c, "/"); err != nil || body != "ok" {
				t.Fatalf("got %q, %v", body, err)
			}
		}
		if dials != 3 {
			t.Errorf("made %d connections, want 3", dials)
		}
		c.Close()
		pass(time.Minute) // for the scripts to find out
	})
}

func TestLimitsAreNotSharedBetweenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "http://origin.example", realistic)
		piped(c, func(n net.Conn) {
			r := bufio.NewReader(n)
			for {
				if _, err := readHead(r); err != nil {
					return
				}
				pass(5 * time.Second)
				if _, err := io.WriteString(n, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
					return
				}
			}
		})
		for range 5 {
			if _, _, err := get(t, c, "/"); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
		pass(time.Minute) // for the scripts to find out
	})
}
