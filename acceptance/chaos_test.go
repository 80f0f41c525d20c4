package acceptance

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"karui/internal/origintest"
)

// An origin that does something else wrong every time, impatient viewers, short
// lifetimes and killed workers, all at once: whoever gets a whole 200 gets the
// right picture, and a plain viewer never gets a WebP.
func TestNoWholeAnswerIsEverWrong(t *testing.T) {
	t.Parallel()
	const pictures = 12
	bodies := make([][]byte, pictures)
	for i := range bodies {
		bodies[i] = photo(t, uint64(700+i))
	}
	stall := origintest.NewGate()
	defer stall.Open()
	origin := origintest.New(t)
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(11, 12))
	for i, body := range bodies {
		origin.SetFunc(fmt.Sprintf("/%d.jpg", i), func(origintest.Request) origintest.Answer {
			mu.Lock()
			kind, at := rng.IntN(16), int64(rng.IntN(len(body)))
			mu.Unlock()
			a := origintest.Image("image/jpeg", body, cc("max-age=1"), field{Name: "ETag", Value: fmt.Sprintf(`"%d"`, i)})
			a.Validate = true
			switch kind {
			case 0:
				return a.CutAt(at, false)
			case 1:
				return a.CutAt(at, true)
			case 2:
				a.Declare = int64(len(body)) + 100
			case 3:
				a.Framing = origintest.Chunked
				return a.CutAt(at, at%2 == 0)
			case 4:
				return origintest.Text(500, "text/html", "<h1>boom</h1>")
			case 5:
				return origintest.Text(429, "text/html", "<h1>slow down</h1>")
			case 6:
				a.Stall, a.StallAt = stall, at
			case 7:
				a.Hold = stall
			case 8:
				a.Framing = origintest.Close
			case 9:
				return origintest.Answer{Raw: []byte("HTTP/1.1 200 OK\r\nContent-Le")}
			case 10:
				a.Framing = origintest.Chunked
			}
			return a
		})
	}
	k := serve(t, origin, with("ttl.short", "1s"), with("origin.deadline", "1s"), with("origin.connect", "1s"), with("origin.idle", "1s"), with("first_response.wait", "100ms"), with("stress.latency", "60s"))
	seconds := 12
	if testing.Short() {
		seconds = 4
	}
	stop := make(chan struct{})
	timer := time.AfterFunc(time.Duration(seconds)*time.Second, func() { close(stop) })
	defer timer.Stop()
	var judged sync.Map
	counts := map[int]int{}
	variants := 0
	var wg sync.WaitGroup
	for viewer := range 12 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(viewer), 13))
			for {
				select {
				case <-stop:
					return
				default:
				}
				i := rng.IntN(pictures)
				target := fmt.Sprintf("/%d.jpg", i)
				if rng.IntN(8) == 0 {
					// This one leaves in the middle.
					if c, err := k.tryDial(); err == nil {
						_, _ = c.Write(request{target: target, host: "www.example.com", fields: []string{takesWebP}}.bytes())
						_ = c.SetDeadline(time.Now().Add(20 * time.Millisecond))
						_, _ = c.r.ReadByte()
						_ = c.Close()
					}
					continue
				}
				accept := takesAny
				if rng.IntN(2) == 0 {
					accept = takesWebP
				}
				a := k.try(request{target: target, fields: []string{accept}})
				mu.Lock()
				counts[a.status]++
				mu.Unlock()
				if a.status != 200 || a.err != nil {
					if a.status != 200 && a.status != 503 && a.head != "" {
						t.Errorf("%v", a)
					}
					continue
				}
				if bytes.Equal(a.body, bodies[i]) {
					continue
				}
				mu.Lock()
				variants++
				mu.Unlock()
				sum := fmt.Sprintf("%d %x", i, sha256.Sum256(a.body))
				if _, known := judged.LoadOrStore(sum, true); known && accept == takesWebP {
					continue
				}
				if accept == takesAny {
					t.Errorf("a plain viewer got %d bytes that are not the original: %v", len(a.body), a)
					continue
				}
				for _, problem := range samePicture(bodies[i], a.body) {
					t.Errorf("%s: %s: %v", target, problem, a)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("answers by status (0: cut off before the head): %v, %d variants", counts, variants)
	if counts[200] < 50 || variants == 0 {
		t.Errorf("the test saw too little: %v, %d variants", counts, variants)
	}
}
