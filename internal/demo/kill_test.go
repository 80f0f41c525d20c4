package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// becomeVariable makes this test binary a child that becomes another program.
const becomeVariable = "KARUI_DEMO_TEST_BECOME"

// becomeSleep becomes sleep(1) from a thread that is not the process's first.
func becomeSleep() int {
	path, err := exec.LookPath("sleep")
	if err != nil {
		return 3
	}
	failed := make(chan error)
	var try func()
	try = func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			go try() // this one keeps the first thread, so that the next gets another
			select {}
		}
		failed <- become(path, []string{"1000"})
	}
	go try()
	_, _ = fmt.Fprintln(os.Stderr, <-failed)
	return 3
}

// nameOf is the program that a process runs; empty if it runs none.
func nameOf(pid int) string {
	name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	return strings.TrimSpace(string(name))
}

// A child that became another program dies with its parent as before, whichever of
// its threads did that.
func TestChildThatBecameAnotherDiesWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := newStarter()
	c, err := s.spawn(spawn{name: "the child", path: self, env: cleanEnv(becomeVariable + "=1"), dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	eventually(t, time.Minute, "it became sleep", func() bool { return nameOf(c.pid()) == "sleep" || !c.running() })
	s.close() // the thread that started it ends
	select {
	case <-c.ended:
		if c.log.excerpt() != "" {
			t.Error(c.log.excerpt())
		}
	case <-time.After(20 * time.Second):
		t.Error("it outlives the thread that started it")
	}
}

// The janitor ends also what escaped the kernel: here there is no parent-death signal
// at all, and the child makes the folder again as long as it runs.
func TestJanitorEndsChildrenThatAreLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), folderPrefix+"x")
	other := filepath.Join(t.TempDir(), folderPrefix+"xx")
	begin := func(mark string) *exec.Cmd {
		cmd := command("/bin/sh", "-c", `while :; do mkdir -p "$1"; sleep 0.01; done`, "sh", mark)
		s := starter{folder: mark}
		cmd.Env = s.marked(cleanEnv())
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	child, stranger := begin(dir), begin(other)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = child.Wait()
	}()
	t.Cleanup(func() {
		_ = child.Process.Kill()
		<-ended
		_ = syscall.Kill(-stranger.Process.Pid, syscall.SIGKILL) // with what it has just begun
		if err := stranger.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("a process of another demonstration: %v", err)
		}
	})
	exists := func(dir string) bool { _, err := os.Stat(dir); return err == nil }
	eventually(t, time.Minute, "both run", func() bool { return exists(dir) && exists(other) })
	if err := Janitor(dir, strings.NewReader("")); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the child runs on")
	}
	if exists(dir) {
		t.Error("the folder is there again")
	}
	if !exists(other) {
		t.Error("another demonstration lost its folder")
	}
}

// TestKilled kills demonstrations at different moments. Nothing of them is left, which
// is looked at for each that a test starts. Takes 1 to 3 s each.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	began := func(part string) func(*running) bool {
		return func(r *running) bool { return strings.Contains(r.log.String(), part) }
	}
	for _, tt := range []struct {
		name string
		when func(*running) bool
	}{
		{"with its folder made", began("the folder for")},
		{"with its own server up", began("the site's own server")},
		{"with a child that has just begun", func(r *running) bool { return len(r.processes()) >= 3 }},
		{"with karui up", began("karui: ready")},
		{"with the edge up", began("CloudFront")},
		{"with the watchdog up", began("the watchdog: ready")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := launchDemo(t)
			eventually(t, 90*time.Second, tt.name, func() bool { return tt.when(r) })
			if code := r.signal(syscall.SIGKILL); code != -1 {
				t.Errorf("exit code %d, want -1", code)
			}
		})
	}
	t.Run("with its disk full", func(t *testing.T) {
		r := startDemo(t)
		if n := len(r.processes()); n < 4 {
			t.Errorf("%d processes: the demonstration, its janitor, karui and the watchdog are missing", n)
		}
		r.press("/do/fill", "")
		if controls := r.part("controls"); strings.Contains(controls, "Not on this machine") {
			t.Logf("the disk cannot be filled here: %s", controls)
		} else {
			r.shows(90*time.Second, "controls", "cache is full")
		}
		if code := r.signal(syscall.SIGKILL); code != -1 {
			t.Errorf("exit code %d, want -1", code)
		}
	})
}
