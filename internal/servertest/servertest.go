// Package servertest runs servers that others made beside a test, so that karui is not
// only tested against doubles of its own.
//
// Guaranteed: a server, and whatever it started, is gone when the test has ended, also
// where the test failed or was killed; moto_server listens on this machine alone, on a
// port that nobody else has, in a folder of the test's, and sees nothing of this
// machine's settings for AWS. A server that is not installed, does not start, or says
// within Limit nothing of being ready skips the test, which says what it had no opinion
// on.
//
// Not guaranteed: that the servers answer as AWS does. moto_server checks neither
// signatures nor permissions.
package servertest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Limit is how long a server may take to be ready. A busy machine needs most of it for
// moto_server, which reads thousands of files first.
const Limit = 2 * time.Minute

// Moto runs moto_server, a double of many APIs of AWS, until the test ends, and gives
// its URL. The subject is what it is to have an opinion on.
func Moto(t *testing.T, subject string) string {
	t.Helper()
	path, err := exec.LookPath("moto_server")
	if err != nil {
		t.Skipf("moto_server is not installed: no second opinion on %s (pip install 'moto[server]')", subject)
	}
	return Run(t, exec.Command(path, "-H", "127.0.0.1", "-p", "0"), regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`), subject)
}

// Run runs a server until the test ends, in a folder of its own unless cmd.Dir names
// one, and gives what it says first that matches.
func Run(t *testing.T, cmd *exec.Cmd, ready *regexp.Regexp, subject string) string {
	t.Helper()
	if cmd.Dir == "" {
		cmd.Dir = t.TempDir()
	}
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "AWS_") })
	// A group, since it may be a wrapper script.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	started, stop, ended := make(chan error), make(chan struct{}), make(chan error, 1)
	go func() {
		// The kernel kills the server when this thread ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		<-stop
		if err = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) {
			err = nil
		}
		_ = cmd.Wait() // killed
		ended <- err
	}()
	if err := <-started; err != nil {
		_ = in.Close()
		_ = out.Close()
		t.Skipf("%s does not start: no second opinion on %s: %v", cmd.Path, subject, err)
	}
	said, read := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := ready.FindString(lines.Text()); m != "" {
				select {
				case said <- m:
				default: // said before
				}
			}
		}
		_, _ = io.Copy(io.Discard, out) // a line too long for the scanner
	}()
	_ = in.Close() // it has its own
	t.Cleanup(func() {
		close(stop)
		if err := <-ended; err != nil {
			t.Errorf("end %s: %v", cmd.Path, err)
		}
		<-read
		_ = out.Close()
	})
	select {
	case s := <-said:
		return s
	case <-read:
		t.Skipf("%s ended at once: no second opinion on %s", cmd.Path, subject)
	case <-time.After(Limit):
		t.Skipf("%s is not ready within %s: no second opinion on %s", cmd.Path, Limit, subject)
	}
	return ""
}
