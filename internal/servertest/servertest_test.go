package servertest

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A wrapper script, its child and their output are gone after the test.
func TestAServerEndsWithItsTest(t *testing.T) {
	t.Setenv("AWS_PROFILE", "mine")
	var pids []string
	t.Run("with", func(t *testing.T) {
		cmd := exec.Command("sh", "-c", `sleep 1000 & echo "starting${AWS_PROFILE}"; echo "ready as $$ $!"; wait`)
		said := Run(t, cmd, regexp.MustCompile(`^(ready as [0-9 ]+|startingmine)$`), "nothing")
		pids = strings.Fields(strings.TrimPrefix(said, "ready as "))
		if len(pids) != 2 {
			t.Fatalf("it said %q", said)
		}
		if wd, err := os.Readlink("/proc/" + pids[0] + "/cwd"); err != nil || wd != cmd.Dir {
			t.Errorf("it runs in %s, %v", wd, err)
		}
	})
	for _, pid := range pids {
		for began := time.Now(); runs(t, pid); runtime.Gosched() {
			if time.Since(began) > Limit {
				t.Fatalf("process %s still runs", pid)
			}
		}
	}
}

// runs is false for an orphan that is dead but waits for whoever reaps it.
func runs(t *testing.T, pid string) bool {
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	state, _ := os.ReadFile("/proc/" + pid + "/stat")
	return !errors.Is(syscall.Kill(n, 0), syscall.ESRCH) && !strings.Contains(string(state), ") Z ")
}

// A server that is none skips the test.
func TestWithoutAServer(t *testing.T) {
	for name, cmd := range map[string]*exec.Cmd{"absent": {Path: "/no/such/server"}, "ends": exec.Command("true")} {
		skipped := false
		t.Run(name, func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			Run(t, cmd, regexp.MustCompile(`ready`), "nothing, as this skip is the test")
		})
		if !skipped {
			t.Errorf("%s: not skipped", name)
		}
	}
	t.Run("moto", func(t *testing.T) {
		t.Setenv("PATH", "")
		defer func() {
			if !t.Skipped() {
				t.Error("not skipped without moto_server")
			}
		}()
		Moto(t, "nothing, as this skip is the test")
	})
}
