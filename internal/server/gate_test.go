package server

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whoever holds the operators' connections with requests that never end takes no file
// that viewers need, and the log says so.
func TestOperatorsConnectionsAreBounded(t *testing.T) {
	r := start(t, nil)
	r.until(r.admin+"/healthz", isOK)
	http.DefaultClient.CloseIdleConnections()
	const more = 40
	ends := make(chan error, operatorsMost+operatorsSpare+more)
	for range cap(ends) {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.admin, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "POST /status/enter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 8000\r\n\r\ntoken=")
		go func() {
			_, err := c.Read(make([]byte, 1))
			ends <- err
		}()
	}
	for i := range more {
		if err := <-ends; err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d over the bound: %v", i, err)
		}
	}
	if log := r.log.String(); strings.Count(log, "operators' listener has all the connections") != 1 || !strings.Contains(log, `"level":"WARN"`) {
		t.Errorf("the log does not say so once:\n%s", log)
	}
	r.until(r.url+"/ping.jpg", isOK)
}

// Some places are for this machine alone.
func TestTheGateKeepsPlacesForThisMachine(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(inner, slog.New(slog.DiscardHandler))
	defer g.Close()
	near := false
	g.most, g.spare, g.near = 1, 1, func(net.Addr) bool { return near }
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	take := func() net.Conn {
		dial()
		c, err := g.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := take()
	near = true
	take()
	if g.held.Load() != 2 {
		t.Fatalf("%d held", g.held.Load())
	}
	near = false
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = g.Accept() // it closes the next, and waits
	}()
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("one over the bound was answered")
	}
	_ = errors.Join(g.Close(), first.Close())
	_ = first.Close() // which gives one place back, not two
	<-closed
	if g.held.Load() != 1 {
		t.Errorf("%d held", g.held.Load())
	}
}

// failing is a listener that cannot take connections.
type failing struct {
	net.Listener
	err error
}

func (f *failing) Accept() (net.Conn, error) { return nil, f.err }
func (f *failing) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9090} }

func TestWhatCannotBeTakenIsSaidOnceInAWhile(t *testing.T) {
	log := &lockedBuffer{}
	inner := &failing{err: &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}}
	l := newTelling(inner, slog.New(slog.NewTextHandler(log, nil)))
	now := time.Unix(1_700_000_000, 0)
	l.complaint.now = func() time.Time { return now }
	for range 3 {
		for range 10 {
			if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
				t.Fatal(err)
			}
		}
		now = now.Add(complaintEvery)
	}
	inner.err = net.ErrClosed
	_, _ = l.Accept()
	if text := log.String(); strings.Count(text, "too many open files") != 3 || strings.Count(text, "level=WARN") != 3 {
		t.Errorf("%s", text)
	}
}

func TestConnectionsFitTheOpenFiles(t *testing.T) {
	for _, tt := range []struct {
		files      uint64
		configured int
		want       int
	}{
		{1 << 20, 10_000, 10_000},
		{65536, 10_000, 10_000}, // the unit of systemd
		{4096, 10_000, 1776},
		{4096, 1000, 1000},
		{1024, 10_000, 256},
		{2, 10_000, 1},
	} {
		got := connectionsWithin(tt.files, tt.configured)
		if got != tt.want {
			t.Errorf("%d of %d connections with %d files, want %d", got, tt.configured, tt.files, tt.want)
		}
	}
}

// The bound that is in force goes to the proxy, too, and a reload keeps it.
func TestConnectionsAreLowered(t *testing.T) {
	log := &lockedBuffer{}
	files, err := openFiles()
	if err != nil || files > 2_000_000 {
		t.Skipf("%d files: %v", files, err)
	}
	s := &server{config: DefaultConfig(), log: slog.New(slog.NewTextHandler(log, nil))}
	s.config.Limits.Connections = 1_000_000
	s.fitFiles()
	if got := s.fitting(s.config).Limits.Connections; got != connectionsWithin(files, 1_000_000) || got >= 1_000_000 {
		t.Errorf("%d", got)
	}
	if text := log.String(); !strings.Contains(text, "ulimit -n") || !strings.Contains(text, "LimitNOFILE") {
		t.Errorf("%s", text)
	}
}
