package cache

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"karui/internal/units"
)

// crashEnv names the folder for the process that is to be killed, its max_size in
// bytes, and whether it puts through the write queue, with spaces between.
const crashEnv = "KARUI_TEST_CACHE_CRASH"

const (
	crashWorkers = 4
	crashKeys    = 10 // of each worker
)

func crashKey(worker, i int) Key {
	return Key{Site: "shop", Path: fmt.Sprintf("/%d/%d.jpg", worker, i), Form: "webp"}
}

// crashBody can be told from every other body: its bytes follow from key and serial.
func crashBody(key Key, serial int64) []byte {
	h := key.hash()
	r := rand.NewChaCha8([32]byte(append(h[:], binary.LittleEndian.AppendUint64(make([]byte, 8), uint64(serial))...)))
	b := make([]byte, 1+r.Uint64()%60_000)
	if serial%37 == 0 {
		b = make([]byte, 400_000) // over what memory takes
	}
	_, _ = r.Read(b)
	return b
}

func crashConfig(dir string, limit int64) Config {
	cfg := testConfig(dir)
	cfg.Memory = 4 << 20
	cfg.Volumes[0].MaxSize = units.Size(limit)
	return cfg
}

// crashChild writes under load until it is killed. It says before and after each
// change what it does: begin and put with a worker, a key and a serial, which is 0
// for a Delete; now and then that all of a worker's are flushed; ! for what is wrong.
func crashChild(task string) {
	var dir string
	var limit int64
	var queued bool
	if _, err := fmt.Sscan(task, &dir, &limit, &queued); err != nil {
		fmt.Println("! task:", err)
		os.Exit(1)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c, err := Open(crashConfig(dir, limit), roomy(), Options{Log: log, writeThrough: !queued})
	if err != nil {
		fmt.Println("! open:", err)
		os.Exit(1)
	}
	start := time.Now().UnixNano()
	var all sync.WaitGroup
	for w := range crashWorkers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(start), uint64(w)))
			for serial := start; ; serial++ {
				i := r.IntN(crashKeys)
				key := crashKey(w, i)
				meta := Meta{FetchStart: time.Unix(0, serial), Attributes: []byte(strconv.FormatInt(serial, 10))}
				if r.IntN(20) == 0 {
					if err := c.Flush(context.Background()); err != nil {
						fmt.Println("! flush:", err)
					}
					fmt.Println("flushed", w)
				}
				switch r.IntN(10) {
				default:
					fmt.Printf("begin %d %d %d\n", w, i, serial)
					b := crashBody(key, serial)
					var err error
					if serial%2 == 0 {
						err = c.Put(key, meta, b)
					} else {
						err = c.PutFrom(key, meta, int64(len(b)), bytes.NewReader(b))
					}
					if err != nil {
						fmt.Println("! put:", err)
					}
					fmt.Printf("put %d %d %d\n", w, i, serial)
				case 0:
					fmt.Printf("begin %d %d 0\n", w, i)
					if err := c.Delete(key, meta.FetchStart); err != nil {
						fmt.Println("! delete:", err)
					}
					fmt.Printf("put %d %d 0\n", w, i)
				case 1, 2, 3:
					e, ok := c.Get(key)
					if !ok {
						continue
					}
					was, err := strconv.ParseInt(strings.TrimRight(string(e.Meta.Attributes), " "), 10, 64)
					var got bytes.Buffer
					if _, werr := e.WriteTo(&got); err != nil || werr != nil || !bytes.Equal(got.Bytes(), crashBody(key, was)) {
						fmt.Println("! wrong bytes under", key)
					}
					// A revalidation; its attributes grow now and then beyond the slot.
					meta.Attributes = append([]byte(strconv.FormatInt(was, 10)), strings.Repeat(" ", r.IntN(300))...)
					if err := c.Update(e, meta); err != nil && !(errors.Is(err, ErrGone) && limit < crashRoomy) {
						fmt.Println("! update:", err)
					}
					_ = e.Close()
				}
			}
		})
	}
	all.Wait()
}

// crashRoomy is a max_size at which nothing is evicted.
const crashRoomy = 1 << 30

// TestCrash kills a process that writes, again and again, at random instants, and
// looks afterwards: what was put and acknowledged is there, what was deleted is
// not, what was under way is one or the other, and every byte is right.
func TestCrash(t *testing.T) { killAgainAndAgain(t, 80, crashRoomy, false) }

// With a volume that is always full, entries may also be gone, and the files stay
// within max_size.
func TestCrashWhileEvicting(t *testing.T) { killAgainAndAgain(t, 60, 1<<20, false) }

// With a write queue, what was put since the last flush may be what is lost.
func TestCrashWithAQueue(t *testing.T) { killAgainAndAgain(t, 60, crashRoomy, true) }

// number gives what an environment variable says, else standard.
func number(t *testing.T, name string, standard uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return standard
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// killAgainAndAgain does the given number of rounds, or KARUI_TEST_CRASH_ROUNDS.
// KARUI_TEST_CRASH_SEED repeats the lives of an earlier run, as far as the machine does.
func killAgainAndAgain(t *testing.T, rounds int, limit int64, queued bool) {
	if testing.Short() {
		rounds = 5
	}
	rounds = int(number(t, "KARUI_TEST_CRASH_ROUNDS", uint64(rounds)))
	seed := number(t, "KARUI_TEST_CRASH_SEED", uint64(time.Now().UnixNano()))
	t.Logf("KARUI_TEST_CRASH_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	may := map[Key][]int64{} // the serials that may be stored, 0 for nothing
	changes := 0
	for range rounds {
		changes += crashRound(t, dir, limit, queued, time.Duration(r.IntN(60_000))*time.Microsecond, may)
		checkAfterCrash(t, dir, limit, may)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills, %d acknowledged changes", rounds, changes)
	if changes == 0 {
		t.Error("nothing was ever written before the kill")
	}
}

func crashRound(t *testing.T, dir string, limit int64, queued bool, life time.Duration, may map[Key][]int64) (changes int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %v", crashEnv, dir, limit, queued))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var kill *time.Timer
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if kill == nil { // it is at work
			kill = time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
		}
		var w, i int
		var serial int64
		line := lines.Text()
		if n, _ := fmt.Sscanf(line, "begin %d %d %d", &w, &i, &serial); n == 3 {
			key := crashKey(w, i)
			if may[key] == nil {
				may[key] = []int64{0}
			}
			may[key] = append(may[key], serial)
		} else if n, _ := fmt.Sscanf(line, "put %d %d %d", &w, &i, &serial); n == 3 {
			changes++
			if !queued || serial == 0 { // else it may still be lost
				may[crashKey(w, i)] = []int64{serial}
			}
		} else if n, _ := fmt.Sscanf(line, "flushed %d", &w); n == 1 {
			for i := range crashKeys {
				if s := may[crashKey(w, i)]; len(s) > 0 {
					may[crashKey(w, i)] = s[len(s)-1:]
				}
			}
		} else {
			t.Errorf("the process says %q", line)
		}
	}
	if kill == nil {
		t.Error("the process ended without a word")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
	return changes
}

func checkAfterCrash(t *testing.T, dir string, limit int64, may map[Key][]int64) {
	t.Helper()
	c, _ := openOn(t, crashConfig(dir, limit), roomy(), osFiles{}, time.Now)
	defer c.Close()
	for key, serials := range may {
		stored := int64(0)
		if e, ok := c.Get(key); ok {
			var err error
			stored, err = strconv.ParseInt(strings.TrimRight(string(e.Meta.Attributes), " "), 10, 64)
			if err != nil || !bytes.Equal(body(t, e), crashBody(key, stored)) {
				t.Errorf("wrong bytes under %v", key)
			}
			_ = e.Close()
		}
		evicted := stored == 0 && limit < crashRoomy
		if !evicted && !slices.Contains(serials, stored) {
			t.Errorf("%v holds %d, want one of %v", key, stored, serials)
		}
		may[key] = []int64{stored}
	}
	for _, name := range filesIn(t, filepath.Join(dir, "tmp")) {
		t.Errorf("left over: %s", name)
	}
	s := c.Stats().Volumes[0]
	if s.Broken != 0 {
		t.Errorf("%d broken files: a kill alone must not make any", s.Broken)
	}
	var real int64
	for _, name := range filesIn(t, dir) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		real += onDisk(info)
	}
	if real > limit || real != s.Bytes {
		t.Errorf("%d bytes on disk, %d counted, the limit is %d", real, s.Bytes, limit)
	}
}
