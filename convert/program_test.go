package convert

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/davidbyttow/govips/v2/vips"

	"karui/convert/header"
)

// getReplaced is a program with a pool of the usual kind, which starts itself. For each line on stdin it kills all its
// workers and converts a picture, and says what came of it.
func getReplaced() int {
	cfg := DefaultConfig()
	cfg.Workers, cfg.QueueWait = 1, time.Minute
	p, err := New(cfg, WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return 1
	}
	defer p.Close()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range stats {
			if pid, parent, ok := parentOf(path); ok && parent == os.Getpid() {
				worker, err := os.FindProcess(pid)
				if err == nil {
					_ = worker.Kill()
				}
			}
		}
		for _, class := range classes {
			r, err := p.Convert(context.Background(), tinyPhoto(), optionsFor(class, 70))
			fmt.Println(r.Decision.Code, err)
		}
	}
	return 0
}

// A newer version is installed over the program, or it is removed, while it runs: its workers are still its own.
func TestProgramIsReplacedWhileItRuns(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "karui")
	if err := os.WriteFile(path, self, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	cmd := exec.Command(path, replacedCommand)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	convert := func(when string) {
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Error(err)
		}
		for _, class := range classes {
			if !lines.Scan() || lines.Text() != "converted <nil>" {
				t.Errorf("%s, %s: %q", when, class, lines.Text())
			}
		}
	}
	convert("as it was")
	other := path + ".new"
	if err := os.WriteFile(other, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	convert("replaced")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	convert("removed")
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// showCache converts as a worker does and prints what libvips remembers of it. With "on", libvips was started before
// with a cache, as it is without any settings.
func showCache() int {
	e := &engine{missing: map[header.Format]string{}}
	start := func() (err error) { e, err = startEngine(); return err }
	if os.Args[2] == "on" {
		start = func() error {
			return vips.Startup(&vips.Config{ConcurrencyLevel: 1, MaxCacheSize: 100, MaxCacheMem: 100 << 20})
		}
	}
	if err := start(); err != nil {
		return 1
	}
	source := withOrientation(samplePhoto(), 6)
	info, plan := PlanWhole(source, webpOptions(80), DefaultConfig())
	j := newJob(1, info, plan, time.Minute)
	for range 3 {
		if r, _ := e.convert(j, append(make([]byte, 0, len(source)+spare), source...)); r.Code != Converted {
			return 2
		}
	}
	for range 1000 { // until what C holds back of its output is written
		vips.PrintCache()
	}
	return 0
}

// The operation cache would hold pictures of earlier jobs.
func TestNoOperationIsRemembered(t *testing.T) {
	remembered := map[string]int{}
	for _, cache := range []string{"off", "on"} {
		out, err := exec.Command("/proc/self/exe", cacheCommand, cache).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if !strings.HasPrefix("Operation cache:\n", line) { // the last one may be cut off
				remembered[cache]++
			}
		}
	}
	if remembered["off"] != 0 || remembered["on"] == 0 {
		t.Errorf("lines about operations: %v", remembered)
	}
}
