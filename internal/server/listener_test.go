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
	client := dial(t, l)
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

func dial(t *testing.T, l *listener) *net.TCPConn {
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
	const idle, pace = 500 * time.Millisecond, 25 * time.Millisecond
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
	second := dial(t, l)
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
