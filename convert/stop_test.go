package convert

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A worker that somebody stopped (SIGSTOP) before its next job is replaced, and the job knows nothing of it.
func TestWorkerStoppedBetweenJobs(t *testing.T) {
	for _, class := range classes {
		p := faultyPool(t, nil)
		mustMake(t, p, class)
		for _, pid := range workersOf(t, class) {
			_ = unix.Kill(pid, unix.SIGSTOP)
			until(t, func() bool { u, err := readUsage(pid); return err == nil && u.stopped })
		}
		begin := time.Now()
		mustMake(t, p, class)
		t.Logf("%s: the next conversion took %s", class, time.Since(begin))
		if s := p.Stats(); s.Ended[CauseStopped] != 1 || s.Decisions[Converted] != 2 || len(s.Blamed) != 0 {
			t.Errorf("%s: %+v", class, s)
		}
		p.Close()
	}
}

// One that is stopped during a job costs that job, and nobody blames the image.
func TestWorkerStoppedDuringAJob(t *testing.T) {
	for _, class := range classes {
		said := &countingLog{}
		p := newPool(t, func(c *Config) { c.Workers = 1 }, WithCommand("/proc/self/exe", faultyCommand), WithLogger(slog.New(said)))
		mustMake(t, p, class)
		decisions := make(chan Decision, 1)
		go func() {
			r, err := p.Convert(t.Context(), faultyJPEG("hang"), optionsFor(class, 70))
			if err != nil {
				t.Error(err)
			}
			decisions <- r.Decision
		}()
		until(t, func() bool { return said.lines.Load() == 1 })
		for _, pid := range workersOf(t, class) {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		if d := <-decisions; d.Code != Unavailable || d.Settled {
			t.Errorf("%s: %+v", class, d)
		}
		mustMake(t, p, class)
		if s := p.Stats(); s.Ended[CauseStopped] != 1 || len(s.Blamed) != 0 || len(p.Quarantine()) != 0 {
			t.Errorf("%s: %+v", class, s)
		}
		p.Close()
	}
}

// script makes a program that runs the line before it becomes a worker, in the first process of the class only.
func script(t *testing.T, class Class, line string) Option {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	flag := filepath.Join(t.TempDir(), "started")
	return WithCommand("/bin/sh", "-c", fmt.Sprintf(`if [ "$%s" = %s ] && mkdir %q 2>/dev/null; then %s; fi; exec %q %s`,
		envClass, class, flag, line, self, WorkerCommand))
}

// A worker that hangs before it is ready holds nobody up for long: another one is started beside it.
func TestWorkerThatHangsAtItsStart(t *testing.T) {
	for _, class := range classes {
		p := newPool(t, func(c *Config) { c.Workers = 1 }, script(t, class, "exec sleep 600"))
		begin := time.Now()
		mustMake(t, p, class)
		t.Logf("%s: the first conversion took %s", class, time.Since(begin))
		if d := time.Since(begin); d >= startLimit {
			t.Errorf("%s: it took %s", class, d)
		}
		if s := p.Stats(); s.Ended[CauseUnused] == 0 || s.Ended[CauseStart] != 0 {
			t.Errorf("%s: %+v", class, s)
		}
		p.Close()
	}
}

// Starts that take longer than usual are waited for.
func TestWorkerThatStartsSlowly(t *testing.T) {
	p := newPool(t, func(c *Config) { c.Workers = 1 }, script(t, Fast, "sleep 1"))
	mustMake(t, p, Fast)
	if s := p.Stats(); s.Alive != 1 || s.Decisions[Converted] != 1 {
		t.Errorf("%+v", s)
	}
	until(t, func() bool { return len(children(t)) == 1 })
}

// A conversion that was not done in time since others had the processors says nothing about its image.
func TestStarvedConversionsAreNotBlamed(t *testing.T) {
	p := newPool(t, nil, WithCommand("/nowhere/karui"))
	for range 3 {
		d := p.faulted(verdict{fault: CauseTimeout, started: true, starved: true}, &request{source: samplePhoto()})
		if d.Code != Timeout || d.Settled {
			t.Errorf("%+v", d)
		}
	}
	if len(p.Quarantine()) != 0 || len(p.Stats().Blamed) != 0 {
		t.Errorf("blamed: %v, %v", p.Quarantine(), p.Stats().Blamed)
	}
}

func TestDelayOfThreads(t *testing.T) {
	if d := parseDelay([]byte("123456 2500000000 17\n")); d != 2500*time.Millisecond {
		t.Error(d)
	}
	for _, s := range []string{"", "1", "1 x 3"} {
		if d := parseDelay([]byte(s)); d != 0 {
			t.Errorf("%q: %s", s, d)
		}
	}
	if d := readDelay(os.Getpid()); d < 0 {
		t.Error(d)
	}
}
