package edge

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"karui/internal/cloudfront"
)

// together asks n times at once.
func together(l *lab, n int, path string, lines ...string) []seen {
	out := make([]seen, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			resp, err := l.client.Do(l.request(http.MethodGet, path, lines...))
			if err != nil {
				out[i].err = err
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			out[i] = seen{status: resp.StatusCode, body: string(body), header: resp.Header, err: err}
		}()
	}
	wg.Wait()
	return out
}

func TestRequestsForOneKeyAreCollapsedWhileOneIsUnderWay(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
			pass(3 * time.Second)
			tell(w, 200, "karui", "Cache-Control: max-age=60")
		})
		for _, s := range together(l, 30, "/img/a") {
			if s.body != "karui" || s.cache() != Miss {
				t.Errorf("%q %s %v", s.body, s.cache(), s.err)
			}
		}
		l.asked(1, 0)
		l.event()
		if c := l.Counters(); c.Joined != 29 {
			t.Errorf("%d joined", c.Joined)
		}
	})
}

func TestDifferentKeysAreNotCollapsed(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, r *http.Request) {
			pass(time.Second)
			tell(w, 200, r.Header.Get("Accept")+r.URL.RawQuery, "Cache-Control: max-age=60")
		})
		var wg sync.WaitGroup
		for _, accept := range []string{"image/webp", "image/webp,*/*", "*/*"} {
			for _, query := range []string{"v=1", "v=2"} {
				wg.Go(func() { l.want("/img/a?"+query, accept+query, Miss, "Accept: "+accept) })
			}
		}
		wg.Wait()
		l.asked(6, 0)
	})
}

func TestWhatMayNotBeSharedIsFetchedByEachForItself(t *testing.T) {
	for _, c := range []struct {
		status int
		cc     string
	}{{200, "no-store"}, {200, "private"}, {200, "no-cache"}, {200, "max-age=0"}, {503, "no-store"}} {
		inLab(t, document{errors: "503:0", statuses: []int{400}}, func(l *lab) {
			var mu sync.Mutex
			n := 0
			l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
				pass(time.Second)
				mu.Lock()
				n++
				body := strings.Repeat("x", n)
				mu.Unlock()
				tell(w, c.status, body, "Cache-Control: "+c.cc)
			})
			bodies := map[string]bool{}
			for _, s := range together(l, 5, "/img/a") {
				bodies[s.body] = true
			}
			if len(bodies) != 5 {
				t.Errorf("%d %s: %d different answers for 5 viewers", c.status, c.cc, len(bodies))
			}
			l.asked(5, 0)
		})
	}
}

func (l *lab) open(path string) *http.Response {
	l.t.Helper()
	resp, err := l.client.Do(l.request(http.MethodGet, path))
	l.must(err)
	return resp
}

func TestABodyIsNeverWaitedForAndLateJoinersStream(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		first := strings.Repeat("a", 1<<10)
		l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
			tell(w, 200, first, "Cache-Control: max-age=60", "Content-Length: 2048")
			_ = http.NewResponseController(w).Flush()
			pass(5 * time.Second)
			_, _ = io.WriteString(w, strings.Repeat("b", 1<<10))
		})
		begun := time.Now()
		for i := range 3 {
			resp := l.open("/img/a")
			defer resp.Body.Close()
			got := make([]byte, 1<<10)
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != first {
				t.Errorf("viewer %d: %v", i, err)
			}
			if took := time.Since(begun); took != time.Duration(i)*time.Second {
				t.Errorf("viewer %d had its first KiB after %v", i, took)
			}
			pass(time.Second)
			defer func() {
				rest, err := io.ReadAll(resp.Body)
				if err != nil || len(rest) != 1<<10 {
					t.Errorf("viewer %d: rest of %d bytes, %v", i, len(rest), err)
				}
			}()
		}
		l.asked(1, 0)
	})
}

func TestTheHeadGoesOutBeforeTheBodyIsThere(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			pass(5 * time.Second)
			_, _ = io.WriteString(w, "late")
		})
		begun := time.Now()
		resp := l.open("/img/a")
		defer resp.Body.Close()
		if took := time.Since(begun); took != 0 {
			t.Errorf("head after %v", took)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "late" || err != nil {
			t.Errorf("%q %v", body, err)
		}
	})
}

func TestASlowViewerDelaysNobody(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		body := strings.Repeat("x", 1<<20)
		l.karui.says(200, body, "Cache-Control: max-age=60")
		slow := l.open("/img/a") // reads nothing for now
		defer slow.Body.Close()
		begun := time.Now()
		if s := l.get("/img/a"); s.body != body || s.err != nil {
			t.Errorf("%d bytes, %v", len(s.body), s.err)
		}
		l.asked(1, 0)
		if took := time.Since(begun); took != 0 {
			t.Errorf("took %v", took)
		}
		reader := bufio.NewReaderSize(slow.Body, 16)
		for range 5 {
			if _, err := reader.ReadByte(); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		if rest, err := io.ReadAll(reader); len(rest) != len(body)-5 || err != nil {
			t.Errorf("%d bytes, %v", len(rest), err)
		}
	})
}

func TestAViewerThatTakesNothingIsCutAfterItsTimeout(t *testing.T) {
	inLabWith(t, document{}, Options{ViewerTimeout: 7 * time.Second}, func(l *lab) {
		l.karui.says(200, strings.Repeat("x", 1<<20), "Cache-Control: max-age=60")
		resp := l.open("/img/a")
		defer resp.Body.Close()
		pass(8 * time.Second)
		if v := l.event(); !strings.HasPrefix(v.Aborted, "viewer: ") || v.Took != 7*time.Second {
			t.Errorf("%q after %v", v.Aborted, v.Took)
		}
	})
}

func TestWhatNobodyWaitsForIsGivenUpAndNotKept(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.handle(func(w http.ResponseWriter, r *http.Request) {
			tell(w, 200, "half", "Cache-Control: max-age=60", "Content-Length: 8")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		one, two := l.open("/img/a"), l.open("/img/a")
		one.Body.Close()
		synctest.Wait()
		if l.karui.given != 0 {
			t.Error("given up although a viewer was left")
		}
		two.Body.Close()
		synctest.Wait()
		if l.karui.given != 1 {
			t.Error("not given up")
		}
		l.karui.says(200, "whole", "Cache-Control: max-age=60")
		l.want("/img/a", "whole", Miss)
	})
}

// A viewer that needed no body got all it wanted, and the object is taken in.
func TestAnObjectIsKeptAlthoughItsViewerNeededNoBody(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.karui.says(200, "old", "Cache-Control: max-age=60", `Etag: "k-1"`)
		l.want("/img/a", "old", Miss)
		pass(60 * time.Second)
		l.karui.handle(func(w http.ResponseWriter, _ *http.Request) {
			tell(w, 200, "ne", "Cache-Control: max-age=60", `Etag: "k-2"`, "Content-Length: 3")
			_ = http.NewResponseController(w).Flush()
			pass(2 * time.Second)
			_, _ = io.WriteString(w, "w")
		})
		if s := l.get("/img/a", `If-None-Match: "k-2"`); s.status != 304 {
			t.Errorf("%d", s.status)
		}
		pass(3 * time.Second)
		l.event()
		l.want("/img/a", "new", Hit)
		l.asked(2, 0)
	})
}

func TestClosingCutsWhatIsOnItsWay(t *testing.T) {
	inLab(t, document{}, func(l *lab) {
		l.policy(cloudfront.CachePolicy{DefaultTTL: time.Hour, MaxTTL: time.Hour})
		l.karui.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		done := make(chan seen)
		go func() { done <- together(l, 1, "/img/a")[0] }()
		synctest.Wait()
		l.Close()
		if s := <-done; s.err == nil {
			t.Errorf("%d %q", s.status, s.body)
		}
		if s := l.get("/img/b"); s.err == nil {
			t.Errorf("after closing: %d", s.status)
		}
	})
}
