package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// pair gives both ends of a connection, the server's end behind the listener
// under test. Its buffers hold less than a body, so that a viewer that does not
// read is seen, and more than a segment on loopback, so that every read shows.
func pair(t *testing.T, connections int, idle time.Duration) (*listener, *conn, *net.TCPConn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newListener(inner, connections, idle)
	t.Cleanup(func() { _ = l.Close() })
	client := connect(t, l)
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	c, ok := accepted.(*conn)
	if !ok {
		t.Fatalf("accepted a %T", accepted)
	}
	if err := errors.Join(c.SetWriteBuffer(256<<10), client.SetReadBuffer(256<<10)); err != nil {
		t.Fatal(err)
	}
	return l, c, client
}

func connect(t *testing.T, l *listener) *net.TCPConn {
	t.Helper()
	d, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c, ok := d.(*net.TCPConn)
	if !ok {
		t.Fatalf("dialled a %T", d)
	}
	return c
}

const bodySize = 8 << 20

func someBytes() []byte {
	b := make([]byte, bodySize)
	for i := range b {
		b[i] = byte(i * 7 / 5)
	}
	return b
}

// senders are the two ways in which a body leaves.
func senders(t *testing.T, body []byte) map[string]func(*conn) (int64, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "body") // it is there until the last parallel subtest has ended
	if err := os.WriteFile(name, body, 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]func(*conn) (int64, error){
		"memory": func(c *conn) (int64, error) {
			n, err := c.Write(body)
			return int64(n), err
		},
		"file": func(c *conn) (int64, error) {
			f, err := os.Open(name)
			if err != nil {
				return 0, err
			}
			defer f.Close()
			return c.ReadFrom(&io.LimitedReader{R: f, N: int64(len(body))})
		},
		"reader": func(c *conn) (int64, error) { return c.ReadFrom(bytes.NewReader(body)) },
		"head and body": func(c *conn) (int64, error) {
			c.Cork()
			head, err := c.Write(body[:900])
			if err != nil {
				return 0, err
			}
			n, err := c.ReadFrom(bytes.NewReader(body[900:]))
			return int64(head) + n, errors.Join(err, c.Uncork())
		},
	}
}

func TestDeadViewerIsEnded(t *testing.T) {
	for name, send := range senders(t, someBytes()) {
		t.Run(name, func(t *testing.T) {
			_, c, _ := pair(t, 10, 50*time.Millisecond)
			began := time.Now()
			n, err := send(c)
			if !errors.Is(err, os.ErrDeadlineExceeded) || n >= bodySize {
				t.Errorf("%d bytes went, %v", n, err)
			}
			if took := time.Since(began); took < 50*time.Millisecond {
				t.Errorf("ended after %v already", took)
			}
		})
	}
}

// A viewer that takes several times the limit for the whole is served to its end.
func TestSlowViewerIsServed(t *testing.T) {
	body := someBytes()
	// A receiver tells of room in its buffer in large steps only, here about ten a
	// second.
	const idle, pace = 1500 * time.Millisecond, 50 * time.Millisecond
	for name, send := range senders(t, body) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c, client := pair(t, 10, idle)
			type outcome struct {
				n   int64
				err error
			}
			sent := make(chan outcome, 1)
			go func() {
				n, err := send(c)
				sent <- outcome{n, errors.Join(err, c.Close())}
			}()
			pause := time.NewTicker(pace)
			defer pause.Stop()
			var got bytes.Buffer
			began := time.Now()
			for time.Since(began) < 3*idle {
				<-pause.C
				if _, err := io.CopyN(&got, client, 64<<10); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.Copy(&got, client); err != nil {
				t.Fatal(err)
			}
			if o := <-sent; o.err != nil || o.n != bodySize {
				t.Errorf("%d bytes went, %v", o.n, o.err)
			}
			if !bytes.Equal(got.Bytes(), body) {
				t.Errorf("%d bytes came, and not those that were sent", got.Len())
			}
		})
	}
}

func TestConnectionsOverTheBoundWait(t *testing.T) {
	l, first, _ := pair(t, 1, time.Minute)
	second := connect(t, l)
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	if _, err := io.WriteString(second, "hello"); err != nil {
		t.Errorf("the second connection was refused: %v", err)
	}
	select {
	case <-accepted:
		t.Fatal("the second connection was accepted beside the first")
	default:
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	// A second close must not free a second place.
	_ = first.Close()
	c := <-accepted
	defer c.Close()
	b := make([]byte, 5)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello" {
		t.Errorf("the second connection brought %q, %v", b, err)
	}
}

func TestClosedListenerAcceptsNobody(t *testing.T) {
	l, _, _ := pair(t, 1, time.Minute)
	done := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		done <- err
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
}

// Whatever is written between Cork and Uncork arrives, whole and in order.
func TestCork(t *testing.T) {
	body := someBytes()[:20_000]
	for name, send := range map[string]func(c *conn) error{
		"head alone": func(c *conn) error { _, err := c.Write(body[:500]); return err },
		"head and bytes": func(c *conn) error {
			_, err := c.Write(body[:500])
			n, err2 := c.Write(body[500:9000])
			if n != 8500 {
				t.Errorf("%d bytes went, want 8500", n)
			}
			return errors.Join(err, err2)
		},
		"long head": func(c *conn) error { _, err := c.Write(body[:corkMost+1]); return err },
		"head and another reader": func(c *conn) error {
			_, err := c.Write(body[:500])
			n, err2 := c.ReadFrom(io.LimitReader(bytes.NewReader(body[500:]), 700))
			if n != 700 {
				t.Errorf("%d bytes went, want 700", n)
			}
			return errors.Join(err, err2)
		},
		"head and body": func(c *conn) error {
			_, err := c.Write(body[:500])
			n, err2 := c.ReadFrom(bytes.NewReader(body[500:]))
			if n != int64(len(body)-500) {
				t.Errorf("%d bytes went, want %d", n, len(body)-500)
			}
			return errors.Join(err, err2)
		},
		"body alone": func(c *conn) error { _, err := c.ReadFrom(bytes.NewReader(body)); return err },
		"nothing":    func(*conn) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, c, client := pair(t, 10, 10*time.Second)
			want := map[string]int{
				"head alone": 500, "head and bytes": 9000, "long head": corkMost + 1, "head and another reader": 1200,
				"head and body": len(body), "body alone": len(body),
			}[name]
			for range 2 {
				c.Cork()
				if err := errors.Join(send(c), c.Uncork()); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(client)
			if err != nil || !bytes.Equal(got, append(bytes.Clone(body[:want]), body[:want]...)) {
				t.Errorf("%d bytes came, want twice the first %d, %v", len(got), want, err)
			}
		})
	}
}
