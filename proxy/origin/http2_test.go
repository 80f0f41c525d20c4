package origin

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawHTTP2 speaks frames, so that the test sees and says what net/http's server
// would refuse. answer writes to the framer; enc encodes header fields.
func rawHTTP2(t *testing.T, answer func(path string, stream uint32, fr *http2.Framer, fields func(...string) []byte)) (url, caFile string) {
	t.Helper()
	// The certificate comes from a server of net/http, whose connections are taken over.
	serve := func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(conn, preface); err != nil {
			return
		}
		fr := http2.NewFramer(conn, conn)
		fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		_ = fr.WriteSettings()
		var buf bytes.Buffer
		enc := hpack.NewEncoder(&buf)
		fields := func(kv ...string) []byte {
			buf.Reset()
			for i := 0; i < len(kv); i += 2 {
				_ = enc.WriteField(hpack.HeaderField{Name: kv[i], Value: kv[i+1]})
			}
			return bytes.Clone(buf.Bytes())
		}
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					_ = fr.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !f.IsAck() {
					_ = fr.WritePing(true, f.Data)
				}
			case *http2.MetaHeadersFrame:
				path := ""
				for _, h := range f.Fields {
					if h.Name == ":path" {
						path = h.Value
					}
				}
				answer(path, f.StreamID, fr, fields)
			}
		}
	}
	return tlsServerWith(t, serve)
}

func head(fr *http2.Framer, stream uint32, block []byte, end bool) {
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true, EndStream: end})
}

func TestHTTP2Bodies(t *testing.T) {
	url, ca := rawHTTP2(t, func(path string, id uint32, fr *http2.Framer, fields func(...string) []byte) {
		switch path {
		case "/length":
			head(fr, id, fields(":status", "200", "content-length", "5"), false)
			_ = fr.WriteData(id, true, []byte("hello"))
		case "/open":
			head(fr, id, fields(":status", "200"), false)
			_ = fr.WriteData(id, true, []byte("hello"))
		case "/early":
			head(fr, id, fields(":status", "103", "link", "</a>"), false)
			head(fr, id, fields(":status", "204"), true)
		case "/short":
			head(fr, id, fields(":status", "200", "content-length", "9"), false)
			_ = fr.WriteData(id, true, []byte("hello"))
		case "/long":
			head(fr, id, fields(":status", "200", "content-length", "3"), false)
			_ = fr.WriteData(id, true, []byte("hello"))
		case "/cut":
			head(fr, id, fields(":status", "200"), false)
			_ = fr.WriteData(id, false, []byte("hello"))
			_ = fr.WriteRSTStream(id, http2.ErrCodeInternal)
		case "/conflict":
			head(fr, id, fields(":status", "200", "content-length", "5", "content-length", "6"), false)
			_ = fr.WriteData(id, true, []byte("hello"))
		case "/reset":
			_ = fr.WriteRSTStream(id, http2.ErrCodeInternal)
		}
	})
	c := newClient(t, url, trusting(ca))
	for _, tc := range []struct {
		target  string
		status  int
		length  int64
		framing Framing
		body    string
		kind    Kind // of the body's error
	}{
		{"/length", 200, 5, Length, "hello", 0},
		{"/open", 200, -1, Chunked, "hello", 0},
		{"/early", 204, 0, Length, "", 0},
		{"/short", 200, 9, Length, "hello", KindReset},
		{"/long", 200, 3, Length, "hel", KindProtocol},
		{"/cut", 200, -1, Chunked, "hello", KindReset},
	} {
		resp, body, err := get(t, c, tc.target)
		if resp == nil {
			t.Errorf("%s: %v", tc.target, err)
			continue
		}
		if resp.Status != tc.status || resp.Length != tc.length || resp.Framing != tc.framing || body != tc.body || KindOf(err) != tc.kind {
			t.Errorf("%s: got %d, length %d, %s, %q, %v", tc.target, resp.Status, resp.Length, resp.Framing, body, err)
		}
		if tc.kind != 0 && errors.Is(err, io.EOF) {
			t.Errorf("%s: the error looks like a regular end: %v", tc.target, err)
		}
	}
	for target, kind := range map[string]Kind{"/conflict": KindProtocol, "/reset": KindReset} {
		_, _, err := get(t, c, target)
		if KindOf(err) != kind {
			t.Errorf("%s: got %v, want %s", target, err, kind)
		}
	}
}

func TestHTTP2SharesOneConnection(t *testing.T) {
	url, ca := tlsServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RemoteAddr)
	}))
	c := newClient(t, url, trusting(ca))
	_, first, err := get(t, c, "/")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, again, err := get(t, c, "/"); err != nil || again != first {
			t.Fatalf("came from %q, then from %q (%v)", first, again, err)
		}
	}
}

func TestHTTP2ReaderThatStallsHoldsLittle(t *testing.T) {
	wrote := make(chan int, 1)
	url, ca := tlsServer(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/other" {
			return
		}
		total := 0
		for chunk := make([]byte, 32<<10); total < 64<<20; {
			n, err := w.Write(chunk)
			if total += n; err != nil {
				break
			}
		}
		wrote <- total
	}))
	c := newClient(t, url, trusting(ca))
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := c.Do(ctx, Request{Method: "GET", Target: "/big"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	// Another request on the same connection is not held up meanwhile.
	if _, _, err := get(t, c, "/other"); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()
	if total := <-wrote; total > 4*streamWindow {
		t.Errorf("the origin could send %d bytes to somebody who reads none", total)
	}
}

func TestTLSPeersAreVerified(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+" "+r.TLS.ServerName)
	})
	for _, h2 := range []bool{false, true} {
		url, ca := tlsServer(t, h2, ok)
		_, _, err := get(t, newClient(t, url), "/")
		wantKind(t, err, KindTLS)
		_, _, err = get(t, newClient(t, url, trusting(ca), func(o *Options) { o.Place.Host = "other.example" }), "/")
		wantKind(t, err, KindTLS)
		_, body, err := get(t, newClient(t, url, trusting(ca), func(o *Options) { o.Place.Host = "example.com" }), "/")
		if err != nil || body != "example.com example.com" {
			t.Errorf("got %q, %v", body, err)
		}
		if _, _, err = get(t, newClient(t, url, trusting(ca)), "/"); err != nil {
			t.Errorf("by address: %v", err)
		}
	}
	plain := rawServer(t, func(string, net.Conn) {})
	_, _, err := get(t, newClient(t, strings.Replace(plain, "http:", "https:", 1), func(o *Options) { o.Config.Connect = 1e8 }), "/")
	wantKind(t, err, KindTLS)
}
