package edge

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw answers with these bytes and closes the connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, text)
	}
}

func TestABodyCutShortIsCutForTheViewerAndNotKept(t *testing.T) {
	for name, text := range map[string]string{
		"Content-Length": "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100\r\n\r\nhalf",
		"chunked":        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"last chunk":     "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, document{}, func(l *lab) {
				l.karui.handle(raw(text))
				s := l.get("/img/a")
				if s.body != "half" || !errors.Is(s.err, io.ErrUnexpectedEOF) {
					t.Errorf("%q %v", s.body, s.err)
				}
				if v := l.event(); !strings.HasPrefix(v.Aborted, "origin: ") || v.FailedOver != "" {
					t.Errorf("event %+v", v)
				}
				l.karui.says(200, "whole", "Cache-Control: max-age=60")
				l.want("/img/a", "whole", Miss)
				l.asked(2, 0)
			})
		})
	}
}

func TestABodyWithoutLengthIsKeptCutShort(t *testing.T) {
	for _, resets := range []bool{false, true} {
		inLab(t, document{}, func(l *lab) {
			l.karui.resets = resets
			l.karui.handle(raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: close\r\n\r\nhalf"))
			l.want("/img/a", "half", Miss)
			l.want("/img/a", "half", Hit)
			l.asked(1, 0)
		})
	}
}

func TestABodyThatStallsIsCutAfterTheResponseTimeout(t *testing.T) {
	for name, head := range map[string]string{"with a length": "Content-Length: 100\r\n", "without": ""} {
		t.Run(name, func(t *testing.T) {
			inLab(t, document{response: 10, attempts: 3}, func(l *lab) {
				l.karui.handle(func(w http.ResponseWriter, r *http.Request) {
					conn, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						panic(err)
					}
					defer conn.Close()
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"+head+"\r\nhalf")
					pass(time.Minute)
				})
				begun := time.Now()
				if s := l.get("/img/a"); s.body != "half" || s.err == nil {
					t.Errorf("%q %v", s.body, s.err)
				}
				if took := time.Since(begun); took != 10*time.Second {
					t.Errorf("took %v", took)
				}
				if _, bytes := l.Cached(); bytes != 0 {
					t.Errorf("%d bytes are kept", bytes)
				}
				l.asked(1, 0) // what went out cannot be had again elsewhere
				pass(time.Minute)
			})
		})
	}
}

// A body that dribbles goes on for as long as each gap is shorter than the timeout.
func TestTheResponseTimeoutCountsBetweenPackets(t *testing.T) {
	inLab(t, document{response: 10}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "6")
			for range 6 {
				pass(9 * time.Second)
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
			}
		})
		l.want("/img/a", "xxxxxx", Miss)
	})
}

func TestAnAnswerThatIsNoHTTPFailsOver(t *testing.T) {
	for _, text := range []string{"", "SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10)} {
		inLab(t, document{}, func(l *lab) {
			l.karui.handle(raw(text))
			l.want("/img/a", "origin", Miss)
			if v := l.event(); v.FailedOver != FailReset {
				t.Errorf("%.20q: failed over for %q", text, v.FailedOver)
			}
		})
	}
}

func TestLateJoinersOfACutBodyAreCutToo(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
			tell(w, 200, "half", "Cache-Control: max-age=60", "Content-Length: 100")
			_ = http.NewResponseController(w).Flush()
			pass(2 * time.Second)
			panic(http.ErrAbortHandler)
		})
		resp := l.open("/img/a")
		defer resp.Body.Close()
		if _, err := bufio.NewReader(resp.Body).Peek(4); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if s := l.get("/img/a"); s.body != "half" || s.err == nil {
			t.Errorf("%q %v", s.body, s.err)
		}
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Error("the first viewer was told that half is all")
		}
		l.event()
		if c := l.Counters(); c.Joined != 1 || c.Aborted != 2 {
			t.Errorf("%d joined, %d cut", c.Joined, c.Aborted)
		}
		l.asked(1, 0)
	})
}
