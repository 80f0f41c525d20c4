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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// linesLog keeps what workers say.
type linesLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *linesLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *linesLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *linesLog) WithGroup(string) slog.Handler            { return l }
func (l *linesLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.Key + "=" + a.Value.String(); return true })
	l.lines = append(l.lines, line)
	return nil
}

// find returns the first line with the text.
func (l *linesLog) find(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

func TestWorkerIsConfined(t *testing.T) {
	log := &linesLog{}
	p := newPool(t, func(c *Config) { c.Workers = 1 },
		WithCommand("/proc/self/exe", faultyCommand), WithLogger(slog.New(log)))
	if r := convertOne(t, p, faultyJPEG("peek"), webpOptions(70)); r.Decision.Code != Converted {
		t.Fatalf("got %+v", r.Decision)
	}
	until(t, func() bool { return log.find("peek: environment") != "" })
	ready := log.find("worker is ready")
	if !strings.Contains(ready, "seccomp") || !strings.Contains(ready, "missing=") {
		t.Skipf("this kernel has no seccomp: %s", ready)
	}
	for _, what := range []string{"read a file", "write a file", "dial", "run a program", "signal the pool"} {
		line := log.find("peek: " + what)
		if !strings.Contains(line, "not permitted") && !strings.Contains(line, "denied") {
			t.Errorf("a worker may %s: %q", what, line)
		}
	}
	env := log.find("peek: environment")
	for word := range strings.FieldsSeq(env[strings.Index(env, "environment:")+len("environment:"):]) {
		name, _, _ := strings.Cut(word, "=")
		switch name {
		case "MALLOC_ARENA_MAX", "GOMAXPROCS", "VIPS_DISC_THRESHOLD", "VIPS_BLOCK_UNTRUSTED", "GOTRACEBACK", envMemory, envClass, envNice:
		default:
			t.Errorf("a worker has %s in its environment", word)
		}
	}
	pids := children(t)
	if len(pids) != 1 {
		t.Fatalf("%d children", len(pids))
	}
	checkLimits(t, pids[0])
	checkFiles(t, pids[0])
	checkNice(t, pids[0])
	if adj, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pids[0])); err != nil || strings.TrimSpace(string(adj)) != workerOOM {
		t.Errorf("oom_score_adj of a worker is %q, %v", adj, err)
	}
}

func checkLimits(t *testing.T, pid int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		t.Fatal(err)
	}
	limits := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		if len(line) > 40 {
			limits[strings.TrimSpace(line[:25])] = strings.Fields(line[25:])[0]
		}
	}
	for name, want := range map[string]string{"Max core file size": "0", "Max file size": "0", "Max open files": fmt.Sprint(workerFiles)} {
		if limits[name] != want {
			t.Errorf("%s: %q, want %s", name, limits[name], want)
		}
	}
	for _, name := range []string{"Max cpu time", "Max data size"} {
		if limits[name] == "unlimited" || limits[name] == "" {
			t.Errorf("%s: %q", name, limits[name])
		}
	}
}

// checkFiles finds nothing in a worker that belongs to somebody else: stdin to stderr, the socket, and what the Go
// runtime polls with.
func checkFiles(t *testing.T, pid int) {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	sockets := 0
	for _, link := range links {
		to, err := os.Readlink(link)
		if err != nil {
			continue
		}
		switch {
		case strings.HasPrefix(to, "socket:"):
			sockets++
		case to == "/dev/null", strings.HasPrefix(to, "pipe:"), strings.HasPrefix(to, "anon_inode:"):
		case strings.HasPrefix(to, "/sys/fs/cgroup/"): // the Go runtime asks for the CPU limit now and then
		default:
			t.Errorf("a worker has %s open", to)
		}
	}
	if sockets != 1 {
		t.Errorf("a worker has %d sockets", sockets)
	}
}

// checkNice looks at all threads: a nice of the first one alone would be of no use.
func checkNice(t *testing.T, pid int) {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		t.Fatal(err)
	}
	for _, path := range stats {
		if nice, ok := niceOf(path); ok && nice < workerNice {
			t.Errorf("a thread of a worker has nice %d", nice)
		}
	}
}

// niceOf reads a /proc/PID/task/TID/stat; false when the thread is gone.
func niceOf(path string) (int, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	nice, err := strconv.Atoi(strings.Fields(rest)[16])
	return nice, err == nil
}

// Nothing stays open of workers that came and went, nor of jobs that were done. KARUI_LONG=1 for thousands of these.
func TestNoLeakOfFiles(t *testing.T) {
	deaths, jobs := 6, 200
	if os.Getenv("KARUI_LONG") != "" {
		deaths, jobs = 60, 5000
	}
	open := func(pid int) int {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		return len(links)
	}
	p := faultyPool(t, nil)
	mustMake(t, p, Fast)
	mustMake(t, p, Slow)
	before := open(os.Getpid())
	for i := range deaths {
		for _, class := range classes {
			convertOne(t, p, append(faultyJPEG("exit"), byte(i), class[0]), optionsFor(class, 70))
			mustMake(t, p, class)
		}
	}
	until(t, func() bool { s := p.Stats(); return s.Alive == 1 && s.Slow.Alive == 1 && open(os.Getpid()) <= before })
	if n := p.Stats().Ended[CauseCrash]; n != uint64(2*deaths) { //nolint:gosec // small
		t.Errorf("%d workers died", n)
	}
	for _, class := range classes {
		pid := workersOf(t, class)[0]
		held := 0
		for i := range jobs {
			mustMake(t, p, class)
			if i == 20 {
				held = open(pid)
			}
		}
		if now := open(pid); now > held {
			t.Errorf("a worker has %d files open after %d jobs, and had %d after 20", now, jobs, held)
		}
	}
	until(t, func() bool { return open(os.Getpid()) <= before })
}

// makeOrphans is a program that starts workers, gives them something that never ends, and says which they are.
func makeOrphans() int {
	cfg := DefaultConfig()
	cfg.Workers = 2
	cfg.QueueWait = time.Minute
	p, err := New(cfg, WithCommand("/proc/self/exe", faultyCommand))
	if err != nil {
		return 1
	}
	for i, class := range []Class{Fast, Fast, Slow} {
		go func() {
			_, _ = p.Convert(context.Background(), append(faultyJPEG("spin"), byte(i)), optionsFor(class, 70))
		}()
	}
	for p.Stats().Busy+p.Stats().Slow.Busy < 3 {
		wait := time.NewTimer(5 * time.Millisecond)
		<-wait.C
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		if pid, parent, ok := parentOf(path); ok && parent == os.Getpid() {
			fmt.Println(pid)
		}
	}
	fmt.Println("ready")
	select {}
}

// Workers end within 2 s of a pool that was killed, in the middle of their work too.
func TestWorkersDieWithTheirPool(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", orphanCommand)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		var pid int
		if _, err := fmt.Sscan(lines.Text(), &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	_ = cmd.Process.Kill()
	killed := time.Now()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	if len(pids) != 3 {
		t.Fatalf("%d workers", len(pids))
	}
	until(t, func() bool {
		for _, pid := range pids {
			if unix.Kill(pid, 0) == nil && !isZombie(pid) {
				return false
			}
		}
		return true
	})
	if d := time.Since(killed); d > 2*time.Second {
		t.Errorf("the last worker lived for %s", d)
	}
}

func isZombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z")
}
