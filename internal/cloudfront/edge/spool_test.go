package edge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSpoolGivesEveryReaderAllBytes lets readers of different appetite follow a
// writer, with and without a budget that ends in the middle.
func TestSpoolGivesEveryReaderAllBytes(t *testing.T) {
	all := make([]byte, 120<<10)
	for i := range all {
		all[i] = byte(i ^ i>>8)
	}
	rapid.Check(t, func(t *rapid.T) {
		body := all[:rapid.IntRange(0, len(all)).Draw(t, "size")]
		budget := rapid.IntRange(0, 150<<10).Draw(t, "budget")
		steps := rapid.SliceOfN(rapid.IntRange(1<<10, 70<<10), 1, 20).Draw(t, "steps")
		appetites := rapid.SliceOfN(rapid.IntRange(2<<10, 100<<10), 1, 4).Draw(t, "appetites")
		window := int64(rapid.IntRange(4<<10, 64<<10).Draw(t, "window"))

		left := budget
		s := newSpool(func(n int) bool { left -= n; return left >= 0 }, func(int) {})
		var wg sync.WaitGroup
		got := make([][]byte, len(appetites))
		for i, appetite := range appetites {
			r, ok := s.open()
			if !ok {
				t.Fatal("an empty spool could not be opened")
			}
			wg.Go(func() {
				defer r.close()
				for {
					data, _, err := r.next(context.Background())
					if err != nil {
						if !errors.Is(err, io.EOF) {
							got[i] = []byte(err.Error())
						}
						return
					}
					n := min(appetite, len(data))
					got[i] = append(got[i], data[:n]...)
					r.read(n)
				}
			})
		}
		rest := body
		for i := 0; len(rest) > 0; i++ {
			n := min(steps[i%len(steps)], len(rest))
			if _, err := s.append(context.Background(), rest[:n], window, n == len(rest)); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		s.end(nil)
		wg.Wait()
		for i := range got {
			if !bytes.Equal(got[i], body) {
				t.Fatalf("reader %d of %d had %d bytes of %d", i, len(got), len(got[i]), len(body))
			}
		}
		if size, ok := s.length(); !ok || size != int64(len(body)) {
			t.Fatalf("length %d, %v", size, ok)
		}
	})
}

func TestAWriterWaitsForTheSlowestReaderInAWindow(t *testing.T) {
	s := newSpool(nil, nil)
	s.narrow(10)
	r, _ := s.open()
	defer r.close()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.append(ctx, make([]byte, 10), 10, false); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.append(ctx, []byte("x"), 10, false); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	late, ok := s.open()
	if !ok {
		t.Fatal("nothing was dropped, and yet it cannot be opened")
	}
	late.close()
	r.read(10)
	for range 3 { // chunk by chunk, what was read is let go of
		if _, err := s.append(t.Context(), make([]byte, chunkSize), chunkSize, false); err != nil {
			t.Fatal(err)
		}
		r.read(chunkSize)
	}
	s.mu.Lock()
	held := len(s.chunks)
	s.mu.Unlock()
	if held > 2 {
		t.Errorf("%d chunks are held", held)
	}
	if _, ok := s.open(); ok {
		t.Error("opened although its beginning is gone")
	}
}

// TestManyViewersOfFewImagesInLittleMemory runs over real connections, for the
// race detector: every body has to be the one of its path.
func TestManyViewersOfFewImagesInLittleMemory(t *testing.T) {
	bodyOf := func(path string) string {
		sum := sha256.Sum256([]byte(path))
		return strings.Repeat(fmt.Sprintf("%x", sum), 1+int(sum[0])*8)
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bodyOf(r.URL.Path)
		w.Header().Set("Cache-Control", "max-age=60")
		switch sum := sha256.Sum256([]byte(r.URL.Path)); sum[1] % 3 {
		case 0:
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		case 1:
			w.Header().Set("Cache-Control", "no-store")
		}
		for len(body) > 0 {
			n := min(len(body), 7000)
			_, _ = io.WriteString(w, body[:n])
			body = body[n:]
		}
	}))
	defer origin.Close()
	address := strings.TrimPrefix(origin.URL, "http://")
	const memory = 600 << 10
	s, err := StartSample(SampleOptions{Proxy: address, Origin: address, Edge: Options{Memory: memory, MaxObject: 100 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 20}
	client := &http.Client{Transport: transport}
	var wg sync.WaitGroup
	for viewer := range 12 {
		random := rand.New(rand.NewPCG(1, uint64(viewer)))
		wg.Go(func() {
			for range 40 {
				path := "/images/" + strconv.Itoa(random.IntN(25))
				ctx, cancel := context.WithCancel(t.Context())
				r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
				resp, err := client.Do(r)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					cancel()
					continue
				}
				if random.IntN(5) == 0 { // leaves half way
					_, _ = io.CopyN(io.Discard, resp.Body, 100)
					cancel()
					resp.Body.Close()
					continue
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				cancel()
				if err != nil || string(body) != bodyOf(path) {
					t.Errorf("%s: %d bytes instead of %d, %v", path, len(body), len(bodyOf(path)), err)
				}
			}
		})
	}
	wg.Wait()
	if _, held := s.Edge.Cached(); held > memory {
		t.Errorf("%d bytes are held", held)
	}
	transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if n, held := s.Edge.Cached(); held < 0 || n == 0 {
		t.Errorf("%d objects, %d bytes at the end", n, held)
	}
}
