package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lineTo opens a line to a server.
func lineTo(t *testing.T, h http.HandlerFunc) (*line, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	target := strings.TrimPrefix(s.URL, "http://")
	l := &line{}
	if err := l.open(target); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l, target
}

// over asks over the line, on a connection of its own.
func over(l *line) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.address+"/", nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func TestLineCarriesEveryByte(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 300_000)
	l, _ := lineTo(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	for range 3 {
		got, err := over(l)
		if err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%d bytes of %d: %v", len(got), len(body), err)
		}
	}
}

func TestLineIsLateByItsDelay(t *testing.T) {
	l, _ := lineTo(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "late") })
	const delay = 300 * time.Millisecond
	l.setDelay(delay)
	began := time.Now()
	got, err := over(l)
	if took := time.Since(began); err != nil || string(got) != "late" || took < delay {
		t.Errorf("%q after %s: %v", got, took, err)
	}
}

func TestHealingALineFreesWhatIsUnderWay(t *testing.T) {
	asked := make(chan struct{})
	l, _ := lineTo(t, func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		_, _ = io.WriteString(w, "free")
	})
	l.setDelay(time.Hour)
	answered := make(chan error, 1)
	go func() {
		got, err := over(l)
		if err == nil && string(got) != "free" {
			err = fmt.Errorf("got %q", got)
		}
		answered <- err
	}()
	<-asked
	l.setDelay(0)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestClosedLineRefusesAndOpensAtTheSameAddress(t *testing.T) {
	l, target := lineTo(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	before := l.address
	l.close()
	if _, err := over(l); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a closed line: %v, want a refused connection", err)
	}
	if err := l.open(target); err != nil {
		t.Fatal(err)
	}
	if got, err := over(l); err != nil || string(got) != "here" || l.address != before {
		t.Errorf("%q at %s, before %s: %v", got, l.address, before, err)
	}
}

func TestLineNeverEndsHalfABodyCleanly(t *testing.T) {
	l, _ := lineTo(t, func(w http.ResponseWriter, _ *http.Request) {
		// Without a length, only the end of the connection tells where the body ends.
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = out.WriteString("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf")
		_ = out.Flush()
		cut(conn)
	})
	if got, err := over(l); err == nil {
		t.Errorf("half a body looks whole: %q", got)
	}
}

func TestClosingALineCutsWhatIsOpen(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	l, _ := lineTo(t, func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-release
	})
	failed := make(chan error, 1)
	go func() {
		_, err := over(l)
		failed <- err
	}()
	<-asked
	l.close()
	if err := <-failed; err == nil {
		t.Error("the answer of a dead process arrived")
	}
	close(release)
}
