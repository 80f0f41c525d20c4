package demo

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// build is the real program, built once for all tests of this package.
type build struct {
	once sync.Once
	dir  string
	err  error
	n    int
	mu   sync.Mutex
}

var buildDir build

// program gives a name of the program that no other test has, to know processes by.
func (b *build) program(t *testing.T) string {
	t.Helper()
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "karui-demotest-"); b.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(b.dir, "karui"), "karui/cmd/karui")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	name := filepath.Join(b.dir, fmt.Sprintf("karui-%d", b.n))
	if err := os.Link(filepath.Join(b.dir, "karui"), name); err != nil {
		t.Fatal(err)
	}
	return name
}

func (b *build) remove() {
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}

// running is a `karui demo` that runs.
type running struct {
	t     *testing.T
	exe   string
	tmp   string // all that it writes is below
	cmd   *exec.Cmd
	url   string // of the page, without a slash at the end
	log   *lockedBuffer
	lines chan string // of its stdout
	ended chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startDemo starts a demonstration and waits for its address.
func startDemo(t *testing.T, args ...string) *running {
	t.Helper()
	r := launchDemo(t, args...)
	select {
	case line, ok := <-r.lines:
		if !ok || !strings.HasPrefix(line, "http://127.0.0.1:") {
			t.Fatalf("it printed %q instead of an address", line)
		}
		r.url = strings.TrimSuffix(line, "/")
	case <-time.After(2 * time.Minute):
		t.Fatal("it printed no address")
	}
	return r
}

// launchDemo starts a demonstration, and makes sure in the end that nothing of it is
// left.
func launchDemo(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{t: t, exe: buildDir.program(t), tmp: t.TempDir(), log: &lockedBuffer{}, ended: make(chan struct{}), lines: make(chan string, 1)}
	r.cmd = exec.Command(r.exe, append([]string{"demo", "--listen", "127.0.0.1:0"}, args...)...)
	r.cmd.Env = append(os.Environ(), "TMPDIR="+r.tmp)
	r.cmd.Stderr = r.log
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// It must not outlive a test run that panics.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := starts.start(r.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		scanner := bufio.NewScanner(out)
		for scanner.Scan() {
			select {
			case r.lines <- scanner.Text():
			default: // more than one line: finish tells
				_, _ = fmt.Fprintf(r.log, "and on stdout: %s\n", scanner.Text())
			}
		}
		close(r.lines)
		_ = r.cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(r.finish)
	return r
}

// signal ends the demonstration and gives its exit code, -1 for a signal's.
func (r *running) signal(s syscall.Signal) int {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		r.t.Errorf("it did not end within a minute of %s", s)
		_ = r.cmd.Process.Kill()
		<-r.ended
	}
	return r.cmd.ProcessState.ExitCode()
}

// finish ends what still runs, and looks for what is left.
func (r *running) finish() {
	select {
	case <-r.ended:
	default:
		if code := r.signal(syscall.SIGTERM); code != 0 {
			r.t.Errorf("exit code %d after SIGTERM, want 0", code)
		}
	}
	r.nothingLeft()
	if r.t.Failed() {
		r.t.Logf("it said:\n%s", r.log)
	}
}

// explain logs, for a test that failed, what the demonstration itself says while it runs.
func (r *running) explain() {
	if !r.t.Failed() {
		return
	}
	for _, part := range []string{"verdict", "watch", "inbox", "journal"} {
		r.t.Logf("%s: %s", part, r.part(part))
	}
}

// nothingLeft checks that no process runs and no file lies about. Children have 2 s
// to die with their parent; the rest is for a busy machine.
func (r *running) nothingLeft() {
	r.t.Helper()
	eventually(r.t, time.Minute, "no process is left", func() bool { return len(r.processes()) == 0 })
	eventually(r.t, time.Minute, "no file is left", func() bool {
		entries, err := os.ReadDir(r.tmp)
		return err == nil && len(entries) == 0
	})
}

// processes are the ids of everything that runs from this program.
func (r *running) processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		r.t.Fatal(err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if exe, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe")); err == nil && exe == r.exe {
			found = append(found, pid)
		}
	}
	return found
}

// get asks for something on the page's address.
func (r *running) get(path string) (int, string) {
	r.t.Helper()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(r.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// press posts a form as a browser without scripts does, and gives the page that it
// is led to.
func (r *running) press(path, form string) (int, string) {
	r.t.Helper()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(r.url+path, "application/x-www-form-urlencoded", strings.NewReader(form))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}
