package acceptance

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// built is what every test starts; TestMain sets it once.
var built string

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests mostly wait, so more of them than there are cores may run at once.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "6")
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "karui-acceptance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built = os.Getenv("KARUI_TEST_BINARY")
	if built == "" {
		built = filepath.Join(dir, "karui")
		args := []string{"build", "-o", built}
		if raced() {
			args = append(args, "-race")
		}
		build := exec.Command("go", append(args, "karui/cmd/karui")...)
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "build karui: %v\n", err)
			return 1
		}
	}
	go beginner()
	code := m.Run()
	close(starts)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// raced reports whether the binary holds the race detector, which takes time and memory.
func raced() bool { return os.Getenv("KARUI_TEST_RACE") != "" }

// eventually waits for something to become true, for at most limit.
func eventually(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	if !became(limit, done) {
		t.Fatalf("not within %v: %s", limit, what)
	}
}

// became reports whether something became true within limit.
func became(limit time.Duration, done func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if done() {
			return true
		}
		select {
		case <-look.C:
		case <-deadline.C:
			return done()
		}
	}
}

// pause lets so much time pass, for answers whose lifetime is the matter of the test.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// settleLimit is how long a busy machine may take over one conversion and those queued before it.
const settleLimit = 90 * time.Second

func itoa(n int) string { return strconv.Itoa(n) }
