package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// shell starts a script as a child.
func shell(t *testing.T, script string, heard func(string)) (*starter, *child) {
	t.Helper()
	s := newStarter()
	t.Cleanup(s.close)
	c, err := s.spawn(spawn{name: "the script", path: "/bin/sh", args: []string{"-c", script}, env: cleanEnv(), dir: "/", heard: heard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return s, c
}

func TestChildThatEndsTooSoonIsExplained(t *testing.T) {
	_, c := shell(t, "echo this went wrong >&2; exit 3", nil)
	err := c.await(t.Context(), nil, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "the script ended") || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "this went wrong") {
		t.Error(err)
	}
}

func TestChildThatIsNeverReadyIsKilled(t *testing.T) {
	_, c := shell(t, "exec sleep 1000", nil)
	if err := c.await(t.Context(), nil, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "not ready within") || c.running() {
		t.Error(err)
	}
	_, c = shell(t, "exec sleep 1000", nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.await(ctx, nil, time.Minute); !errors.Is(err, context.Canceled) || c.running() {
		t.Error(err)
	}
}

func TestChildIsStoppedInPeaceOrElseKilled(t *testing.T) {
	ready := make(chan struct{}, 1)
	said := func(line string) {
		if line == "ready" {
			ready <- struct{}{}
		}
	}
	_, c := shell(t, `trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done`, said)
	<-ready
	if c.stop(time.Minute); c.state.ExitCode() != 7 {
		t.Error(c.state)
	}
	_, c = shell(t, `trap '' TERM; echo ready; while :; do sleep 0.01; done`, said)
	<-ready
	if c.stop(10 * time.Millisecond); c.state.ExitCode() != -1 {
		t.Error(c.state)
	}
	c.kill() // once more does no harm
}

func TestMissingProgramIsNamed(t *testing.T) {
	s := newStarter()
	t.Cleanup(s.close)
	if _, err := s.spawn(spawn{name: "karui", path: "/nonexistent/karui"}); err == nil || !strings.Contains(err.Error(), "start karui") {
		t.Error(err)
	}
}

func TestLogTailKeepsTheEndInWholeLines(t *testing.T) {
	var heard []string
	l := &logTail{heard: func(line string) { heard = append(heard, line) }}
	for i := range 2 * logLines {
		_, _ = fmt.Fprintf(l, "line %d\nhalf ", i)
	}
	_, _ = l.Write([]byte(strings.Repeat("x", 3*lineMax)))
	l.flush()
	if len(l.lines) != logLines || heard[0] != "line 0" || heard[1] != "half line 1" {
		t.Errorf("%d lines, heard %q", len(l.lines), heard[:2])
	}
	for _, line := range l.lines {
		if len(line) > lineMax {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	if e := l.excerpt(); !strings.HasSuffix(e, "xxx") {
		t.Errorf("%q", e[:50])
	}
}
