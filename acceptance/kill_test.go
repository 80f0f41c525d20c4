package acceptance

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"karui/internal/origintest"
)

// shifting is an origin whose pictures change under their names, go away and come
// back, so that a cache in front of it is always putting, updating and deleting.
type shifting struct {
	bodies   [][][]byte // of each picture, its versions
	sums     map[[sha256.Size]byte]int
	requests atomic.Int64
}

func newShifting(t *testing.T, origin *origintest.Origin, pictures, versions int) *shifting {
	s := &shifting{sums: map[[sha256.Size]byte]int{}}
	for i := range pictures {
		var bodies [][]byte
		for v := range versions {
			body := photo(t, uint64(4000+i*versions+v))
			bodies = append(bodies, body)
			s.sums[sha256.Sum256(body)] = i
		}
		s.bodies = append(s.bodies, bodies)
		origin.SetFunc(s.target(i), func(origintest.Request) origintest.Answer {
			n := s.requests.Add(1)
			version := int(n/25) % versions
			if n%11 == 0 {
				return origintest.Text(404, "text/html", "<h1>gone for a moment</h1>")
			}
			a := origintest.Image("image/jpeg", bodies[version], cc("max-age=1"), field{Name: "ETag", Value: fmt.Sprintf(`"%d-%d"`, i, version)})
			a.Validate = true
			return a
		})
	}
	return s
}

func (s *shifting) target(i int) string { return fmt.Sprintf("/k/%d.jpg", i) }

// judge names what is wrong with a whole answer to a viewer.
func (s *shifting) judge(i int, a *reply) string {
	if a.status != 200 || a.err != nil {
		if a.head != "" && a.err == nil && a.status != 503 && a.status != 404 {
			return "an answer that nobody gave"
		}
		return "" // cut off by the kill, or none
	}
	if whose, known := s.sums[sha256.Sum256(a.body)]; known {
		if whose != i {
			return "another picture's original"
		}
		return ""
	}
	if !a.webp() || a.request.field("Accept") == takesAny[len("Accept: "):] {
		return "bytes that nobody made"
	}
	for _, original := range s.bodies[i] {
		if len(samePicture(original, a.body)) == 0 {
			return ""
		}
	}
	return "a variant of no version of the picture"
}

// viewers ask for the pictures until stop, and check every byte of what they get.
func (s *shifting) viewers(k *instance, stop <-chan struct{}, seed uint64, whole *atomic.Int64) *sync.WaitGroup {
	var viewers sync.WaitGroup
	for viewer := range 6 {
		viewers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(viewer)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				i, accept, query := r.IntN(len(s.bodies)), takesWebP, fmt.Sprintf("?v=%d", r.IntN(40))
				if r.IntN(3) == 0 {
					accept = takesAny
				}
				a := k.try(request{target: s.target(i) + query, fields: []string{accept}, loose: true})
				if problem := s.judge(i, a); problem != "" {
					k.t.Errorf("%s: %s: %v", s.target(i), problem, a)
				}
				if a.status == 200 && a.err == nil {
					whole.Add(1)
				}
				if a.head == "" { // nobody there: between two lives
					pause(5 * time.Millisecond)
				}
			}
		})
	}
	return &viewers
}

// Kills at random instants, in the middle of everything that writes to the cache:
// 20 times, or 200 with KARUI_LONG=1. Viewers ask all the time, and no whole answer
// is ever anything but a version of the picture; what a killed process was writing
// is gone after the next start; the volume stays within its bounds.
// KARUI_KILL_SEED repeats the lives of an earlier run.
func TestKillsAtRandomInstants(t *testing.T) {
	t.Parallel()
	rounds, seed := 20, uint64(time.Now().UnixNano())
	if testing.Short() {
		rounds = 4
	}
	if os.Getenv("KARUI_LONG") != "" {
		rounds = 200
	}
	if s := os.Getenv("KARUI_KILL_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("KARUI_KILL_SEED=%d", seed)
	const limit = 1 << 20 // room for a few of the 240 originals and their variants
	origin := origintest.New(t)
	s := newShifting(t, origin, 6, 3)
	k := serve(t, origin, with("ttl.short", "1s"), with("cache.memory", "128KiB"), with("stress.latency", "60s"),
		with("cache.volumes", []any{map[string]any{"path": filepath.Join(t.TempDir(), "cache"), "max_size": "1MiB"}}))
	k.cache = k.settings["cache"].(map[string]any)["volumes"].([]any)[0].(map[string]any)["path"].(string)
	r := rand.New(rand.NewPCG(seed, 0))
	var whole atomic.Int64
	stop := make(chan struct{})
	viewers := s.viewers(k, stop, seed, &whole)
	for round := range rounds {
		pause(time.Duration(r.IntN(700_000)) * time.Microsecond)
		k.kill()
		if round%4 == 0 { // and while it starts, its cache being loaded
			k.launch()
			pause(time.Duration(r.IntN(100_000)) * time.Microsecond)
			k.kill()
		}
		k.start()
		if t.Failed() {
			break
		}
	}
	close(stop)
	viewers.Wait()
	if n := whole.Load(); n < int64(10*rounds) {
		t.Errorf("only %d whole answers in %d rounds: the test saw too little", n, rounds)
	}
	t.Logf("%d kills, %d whole answers, %d requests to the origin", rounds+(rounds+3)/4, whole.Load(), s.requests.Load())

	k.kill()
	k.start()
	eventually(t, 10*time.Second, "nothing left of what was being written", func() bool {
		left, err := os.ReadDir(filepath.Join(k.cache, "tmp"))
		return err == nil && len(left) == 0
	})
	var sum int64
	for name, size := range k.cacheFiles() {
		sum += (size + 4095) / 4096 * 4096
		if b, err := os.ReadFile(name); err == nil && len(b) == 0 && filepath.Base(name) != "lock" {
			t.Errorf("an empty file: %s", name)
		}
	}
	if sum > limit+8192 { // the folder's own two files are not entries
		t.Errorf("%d bytes on disk, max_size is %d", sum, limit)
	}
	for i := range s.bodies {
		var a *reply
		eventually(t, settleLimit, "a whole picture in the end", func() bool {
			a = k.get(s.target(i), takesWebP)
			return a.status == 200 && bytes.HasPrefix(a.body, []byte("RIFF"))
		})
		if problem := s.judge(i, a); problem != "" {
			t.Errorf("%s in the end: %s: %v", s.target(i), problem, a)
		}
	}
}
