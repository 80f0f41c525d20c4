package convert

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"karui/convert/header"
	"karui/internal/sample"
)

// faultyJPEG is a good JPEG that makes a faulty worker misbehave when it converts it.
func faultyJPEG(fault string) []byte {
	note := faultMark + fault + "."
	comment := append([]byte{0xff, 0xfe, 0, byte(len(note) + 2)}, note...)
	b := append([]byte{}, samplePhoto()[:2]...)
	return append(append(b, comment...), samplePhoto()[2:]...)
}

var samplePhoto = sync.OnceValue(sample.Photo)

// faultyPool has workers that misbehave where a JPEG asks them to.
func faultyPool(t *testing.T, change func(*Config), options ...Option) *Pool {
	t.Helper()
	return newPool(t, func(c *Config) {
		c.Workers = 1
		if change != nil {
			change(c)
		}
	}, append(options, WithCommand("/proc/self/exe", faultyCommand))...)
}

// mustConvert proves that the pool works, by a picture that takes a millisecond: some of these pools give little time.
func mustConvert(t *testing.T, p *Pool) { mustMake(t, p, Fast) }

// mustMake is mustConvert for the workers of a class.
func mustMake(t *testing.T, p *Pool, class Class) {
	t.Helper()
	r := convertOne(t, p, tinyPhoto(), optionsFor(class, 70))
	if r.Decision.Code != Converted {
		t.Fatalf("a good picture: %+v", r.Decision)
	}
}

// optionsFor ask for a format that the workers of a class make.
func optionsFor(class Class, quality int) Options {
	opt := webpOptions(quality)
	if class == Slow {
		opt.Formats = []header.Format{header.AVIF}
	}
	return opt
}

var classes = []Class{Fast, Slow}

var tinyPhoto = sync.OnceValue(func() []byte {
	img := image.NewNRGBA(image.Rect(0, 0, 64, 48))
	for i := range img.Pix {
		img.Pix[i] = uint8(128 + 100*math.Sin(float64(i)/40))
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 95}); err != nil {
		panic(err)
	}
	return b.Bytes()
})

func TestFaults(t *testing.T) {
	for _, c := range []injected{
		{"crash", nil, Crashed, CauseCrash, true},
		{"exit", nil, Crashed, CauseCrash, true},
		{"garbage", nil, Crashed, CauseGarbage, true},
		{"memory", func(c *Config) { c.WorkerMemory = 256 << 20 }, OutOfMemory, CauseMemory, true},
		{"spin", func(c *Config) { c.Timeout = 700 * time.Millisecond }, Timeout, CauseTimeout, false},
		{"hang", func(c *Config) { c.Timeout = 700 * time.Millisecond }, Timeout, CauseTimeout, false},
	} {
		for _, class := range classes {
			t.Run(c.fault+"/"+string(class), func(t *testing.T) { t.Parallel(); c.inject(t, class) })
		}
	}
}

// injected is a fault, and what is to come of it.
type injected struct {
	fault   string
	change  func(*Config)
	code    Code
	cause   Cause
	settled bool
}

func (c injected) inject(t *testing.T, class Class) {
	patient := func(s *settings) {
		if c.fault == "spin" { // it is its CPU time that ends, however busy the machine is
			s.wallFactor = 1000
		}
	}
	p := faultyPool(t, c.change, patient)
	mustMake(t, p, class)
	bad := faultyJPEG(c.fault)
	r := convertOne(t, p, bad, optionsFor(class, 70))
	if r.Decision.Code != c.code || r.Decision.Settled != c.settled || r.Body != nil {
		t.Fatalf("got %+v with %d bytes, want %s", r.Decision, len(r.Body), c.code)
	}
	if c.code == Timeout {
		// Once more; on a machine where others have the processors, one may not count.
		for tries := 0; !r.Decision.Settled && tries < 20; tries++ {
			r = convertOne(t, p, bad, optionsFor(class, 70))
		}
		if r.Decision.Code != Timeout || !r.Decision.Settled || p.Stats().Blamed[c.cause] != 2 {
			t.Fatalf("the second time: %+v, %v", r.Decision, p.Stats().Blamed)
		}
	}
	var before uint64 // a worker is counted after its job was answered
	until(t, func() bool { before = p.Stats().Ended[c.cause]; return before >= max(1, p.Stats().Blamed[c.cause]) })
	r = convertOne(t, p, bad, optionsFor(class, 30))
	if r.Decision.Code != Quarantined || !r.Decision.Settled {
		t.Errorf("afterwards: %+v", r.Decision)
	}
	mustMake(t, p, class)
	s := p.Stats()
	if s.Ended[c.cause] != before || before == 0 {
		t.Errorf("ended by %s: %d, then %d, and the quarantined source must not have reached a worker", c.cause, before, s.Ended[c.cause])
	}
	if s.Quarantined[c.cause] != 1 || s.Blamed[c.cause] == 0 || s.Decisions[c.code] == 0 {
		t.Errorf("stats: %+v", s)
	}
}

// A worker that is gone between two jobs is replaced, and the next job knows nothing of it.
func TestDeathBetweenJobs(t *testing.T) {
	p := faultyPool(t, func(c *Config) { c.Workers = 2 })
	for range 3 {
		for range 2 {
			mustMake(t, p, Fast)
			mustMake(t, p, Slow)
			for _, pid := range children(t) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
	mustMake(t, p, Fast)
	mustMake(t, p, Slow)
	if s := p.Stats(); s.Decisions[Converted] != 14 || s.Ended[CauseIdle] == 0 {
		t.Errorf("stats: %+v", s)
	}
}

// children returns the processes that this one has started, pools of other tests included.
func children(t testing.TB) []int {
	t.Helper()
	var pids []int
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		pid, parent, ok := parentOf(path)
		if ok && parent == os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// All workers are killed in the middle of their work: each of these jobs keeps its original, and the pool is whole
// again within a second.
func TestAllWorkersAtOnce(t *testing.T) {
	said := &countingLog{}
	p := newPool(t, func(c *Config) { c.Workers = 4 },
		WithCommand("/proc/self/exe", faultyCommand), WithLogger(slog.New(said)))
	var wg sync.WaitGroup
	decisions := make([]Decision, 6)
	for i := range decisions {
		class := Fast
		if i >= 4 {
			class = Slow
		}
		wg.Go(func() {
			bad := append(faultyJPEG("hang"), byte(i)) // bytes behind the end: different sources
			r, err := p.Convert(t.Context(), bad, optionsFor(class, 70))
			if err != nil {
				t.Error(err)
			}
			decisions[i] = r.Decision
		})
	}
	// A death before the job is read would be made good.
	until(t, func() bool { return said.lines.Load() == int64(len(decisions)) })
	for _, pid := range children(t) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	begin := time.Now()
	wg.Wait()
	for _, d := range decisions {
		if d.Code != Crashed {
			t.Errorf("a job of a killed worker: %+v", d)
		}
	}
	until(t, func() bool { return p.Stats().Alive == 4 })
	t.Logf("the pool was whole after %s", time.Since(begin))
	mustMake(t, p, Fast)
	mustMake(t, p, Slow)
}

// countingLog counts what workers say on stderr.
type countingLog struct{ lines atomic.Int64 }

func (c *countingLog) Enabled(context.Context, slog.Level) bool { return true }
func (c *countingLog) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *countingLog) WithGroup(string) slog.Handler            { return c }
func (c *countingLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "worker says" {
		c.lines.Add(1)
	}
	return nil
}

// until waits for a state that other goroutines bring about.
func until(t *testing.T, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("it did not come about")
		}
	}
}

func TestMissingBinary(t *testing.T) {
	p := newPool(t, func(c *Config) { c.Workers = 2; c.QueueWait = time.Minute }, WithCommand("/nowhere/karui"))
	for _, class := range classes {
		r := convertOne(t, p, samplePhoto(), optionsFor(class, 70))
		if r.Decision.Code != Unavailable || r.Decision.Settled {
			t.Errorf("%s: %+v", class, r.Decision)
		}
	}
	if _, err := p.Ping(t.Context()); err == nil {
		t.Error("a ping without workers succeeded")
	}
	if n := p.Stats().Ended[CauseStart]; n < 2 {
		t.Errorf("%d failed starts counted", n)
	}
}

// A program that starts and is no worker.
func TestWrongBinary(t *testing.T) {
	for _, path := range []string{"/bin/true", "/bin/cat", "/bin/yes"} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(path); err != nil {
				t.Skip(err)
			}
			p := newPool(t, func(c *Config) { c.Workers = 1; c.QueueWait = 200 * time.Millisecond }, WithCommand(path))
			r := convertOne(t, p, samplePhoto(), webpOptions(70))
			if c := r.Decision.Code; c != Unavailable && c != QueueFull || r.Decision.Settled {
				t.Errorf("got %+v", r.Decision)
			}
		})
	}
}

func TestQueueIsBounded(t *testing.T) {
	p := faultyPool(t, func(c *Config) { c.QueueWait = 50 * time.Millisecond; c.Timeout = time.Minute })
	until(t, func() bool { return p.Stats().Alive == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := p.Convert(ctx, faultyJPEG("hang"), webpOptions(70))
		gone <- err
	}()
	until(t, func() bool { return p.Stats().Busy == 1 })
	r := convertOne(t, p, samplePhoto(), webpOptions(71))
	if r.Decision.Code != QueueFull || r.Decision.Settled {
		t.Errorf("got %+v", r.Decision)
	}
	body, err := p.Ping(t.Context())
	if err != nil || header.Sniff(body) != header.JPEG {
		t.Errorf("a ping beside a full queue: %v", err)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled caller: %v", err)
	}
	p.Close()
	if _, err := p.Convert(t.Context(), samplePhoto(), webpOptions(70)); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := p.Ping(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a ping after Close: %v", err)
	}
}

// One of many who want the same leaves: the others get it, and there was one conversion.
func TestSharedConversion(t *testing.T) {
	p := newPool(t, func(c *Config) { c.Workers = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	first := make(chan error, 1)
	wg.Go(func() {
		_, err := p.Convert(ctx, samplePhoto(), webpOptions(70))
		first <- err
	})
	until(t, func() bool { s := p.Stats(); return s.Busy+s.Waiting == 1 })
	results := make([]Result, 20)
	for i := range results {
		wg.Go(func() {
			r, err := p.Convert(t.Context(), samplePhoto(), webpOptions(70))
			if err != nil {
				t.Error(err)
			}
			results[i] = r
		})
	}
	cancel()
	wg.Wait()
	if err := <-first; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, r := range results {
		if r.Decision.Code != Converted || len(r.Body) == 0 {
			t.Fatalf("one of the others: %+v", r.Decision)
		}
	}
	// A caller that came when the shared conversion was over has started another one.
	if n := p.Stats().Decisions[Converted]; n > 3 {
		t.Errorf("%d conversions of one source", n)
	}
}

func TestRecycling(t *testing.T) {
	p := newPool(t, func(c *Config) { c.Workers = 1; c.Recycle = 3 })
	for q := range 7 {
		if r := convertOne(t, p, samplePhoto(), webpOptions(40+q)); r.Decision.Code != Converted {
			t.Fatalf("%+v", r.Decision)
		}
	}
	until(t, func() bool { return p.Stats().Ended[CauseRecycled] == 2 })
}
