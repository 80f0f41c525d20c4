package convert

import (
	"fmt"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"karui/convert/header"
)

// workersOf returns the worker processes of a class that this process has started.
func workersOf(t testing.TB, class Class) []int {
	t.Helper()
	var pids []int
	for _, pid := range children(t) {
		words, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && strings.Contains(string(words), envClass+"="+string(class)+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// All workers for slow codecs hang and their queue is full: WebP is made as if they were not there.
func TestWebPNeverWaitsForSlowCodecs(t *testing.T) {
	p := faultyPool(t, func(c *Config) { c.Workers = 2; c.Timeout = 10 * time.Minute; c.QueueWait = 10 * time.Minute })
	mustConvert(t, p)
	var wg sync.WaitGroup
	full := p.lanes[Slow].workers + p.lanes[Slow].most
	for i := range full {
		wg.Go(func() {
			bad := append(faultyJPEG("hang"), byte(i), byte(i>>8))
			if _, err := p.Convert(t.Context(), bad, optionsFor(Slow, 70)); err != ErrClosed { //nolint:errorlint // it is that
				t.Errorf("one that hangs: %v", err)
			}
		})
	}
	until(t, func() bool { s := p.Stats().Slow; return s.Busy == s.Workers && s.Waiting == full-s.Workers })
	// One more is turned away at once, and passed on to the next format where there is one.
	r := convertOne(t, p, samplePhoto(), optionsFor(Slow, 71))
	if r.Decision.Code != QueueFull || r.Decision.Settled {
		t.Errorf("one too many: %+v", r.Decision)
	}
	both := optionsFor(Slow, 72)
	both.Formats = append(both.Formats, header.WebP)
	if r = convertOne(t, p, samplePhoto(), both); r.Decision.Code != Converted || r.Format != header.WebP {
		t.Errorf("with WebP as the second choice: %+v", r.Decision)
	}
	begin := time.Now()
	for q := range 10 {
		if r := convertOne(t, p, samplePhoto(), webpOptions(40+q)); r.Decision.Code != Converted {
			t.Fatalf("%+v", r.Decision)
		}
		if s := p.Stats(); s.Waiting != 0 || s.Slow.Waiting != full-s.Slow.Workers {
			t.Errorf("waiting: %+v", s)
		}
	}
	t.Logf("10 conversions to WebP took %s", time.Since(begin))
	if _, err := p.Ping(t.Context()); err != nil {
		t.Errorf("a ping: %v", err)
	}
	p.Close()
	wg.Wait()
}

// Workers for slow codecs come with the first job, and go when there is none any more.
func TestSlowWorkersComeAndGo(t *testing.T) {
	soon := func(s *settings) { s.unused = 50 * time.Millisecond }
	p := newPool(t, func(c *Config) { c.Workers = 2 }, soon)
	mustMake(t, p, Fast)
	if s := p.Stats().Slow; s.Alive != 0 || s.Workers != 1 {
		t.Errorf("without work: %+v", s)
	}
	for n := range uint64(3) {
		mustMake(t, p, Slow)
		until(t, func() bool { s := p.Stats(); return s.Slow.Alive == 0 && s.Ended[CauseUnused] == n+1 })
	}
	s := p.Stats()
	if s.Alive != 2 || s.Slow.CPU <= 0 || s.Slow.BusyTime <= 0 || s.CPU >= s.Slow.CPU {
		t.Errorf("stats: %+v", s)
	}
}

// Encoders that start threads work within all guards, on one processor and behind everybody else.
func TestSlowCodecsAreConfined(t *testing.T) {
	log := &linesLog{}
	p := newPool(t, func(c *Config) { c.Workers = 1 }, WithLogger(slog.New(log)),
		func(s *settings) { s.slowNice = slowNice })
	for _, f := range []header.Format{header.AVIF, header.HEIC} {
		opt := optionsFor(Slow, 70)
		opt.Formats = []header.Format{f}
		r := convertOne(t, p, samplePhoto(), opt)
		if r.Decision.Code == NoEncoder {
			t.Logf("this machine has no encoder for %s", f)
		} else if r.Decision.Code != Converted || r.Format != f {
			t.Errorf("%s: %+v", f, r.Decision)
		}
	}
	ready := log.find("class=slow guards=")
	if !strings.Contains(ready, "one processor") || !strings.Contains(ready, "seccomp") {
		t.Skipf("this kernel lacks something: %s", ready)
	}
	pids := workersOf(t, Slow)
	if len(pids) != 1 {
		t.Fatalf("%d workers for slow codecs", len(pids))
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pids[0]))
	if err != nil || len(threads) == 0 {
		t.Fatal(err)
	}
	for _, path := range threads {
		if nice, ok := niceOf(path); ok && nice != slowNice {
			t.Errorf("a thread has nice %d", nice)
		}
		var tid int
		if _, err := fmt.Sscan(filepath.Base(filepath.Dir(path)), &tid); err != nil {
			t.Fatal(err)
		}
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &set); err == nil && set.Count() != 1 {
			t.Errorf("a thread may use %d processors", set.Count())
		}
	}
}

func TestOneProcessorEach(t *testing.T) {
	var all unix.CPUSet
	for _, cpu := range []int{0, 2, 3, len(all)*bits.UintSize - 1} {
		all.Set(cpu)
	}
	for n, want := range []int{len(all)*bits.UintSize - 1, 3, 2, 0, len(all)*bits.UintSize - 1} {
		if one := oneOf(all, n); one.Count() != 1 || !one.IsSet(want) {
			t.Errorf("worker %d is not on processor %d", n, want)
		}
	}
	if one := oneOf(unix.CPUSet{}, 3); one.Count() != 0 {
		t.Error("a processor out of none")
	}
}
