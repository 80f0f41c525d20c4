package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"karui/internal/origintest"
	"karui/internal/picture"
)

// poke sends bytes and waits for the server to answer or to close.
func (k *instance) poke(raw []byte, limit time.Duration) ([]byte, bool) {
	k.t.Helper()
	c, err := k.tryDial()
	if err != nil {
		k.t.Errorf("connect: %v", err)
		return nil, false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(limit))
	_, _ = c.Write(raw)
	var got bytes.Buffer
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.r, first); err != nil {
		return nil, !isTimeout(err)
	}
	got.Write(first)
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = io.Copy(&got, io.LimitReader(c.r, 1<<20))
	return got.Bytes(), true
}

func isTimeout(err error) bool {
	t, ok := err.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

// Whatever arrives, the server lives, answers something of HTTP or closes, and
// serves the next viewer.
func TestHostileBytesHarmNobody(t *testing.T) {
	t.Parallel()
	body := photo(t, 1)
	k, _ := serveFiles(t, map[string][]byte{"/a.jpg": body}, with("limits.header_timeout", "2s"), with("limits.idle_timeout", "5s"))
	k.settle("/a.jpg", takesWebP)
	long := strings.Repeat("x", 200_000)
	requests := []string{
		"", "\r\n\r\n", "\n\n\n", "G", "GET", "GET \r\n\r\n", "GET /a.jpg\r\n\r\n", "GET /a.jpg HTTP/0.9\r\n\r\n", "GET /a.jpg HTTP/9.9\r\nHost: x\r\n\r\n", "GET /a.jpg HTTP/1.1\n\n",
		"GET  /a.jpg  HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a.jpg HTTP/1.1\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: \x00\r\n\r\n",
		"GET /a.jpg HTTP/1.1\r\nHost: a b\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: [::1\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: " + long + "\r\n\r\n", "GET /" + long + ".jpg HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a.jpg HTTP/1.1\r\nHost: x\r\nX: " + long + "\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 20_000) + "\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nAccept: " + strings.Repeat("image/webp;q=0.1,", 5000) + "\r\n\r\n",
		"GET /a.jpg HTTP/1.1\r\nHost: x\r\nIf-None-Match: " + strings.Repeat(`"x",`, 6000) + "\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nRange: bytes=" + strings.Repeat("0-1,", 5000) + "0-1\r\n\r\n",
		"GET /%zz.jpg HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a\x00b.jpg HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a\tb.jpg HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a b.jpg HTTP/1.1\r\nHost: x\r\n\r\n", "GET a.jpg HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET * HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "GET ? HTTP/1.1\r\nHost: x\r\n\r\n", "GET http:// HTTP/1.1\r\nHost: x\r\n\r\n", "GET http:///a.jpg HTTP/1.1\r\nHost: x\r\n\r\n", "GET :80/a.jpg HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", "GET /a.jpg#frag HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nNo colon here\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\n: empty\r\n\r\n",
		"GET /a.jpg HTTP/1.1\r\nHost: x\r\nX : space\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nX: a\r\n folded\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
		"GET /a.jpg HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
		"GET /a.jpg HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx", "POST /a.jpg HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nx", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
		"GET /a.jpg HTTP/1.1\r\nHost: x\r\nExpect: 999-what\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
		"GET /a.jpg HTTP/1.1\r\nHost: x\r\nX-Routing: \xff\xfe\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nAccept: \x00\xff\r\n\r\n", "GET /.jpg HTTP/1.1\r\nHost: www.example.com\r\n\r\n", "GET /.karui/../a.jpg HTTP/1.1\r\nHost: x\r\n\r\n", "GET /.karui/secret HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a.jpg HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 5\r\n\r\n", "GET /a.css HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 5\r\n\r\n", "HEAD /a.jpg HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 5\r\n\r\n",
		"POST /a.jpg HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 5\r\n\r\n", "OPTIONS /a.jpg HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 5\r\n\r\n", "OPTIONS /a.css HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"GET /.karui/ping.jpg HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", "GET /a.jpg HTTP/1.1\r\nHost: x\r\nX-Routing: nobody\r\nContent-Length: 5\r\n\r\n",
		"HEAD /a.jpg HTTP/1.0\r\n\r\n", "GET /a.jpg HTTP/1.0\r\n\r\n", "get /a.jpg HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a.jpg http/1.1\r\nHost: x\r\n\r\n",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		// Requests with some of their bytes replaced, removed and doubled.
		b := []byte("GET /a.jpg?v=1 HTTP/1.1\r\nHost: www.example.com\r\nAccept: image/webp,*/*;q=0.8\r\nIf-None-Match: \"k-1\"\r\nRange: bytes=0-9\r\nX-Routing: shop\r\n\r\n")
		for range 1 + rng.IntN(4) {
			i := rng.IntN(len(b))
			switch rng.IntN(3) {
			case 0:
				b[i] = byte(rng.IntN(256))
			case 1:
				b = append(b[:i], b[i+1:]...)
			default:
				b = append(b[:i], append([]byte{b[i]}, b[i:]...)...)
			}
		}
		requests = append(requests, string(b))
	}
	queue := make(chan string)
	done := make(chan struct{})
	for range 16 {
		go func() {
			defer func() { done <- struct{}{} }()
			for raw := range queue {
				got, ended := k.poke([]byte(raw), 20*time.Second)
				shown := raw[:min(len(raw), 120)]
				if !ended {
					t.Errorf("%q: neither an answer nor an end", shown)
				}
				if len(got) > 0 && !bytes.HasPrefix(got, []byte("HTTP/1.")) {
					t.Errorf("%q: answered %q", shown, got[:min(len(got), 80)])
				}
			}
		}()
	}
	for _, raw := range requests {
		queue <- raw
	}
	close(queue)
	for range 16 {
		<-done
	}
	if a := k.get("/a.jpg", takesWebP); a.karui() != "hit" {
		t.Errorf("afterwards: %v", a)
	}
	if a := k.get("/a.jpg", takesAny); !bytes.Equal(a.body, body) {
		t.Errorf("afterwards: %v", a)
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"/1.jpg": photo(t, 1), "/2.jpg": photo(t, 2), "/3.jpg": photo(t, 3)}
	k, _ := serveFiles(t, files)
	c := k.dial()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	order := []string{"/1.jpg", "/2.jpg", "/missing.jpg", "/3.jpg", "/1.jpg"}
	var all []byte
	for _, target := range order {
		all = append(all, request{target: target, host: "www.example.com", fields: []string{takesAny}}.bytes()...)
	}
	if _, err := c.Write(all); err != nil {
		t.Fatal(err)
	}
	for _, target := range order {
		a := c.readHead(request{target: target})
		c.readBody(a)
		if want, there := files[target]; a.err != nil || there && !bytes.Equal(a.body, want) || !there && a.status != 404 {
			t.Errorf("%s: %v", target, a)
		}
	}
}

// The body of a GET is never taken for a request of its own.
func TestBodyOfAGetSmugglesNothing(t *testing.T) {
	t.Parallel()
	k, origin := serveFiles(t, map[string][]byte{"/a.jpg": photo(t, 1), "/a.css": []byte("x")})
	inner := "GET /evil.jpg HTTP/1.1\r\nHost: www.example.com\r\n\r\n"
	for _, target := range []string{"/a.jpg", "/a.css"} {
		for _, raw := range []string{
			"GET " + target + " HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: " + itoa(len(inner)) + "\r\n\r\n" + inner,
			"GET " + target + " HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner),
			"GET " + target + " HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"HEAD " + target + " HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: " + itoa(len(inner)) + "\r\n\r\n" + inner,
		} {
			if _, ended := k.poke([]byte(raw), 20*time.Second); !ended {
				t.Errorf("%q: neither an answer nor an end", raw[:60])
			}
		}
	}
	if n := origin.Count("/evil.jpg"); n != 0 {
		t.Errorf("the origin saw the inner request %d times", n)
	}
	for _, r := range origin.Requests("") {
		if len(r.Body) > 0 && bytes.HasSuffix([]byte(r.Path()), []byte(".jpg")) {
			t.Errorf("a body of %d bytes went along with the shared fetch", len(r.Body))
		}
	}
}

// Heads that dribble in are ended by the time limit, and do not keep others out.
func TestDribblingHeadsAreEnded(t *testing.T) {
	t.Parallel()
	k, _ := serveFiles(t, map[string][]byte{"/a.jpg": photo(t, 1)}, with("limits.header_timeout", "1s"), with("limits.idle_timeout", "2s"))
	var open []*connection
	for range 30 {
		c := k.dial()
		_, _ = io.WriteString(c, "GET /a.jpg HTTP/1.1\r\nHost: www.exam")
		open = append(open, c)
	}
	idle := k.dial()
	if a := idle.do(request{target: "/a.jpg", host: "www.example.com"}); a.status != 200 {
		t.Errorf("%v", a)
	}
	for i, c := range append(open, idle) {
		_ = c.SetDeadline(time.Now().Add(15 * time.Second))
		if _, err := io.Copy(io.Discard, c.r); isTimeout(err) {
			t.Fatalf("connection %d is still open", i)
		}
	}
	if a := k.get("/a.jpg"); a.status != 200 {
		t.Errorf("%v", a)
	}
}

func TestConnectionLimitPassesWhenViewersLeave(t *testing.T) {
	t.Parallel()
	k, _ := serveFiles(t, map[string][]byte{"/a.jpg": photo(t, 1)}, with("limits.connections", 10))
	for range 3 {
		var open []*connection
		for range 30 {
			if c, err := k.tryDial(); err == nil {
				open = append(open, c)
			}
		}
		for _, c := range open {
			_ = c.Close()
		}
		eventually(t, 10*time.Second, "an answer", func() bool {
			return k.try(request{target: "/a.jpg", fields: []string{takesAny}}).status == 200
		})
	}
}

// An original that was made to be hard costs no more than itself.
func TestHostileOriginalsAreServedAsTheyAre(t *testing.T) {
	t.Parallel()
	origin := origintest.New(t)
	base := map[string][]byte{".jpg": photo(t, 1), ".png": logo(t, 2), ".gif": animation(t, 3, 0)}
	rng := rand.New(rand.NewPCG(3, 4))
	n := 60
	if testing.Short() {
		n = 15
	}
	bodies := map[string][]byte{}
	for i := range n {
		for ext, body := range base {
			b := bytes.Clone(body)
			for range 1 + rng.IntN(8) {
				b[rng.IntN(min(len(b), 1<<uint(4+rng.IntN(12))))] = byte(rng.IntN(256))
			}
			target := "/" + itoa(i) + ext
			bodies[target] = b
			origin.Set(target, origintest.Image(typeByName(target), b))
		}
	}
	k := serve(t, origin)
	for target, body := range bodies {
		if a := k.get(target, takesAny); a.status != 200 || !bytes.Equal(a.body, body) {
			t.Errorf("%s: %v", target, a)
		}
		if a := k.get(target, takesWebP); a.status != 200 || a.err != nil || !bytes.Equal(a.body, body) && !a.webp() {
			t.Errorf("%s: %v", target, a)
		}
	}
	for target, body := range bodies {
		a := k.settleOrPass(target, takesWebP)
		if a == nil {
			t.Errorf("%s never settled", target)
			continue
		}
		if bytes.Equal(a.body, body) {
			continue
		}
		if _, err := picture.DecodeWebP(a.body); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}
