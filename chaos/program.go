package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// program is one of the two real programs, which can be ended and started again.
// Its methods are called by one goroutine at a time, but for running and pid.
type program struct {
	name string
	path string // of a binary that nothing else runs from
	args []string
	env  []string
	dir  string
	log  io.Writer
	// ready answers 200 when it would serve.
	ready  string
	launch *launcher

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	// meant is whether somebody here wants it to end.
	meant bool
	// surprised is called when it ends and nobody wanted it.
	surprised func(how string)
}

// start starts the process without waiting until it serves.
func (p *program) start() error {
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, p.env, p.log, p.log
	// A worker that outlives its parent must not keep Wait from returning.
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	ended := make(chan struct{})
	if err := p.launch.start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.mu.Lock()
	p.cmd, p.ended, p.meant = cmd, ended, false
	p.mu.Unlock()
	go func() {
		_ = cmd.Wait()
		p.mu.Lock()
		meant := p.meant
		p.mu.Unlock()
		if !meant {
			p.surprised(fmt.Sprintf("%s ended although nobody ended it: %v", p.name, cmd.ProcessState))
		}
		close(ended)
	}()
	return nil
}

func (p *program) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

func (p *program) running() bool {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if ended == nil {
		return false
	}
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// signal is for a process that may have ended meanwhile.
func (p *program) signal(s syscall.Signal) {
	if p.running() {
		_ = p.cmd.Process.Signal(s)
	}
}

// end sends a signal that ends the process, and waits for that; after limit, by SIGKILL.
func (p *program) end(s syscall.Signal, limit time.Duration) (forced bool) {
	if !p.running() {
		return false
	}
	p.mu.Lock()
	p.meant = true
	ended := p.ended
	p.mu.Unlock()
	_ = p.cmd.Process.Signal(s)
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // a stopped process could not heed it
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
		return false
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-ended
		return true
	}
}

// exitCode is that of a process that has ended.
func (p *program) exitCode() int { return p.cmd.ProcessState.ExitCode() }

// await waits until the process says that it would serve.
func (p *program) await(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if !p.running() {
			return fmt.Errorf("%s ended before it was ready", p.name)
		}
		if status, _ := ask(ctx, p.ready); status == http.StatusOK {
			return nil
		}
		if !pause(ctx, 25*time.Millisecond) {
			return fmt.Errorf("%s was not ready within %v", p.name, limit)
		}
	}
}

// children are the processes that run from the program's binary besides the
// first one: karui's workers.
func (p *program) children() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == p.pid() {
			continue
		}
		if exe, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe")); err == nil && exe == p.path {
			found = append(found, pid)
		}
	}
	return found
}

// ask gets something from a loopback address, on a connection of its own.
func ask(ctx context.Context, url string) (status int, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = answer.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return 0, nil
	}
	return answer.StatusCode, body
}

// pause lets time pass, unless the context ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// binaries are the two programs, built from this checkout.
type binaries struct{ karui, watchdog string }

// build builds both programs into a folder. Tags are for the build of karui. With
// KARUI_TEST_RACE both get the race detector.
func build(ctx context.Context, dir string, tags string, log io.Writer) (binaries, error) {
	race := "-race=false"
	if os.Getenv("KARUI_TEST_RACE") != "" {
		race = "-race"
	}
	b := binaries{karui: filepath.Join(dir, "karui"), watchdog: filepath.Join(dir, "karui-watchdog")}
	for _, step := range []struct {
		out, target, cgo string
		tags             string
	}{{b.karui, "karui/cmd/karui", "1", tags}, {b.watchdog, "karui/cmd/karui-watchdog", "0", ""}} {
		cmd := exec.CommandContext(ctx, "go", "build", race, "-tags", step.tags, "-o", step.out, step.target)
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+step.cgo)
		if race == "-race" { // which needs cgo
			cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			return binaries{}, fmt.Errorf("build %s: %w", step.target, err)
		}
	}
	return b, nil
}

// own gives a binary a name that only this proof has, to know its workers by.
func own(binary, dir string) (string, error) {
	name := filepath.Join(dir, filepath.Base(binary)+"-"+strconv.Itoa(os.Getpid()))
	err := os.Link(binary, name)
	if err != nil { // another file system, or somebody else's file: a copy does as well
		var b []byte
		if b, err = os.ReadFile(binary); err == nil {
			if err = os.WriteFile(name, b, 0o600); err == nil {
				err = os.Chmod(name, 0o500) //nolint:gosec // a program has to be executable
			}
		}
	}
	if err != nil {
		return "", fmt.Errorf("name the binary: %w", err)
	}
	return name, nil
}
