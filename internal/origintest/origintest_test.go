package origintest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dial(t *testing.T, o *Origin) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp4", o.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

func ask(t *testing.T, conn net.Conn, r *bufio.Reader, request string) (*http.Response, []byte, error) {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	response, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

const get = "GET /a.jpg HTTP/1.1\r\nHost: x\r\n\r\n"

func TestRequestIsRecordedToTheByte(t *testing.T) {
	o := New(t)
	conn, r := dial(t, o)
	request := "GET //%2f/\x83\x65;a+b%zz?q=%20 HTTP/1.1\r\nhOsT:  x \r\nX-One: 1\r\n\r\n"
	if _, _, err := ask(t, conn, r, request); err != nil {
		t.Fatal(err)
	}
	got := o.Requests("//%2f/\x83\x65;a+b%zz")
	if len(got) != 1 || string(got[0].Head) != request || got[0].Header.Get("X-One") != "1" {
		t.Fatalf("recorded %+v", o.Requests(""))
	}
}

func TestBodyOfARequestIsRead(t *testing.T) {
	o := New(t)
	conn, r := dial(t, o)
	for range 2 {
		if _, _, err := ask(t, conn, r, "POST /p HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ask(t, conn, r, "POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	for _, request := range o.Requests("/p") {
		if string(request.Body) != "abc" {
			t.Errorf("body %q", request.Body)
		}
	}
	if o.Count("/p") != 4 || o.Connections() != 1 {
		t.Errorf("%d requests on %d connections", o.Count("/p"), o.Connections())
	}
}

func TestFramings(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 5000)
	for name, framing := range map[string]Framing{"length": Length, "chunked": Chunked, "close": Close} {
		t.Run(name, func(t *testing.T) {
			o := New(t)
			answer := Image("image/jpeg", body)
			answer.Framing = framing
			o.Set("/a.jpg", answer)
			conn, r := dial(t, o)
			response, got, err := ask(t, conn, r, get)
			if err != nil || !bytes.Equal(got, body) || response.StatusCode != 200 {
				t.Fatalf("%v, %d bytes", err, len(got))
			}
			if known := response.ContentLength >= 0; known != (framing == Length) {
				t.Errorf("length %d", response.ContentLength)
			}
		})
	}
}

func TestLengthCanLie(t *testing.T) {
	o := New(t)
	answer := Image("image/jpeg", []byte("0123456789"))
	answer.Declare = 20
	o.Set("/a.jpg", answer)
	conn, r := dial(t, o)
	if _, got, err := ask(t, conn, r, get); !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != 10 {
		t.Errorf("longer: %v, %d bytes", err, len(got))
	}
	answer.Declare = 4
	o.Set("/a.jpg", answer)
	conn, r = dial(t, o)
	if _, got, err := ask(t, conn, r, get); err != nil || string(got) != "0123" {
		t.Errorf("shorter: %v, %q", err, got)
	}
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "456789" {
		t.Errorf("what follows a length too short: %v, %q", err, rest)
	}
}

func TestCutOff(t *testing.T) {
	for _, reset := range []bool{false, true} {
		o := New(t)
		o.Set("/a.jpg", Image("image/jpeg", bytes.Repeat([]byte("x"), 100)).CutAt(7, reset))
		conn, r := dial(t, o)
		_, got, err := ask(t, conn, r, get)
		if reset && !errors.Is(err, syscall.ECONNRESET) || !reset && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("reset %v: %v", reset, err)
		}
		if !reset && len(got) != 7 {
			t.Errorf("%d bytes", len(got))
		}
	}
}

func TestHoldAndStall(t *testing.T) {
	o := New(t)
	answer := Image("image/jpeg", bytes.Repeat([]byte("x"), 3000))
	answer.Hold, answer.Stall, answer.StallAt = NewGate(), NewGate(), 1024
	o.Set("/a.jpg", answer)
	conn, r := dial(t, o)
	if _, err := io.WriteString(conn, get); err != nil {
		t.Fatal(err)
	}
	if !o.Await("/a.jpg", 1, 10*time.Second) {
		t.Fatal("no request")
	}
	answer.Hold.Open()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 1024)); err != nil {
		t.Fatal(err)
	}
	if r.Buffered() != 0 {
		t.Errorf("%d bytes came through a closed gate", r.Buffered())
	}
	answer.Stall.Open()
	if rest, err := io.ReadAll(response.Body); err != nil || len(rest) != 3000-1024 {
		t.Errorf("%v, %d bytes", err, len(rest))
	}
}

func TestCloseReleasesWhatHangs(t *testing.T) {
	t.Run("hang", func(t *testing.T) {
		o := New(t)
		o.Set("/a.jpg", Answer{Hold: NewGate()})
		conn, _ := dial(t, o)
		_, _ = io.WriteString(conn, get)
		o.Await("/a.jpg", 1, 10*time.Second)
	})
}

func TestSizeRepeatsTheBody(t *testing.T) {
	o := New(t)
	o.Set("/a.jpg", Answer{Body: []byte("abc"), Size: 100_000, Framing: Chunked})
	conn, r := dial(t, o)
	_, got, err := ask(t, conn, r, get)
	if err != nil || len(got) != 100_000 || string(got[:7]) != "abcabca" {
		t.Errorf("%v, %d bytes", err, len(got))
	}
}

func TestPaceSendsByteByByte(t *testing.T) {
	o := New(t)
	o.Set("/a.jpg", Answer{Body: []byte("abcdef"), Pace: time.Millisecond})
	conn, r := dial(t, o)
	if _, got, err := ask(t, conn, r, get); err != nil || string(got) != "abcdef" {
		t.Errorf("%v, %q", err, got)
	}
}

func TestValidators(t *testing.T) {
	o := New(t)
	answer := Image("image/jpeg", []byte("body"), Field{"ETag", `"1"`}, Field{"Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT"})
	answer.Validate = true
	o.Set("/a.jpg", answer)
	for field, want := range map[string]int{
		`If-None-Match: "1"`:                               304,
		`If-None-Match: W/"1", "2"`:                        304,
		`If-None-Match: "2"`:                               200,
		`If-Modified-Since: Mon, 02 Jan 2006 15:04:05 GMT`: 304,
		`If-Modified-Since: Tue, 03 Jan 2006 15:04:05 GMT`: 200,
		`If-Unmodified: Mon, 02 Jan 2006 15:04:05 GMT`:     200,
	} {
		conn, r := dial(t, o)
		response, body, err := ask(t, conn, r, "GET /a.jpg HTTP/1.1\r\n"+field+"\r\n\r\n")
		if err != nil || response.StatusCode != want || (len(body) == 0) != (want == 304) || response.Header.Get("ETag") != `"1"` {
			t.Errorf("%s: %v %v %q", field, err, response, body)
		}
	}
}

func TestHeadHasNoBody(t *testing.T) {
	o := New(t)
	o.Set("/a.jpg", Image("image/jpeg", []byte("body")))
	conn, r := dial(t, o)
	for range 2 {
		response, body, err := ask(t, conn, r, "HEAD /a.jpg HTTP/1.1\r\n\r\n")
		if err != nil || response.ContentLength != 4 || len(body) != 0 {
			t.Errorf("%v %v %q", err, response, body)
		}
	}
}

func TestRefuseAndResume(t *testing.T) {
	o := New(t)
	o.Set("/a.jpg", Image("image/jpeg", []byte("body")))
	conn, r := dial(t, o)
	if _, _, err := ask(t, conn, r, get); err != nil {
		t.Fatal(err)
	}
	o.Refuse()
	if _, err := r.ReadByte(); err == nil {
		t.Error("a connection survived")
	}
	if _, err := net.Dial("tcp4", o.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("refused: %v", err)
	}
	o.Resume()
	conn, r = dial(t, o)
	if _, body, err := ask(t, conn, r, get); err != nil || string(body) != "body" {
		t.Errorf("%v, %q", err, body)
	}
	if _, err := net.Dial("tcp4", ClosedAddr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("closed address: %v", err)
	}
}

func TestRaw(t *testing.T) {
	o := New(t)
	o.Set("/a.jpg", Answer{Raw: []byte("SSH-2.0-OpenSSH\r\n")})
	conn, r := dial(t, o)
	_, _ = io.WriteString(conn, get)
	if got, err := io.ReadAll(r); err != nil || string(got) != "SSH-2.0-OpenSSH\r\n" {
		t.Errorf("%v, %q", err, got)
	}
}

func TestTLS(t *testing.T) {
	o := NewTLS(t, "www.example.com")
	o.Set("/a.jpg", Image("image/jpeg", []byte("body")))
	ca, err := os.ReadFile(o.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	conn, err := tls.Dial("tcp4", o.Addr(), &tls.Config{RootCAs: pool, ServerName: "www.example.com", MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, body, err := ask(t, conn, bufio.NewReader(conn), get); err != nil || string(body) != "body" {
		t.Errorf("%v, %q", err, body)
	}
}
