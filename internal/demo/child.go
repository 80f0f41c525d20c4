package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of what is kept of a child's log.
const (
	logLines = 100
	lineMax  = 4096
)

// child is a running process. It dies with the thread that started it, and bears
// the mark by which the janitor finds it, so that nothing survives the demonstration,
// not even its SIGKILL.
type child struct {
	name string
	cmd  *exec.Cmd
	log  *logTail
	// ended is closed once it has been waited for; then state says how it ended.
	ended chan struct{}
	state *os.ProcessState
}

// spawn says how a child is started.
type spawn struct {
	name string
	path string
	args []string
	env  []string
	dir  string
	attr syscall.SysProcAttr
	// heard gets each line that the child writes, on a goroutine of its own; it
	// must not block. nil for nobody.
	heard func(line string)
}

// start starts a child. Whoever starts one ends it with stop or kill.
func (s *starter) spawn(how spawn) (*child, error) {
	c := &child{name: how.name, log: &logTail{heard: how.heard}, ended: make(chan struct{})}
	c.cmd = exec.Command(how.path, how.args...)
	c.cmd.Env, c.cmd.Dir = s.marked(how.env), how.dir
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	// A grandchild that holds the log open must not keep Wait from returning.
	c.cmd.WaitDelay = 3 * time.Second
	attr := how.attr
	attr.Pdeathsig = syscall.SIGKILL
	attr.Setpgid = true // Ctrl-C in the terminal is for the demonstration, which ends its children in order
	c.cmd.SysProcAttr = &attr
	if err := s.start(c.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", how.name, err)
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait()
		c.state = c.cmd.ProcessState
		c.log.flush()
	}()
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// signal is for a child that may have ended meanwhile.
func (c *child) signal(s syscall.Signal) {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.log.add(fmt.Sprintf("signal %s: %v", s, err))
	}
}

// kill ends the child at once and waits for it.
func (c *child) kill() {
	c.signal(syscall.SIGKILL)
	<-c.ended
}

// stop asks the child to end, and kills it when it has not after grace.
func (c *child) stop(grace time.Duration) {
	c.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.kill()
	}
}

// await waits until ready is closed. A child that ends before, or is not ready
// within limit, is an error with the last lines of its log; it is killed then.
func (c *child) await(ctx context.Context, ready <-chan struct{}, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ready:
		return nil
	case <-c.ended:
		return fmt.Errorf("%s ended before it was ready (%s)%s", c.name, c.state, c.log.excerpt())
	case <-timer.C:
		c.kill()
		return fmt.Errorf("%s was not ready within %s%s", c.name, limit, c.log.excerpt())
	case <-ctx.Done():
		c.kill()
		return ctx.Err()
	}
}

// logTail keeps the last lines that were written to it.
type logTail struct {
	heard func(line string)
	mu    sync.Mutex
	lines []string
	rest  []byte
}

// Write takes any part of the log.
func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.rest = append(l.rest, p...)
	var whole []string
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 && len(l.rest) <= lineMax {
			break
		}
		if i < 0 || i > lineMax {
			i = lineMax
		}
		whole = append(whole, string(l.rest[:i]))
		l.rest = slices.Clone(bytes.TrimPrefix(l.rest[i:], []byte("\n")))
	}
	l.mu.Unlock()
	for _, line := range whole {
		l.add(line)
	}
	return len(p), nil
}

// flush takes what came without a newline.
func (l *logTail) flush() {
	l.mu.Lock()
	rest := string(l.rest)
	l.rest = nil
	l.mu.Unlock()
	if rest != "" {
		l.add(rest)
	}
}

func (l *logTail) add(line string) {
	l.mu.Lock()
	l.lines = append(l.lines, line)
	if n := len(l.lines) - logLines; n > 0 {
		l.lines = slices.Delete(l.lines, 0, n)
	}
	l.mu.Unlock()
	if l.heard != nil {
		l.heard(line)
	}
}

// excerpt gives the last lines for an error message.
func (l *logTail) excerpt() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 0 {
		return ""
	}
	return "; it said last:\n  " + strings.Join(l.lines[max(0, len(l.lines)-8):], "\n  ")
}
