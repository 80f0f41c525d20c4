package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"karui/internal/origintest"
)

// instance is one karui process with its folder; it can be ended and started again.
type instance struct {
	t     *testing.T
	dir   string
	exe   string // a name of the binary that only this instance has, to know its workers by
	file  string
	cache string
	// addr is where it serves, admin where its operators ask.
	addr, admin string
	settings    settings
	env, args   []string
	log         *journal

	cmd   *exec.Cmd
	ended chan struct{}
	code  int
	// allowLog lets these words stand in the log although they look like trouble.
	allowLog []string
}

// instances counts them, for names that are never used twice.
var instances atomic.Int64

// serve starts karui in front of an origin and ends it with the test, checking
// that it goes in peace.
func serve(t *testing.T, origin *origintest.Origin, changes ...change) *instance {
	t.Helper()
	k := prepare(t, origin.URL(), changes...)
	k.start()
	return k
}

// prepare lays out an instance without starting it.
func prepare(t *testing.T, url string, changes ...change) *instance {
	t.Helper()
	dir := t.TempDir()
	k := &instance{
		t:     t,
		dir:   dir,
		exe:   fmt.Sprintf("%s-%d-%d", built, os.Getpid(), instances.Add(1)),
		file:  filepath.Join(dir, "karui.yaml"),
		cache: filepath.Join(dir, "cache"),
		addr:  net.JoinHostPort(origintest.LoopbackIP(), "18080"),
		admin: net.JoinHostPort(origintest.LoopbackIP(), "19090"),
		log:   &journal{},
	}
	if err := os.Link(built, k.exe); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(k.exe) })
	k.args = []string{"serve", "--config", k.file}
	k.settings = newSettings(k.addr, k.admin, k.cache, url)
	for _, change := range changes {
		change(k.settings)
	}
	k.write()
	t.Cleanup(k.finish)
	return k
}

// write puts the settings into the configuration file.
func (k *instance) write() {
	k.t.Helper()
	if err := os.WriteFile(k.file, k.settings.yaml(k.t), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// launch starts the process without waiting for it to serve.
func (k *instance) launch() {
	k.t.Helper()
	cmd := exec.Command(k.exe, k.args...)
	cmd.Dir = k.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + k.dir, "TMPDIR=" + os.TempDir()}, k.env...)
	cmd.Stdout, cmd.Stderr = k.log, k.log
	// A worker that outlives its parent must not keep Wait from returning.
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := begin(cmd); err != nil {
		k.t.Fatalf("start karui: %v", err)
	}
	ended := make(chan struct{})
	k.cmd, k.ended = cmd, ended
	go func() {
		err := cmd.Wait()
		k.code = cmd.ProcessState.ExitCode()
		if errors.Is(err, exec.ErrWaitDelay) {
			k.code = -2
		}
		close(ended)
	}()
}

// starts takes the commands to begin. They all begin on one thread that lives as
// long as the tests: what a test started must not outlive a test run that
// panics, and the kernel's signal for that comes when the starting *thread* ends.
var starts = make(chan func())

func beginner() {
	runtime.LockOSThread()
	for start := range starts {
		start()
	}
}

func begin(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	starts <- func() { done <- cmd.Start() }
	return <-done
}

// start starts the process and waits until it says that it would serve.
func (k *instance) start() {
	k.t.Helper()
	k.launch()
	eventually(k.t, 30*time.Second, "ready", func() bool {
		if !k.running() {
			k.t.Fatalf("karui ended with %d before it was ready:\n%s", k.code, k.log)
		}
		status, _ := k.ask("/readyz")
		return status == http.StatusOK
	})
}

func (k *instance) running() bool {
	if k.cmd == nil {
		return false
	}
	select {
	case <-k.ended:
		return false
	default:
		return true
	}
}

// ask gets something from the admin listener.
func (k *instance) ask(path string) (int, string) {
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	response, err := client.Get("http://" + k.admin + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// signal sends a signal to the front process only.
func (k *instance) signal(s syscall.Signal) {
	k.t.Helper()
	if err := k.cmd.Process.Signal(s); err != nil {
		k.t.Fatalf("send %v: %v", s, err)
	}
}

// await waits for the process to end and gives its exit code.
func (k *instance) await(limit time.Duration) int {
	k.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-k.ended:
		return k.code
	case <-timer.C:
		k.t.Errorf("karui did not end within %v", limit)
		k.signal(syscall.SIGQUIT)
		<-k.ended
		k.t.Logf("log with the goroutines:\n%s", k.log)
		return k.code
	}
}

// stop ends the process as an operator would and checks the exit code.
func (k *instance) stop() {
	k.t.Helper()
	k.signal(syscall.SIGTERM)
	if code := k.await(40 * time.Second); code != 0 {
		k.t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	k.noChildren()
}

// kill ends the process as a crash would.
func (k *instance) kill() {
	k.t.Helper()
	k.signal(syscall.SIGKILL)
	<-k.ended
	k.noChildren()
}

// noChildren checks that nothing the process started is left. The contract
// gives workers 2 s; the rest is for a busy machine.
func (k *instance) noChildren() {
	k.t.Helper()
	if !became(6*time.Second, func() bool { return len(k.processes()) == 0 }) {
		k.t.Errorf("processes left behind: %v", k.processes())
		for _, pid := range k.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// processes are the ids of everything that runs from this instance's binary.
func (k *instance) processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		k.t.Fatal(err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if exe, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe")); err == nil && exe == k.exe {
			found = append(found, pid)
		}
	}
	return found
}

// workers are the processes besides the front one.
func (k *instance) workers() []int {
	var found []int
	for _, pid := range k.processes() {
		if pid != k.cmd.Process.Pid {
			found = append(found, pid)
		}
	}
	return found
}

// finish ends the test's process and looks for trouble in its log.
func (k *instance) finish() {
	if k.running() {
		k.stop()
	}
	for _, line := range k.log.lines() {
		lower := strings.ToLower(line)
		for _, word := range []string{"panic", "fatal error", "data race", "goroutine "} {
			if strings.Contains(lower, word) && !k.allowed(line) {
				k.t.Errorf("log: %s", line)
			}
		}
		if !json.Valid([]byte(line)) && !k.allowed(line) {
			k.t.Errorf("log line is not JSON: %s", line)
		}
	}
	if k.t.Failed() {
		k.t.Logf("log of karui:\n%s", k.log.tail(40))
	}
}

func (k *instance) allowed(line string) bool {
	for _, word := range k.allowLog {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// journal collects what a process writes.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func (j *journal) lines() []string {
	text := strings.TrimRight(j.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (j *journal) tail(n int) string {
	lines := j.lines()
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
