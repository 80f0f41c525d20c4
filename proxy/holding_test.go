package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"karui/internal/origintest"
)

// What has not left yet need not be cut off.
func TestBodyThatBreaksOffIsA503UntilSomethingHasLeft(t *testing.T) {
	broken := errors.New("broken off")
	r := newRig(t)
	for name, test := range map[string]struct {
		write  func(w io.Writer)
		status int
		bytes  int64
	}{
		"nothing":  {func(io.Writer) {}, 503, 0},
		"a little": {func(w io.Writer) { _, _ = w.Write(make([]byte, 100)) }, 503, 0},
		"all that is held": {func(w io.Writer) {
			for range holdMost / 1024 {
				_, _ = w.Write(make([]byte, 1024))
			}
		}, 503, 0},
		"more": {func(w io.Writer) {
			_, _ = w.Write(make([]byte, 100))
			_, _ = w.Write(make([]byte, holdMost))
		}, 200, holdMost + 100},
		"flushed": {func(w io.Writer) {
			_, _ = w.Write(make([]byte, 100))
			_ = w.(interface{ Flush() error }).Flush()
		}, 200, 100},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			x := &exchange{
				p: r.proxy, set: r.proxy.set.Load(), w: w, r: httptest.NewRequest(http.MethodGet, "/a.jpg", nil),
				start: time.Now(), target: targetOf("/a.jpg"), negotiated: true,
			}
			x.site = x.set.router.site(http.Header{}, "www.example.com")
			aborted := func() (v any) {
				defer func() { v = recover() }()
				x.send(reply{
					status: 200, header: http.Header{"Content-Type": {"image/jpeg"}}, did: didOriginal, etag: `"e"`,
					cacheControl: "public, max-age=86400", size: -1, arriving: true,
					body: writes(func(w io.Writer) (int64, error) { test.write(w); return 0, broken }),
				})
				return nil
			}()
			if w.Code != test.status || (aborted == http.ErrAbortHandler) != (test.status == 200) { //nolint:errorlint // as net/http does
				t.Errorf("status %d, ended with %v", w.Code, aborted)
			}
			if test.status == 503 {
				r.want(&answer{Response: w.Result(), body: w.Body.Bytes()}, 503, nil, unavailable("origin"))
			} else if x.bytes != test.bytes || int64(w.Body.Len()) != test.bytes {
				t.Errorf("%d bytes counted, %d came, want %d", x.bytes, w.Body.Len(), test.bytes)
			}
		})
	}
}

// However the race between the first bytes and the cut ends, the viewer gets an answer.
func TestEarlyCutNeverLeavesTheViewerWithoutAnAnswer(t *testing.T) {
	r := newRig(t)
	jpg := photo(t, 200, 1)
	chunked := jpegAnswer(jpg)
	chunked.Framing = origintest.Chunked
	for i, whole := range []origintest.Answer{jpegAnswer(jpg), chunked} {
		for n := range 60 {
			for _, ext := range []string{"jpg", "css"} {
				path := fmt.Sprintf("/%d-%d.%s", i, n, ext)
				r.origin.Set(path, whole.CutAt(int64(100+50*n), false))
				a := r.get(path, takesJPEG) // fails the test where no head comes
				if a.StatusCode != 503 && a.err == nil {
					t.Errorf("%s: %d with %d bytes looks whole", path, a.StatusCode, len(a.body))
				}
			}
		}
	}
}

// The end of a connection is the end of a body for viewers of HTTP/1.0, unless it is reset.
func TestBodyCutOffIsSeenByHTTP10(t *testing.T) {
	jpg := photo(t, 200, 1)
	whole := jpegAnswer(jpg)
	whole.Framing = origintest.Chunked
	for name, request := range map[string]string{
		"shared":      "GET /a.jpg HTTP/1.0\r\nHost: a\r\n" + takesWebP + "\r\n\r\n",
		"original":    "GET /a.jpg HTTP/1.0\r\nHost: a\r\n\r\n",
		"private":     "GET /a.jpg HTTP/1.0\r\nHost: a\r\nCookie: a=b\r\n\r\n",
		"passthrough": "GET /a.css HTTP/1.0\r\nHost: a\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			path := strings.Fields(request)[1]
			stalled := origintest.NewGate()
			cut := whole.CutAt(9000, false)
			cut.Stall, cut.StallAt = stalled, 8000
			r.origin.Set(path, cut)
			resp, body, _ := r.raw(request)
			if resp.StatusCode != 200 {
				t.Fatalf("status %d", resp.StatusCode)
			}
			stalled.Open()
			rest, err := io.ReadAll(body)
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%d bytes came, and then %v, want a reset", len(rest), err)
			}
			r.idle()
			r.origin.Set(path, whole)
			_, body, _ = r.raw(request)
			if rest, err := io.ReadAll(body); err != nil || !bytes.Equal(rest, jpg) {
				t.Errorf("%d bytes of %d came whole: %v", len(rest), len(jpg), err)
			}
		})
	}
}
