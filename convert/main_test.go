package convert

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"karui/convert/header"
)

// The test binary is its own worker: the pool starts it again with one of these words.
const (
	faultyCommand   = "faulty-worker"
	orphanCommand   = "make-orphans"
	replacedCommand = "get-replaced"
	cacheCommand    = "show-cache"
	poorCommand     = "worker-without-av1"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case WorkerCommand:
			os.Exit(WorkerMain(os.Args[2:]))
		case faultyCommand:
			os.Exit(faultyWorker(os.Args[2:]))
		case orphanCommand:
			os.Exit(makeOrphans())
		case replacedCommand:
			os.Exit(getReplaced())
		case poorCommand:
			os.Exit(poorWorker())
		case cacheCommand:
			os.Exit(showCache())
		}
	}
	goleak.VerifyTestMain(m)
}

// corpusDir holds real images by folder; it is not part of the repository.
const corpusDir = "../../shared/corpus"

// corpus returns the JPEG, PNG and GIF files of a folder (all files with all), or skips the test.
func corpus(t testing.TB, folder string, all bool) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(corpusDir, folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Skipf("no images in %s", filepath.Join(corpusDir, folder))
	}
	var keep []string
	for _, path := range paths {
		if all || header.Sniff(read(t, path)).Convertible() {
			keep = append(keep, path)
		}
	}
	return keep
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skipf("%s is not here", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// testLog sends the log of a pool to the test.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// newPool makes a pool of real workers that ends with the test.
func newPool(t testing.TB, change func(*Config), options ...Option) *Pool {
	t.Helper()
	cfg := DefaultConfig()
	cfg.QueueWait = 60e9 // tests share their machine
	if change != nil {
		change(&cfg)
	}
	// At their true priority slow workers would hardly get on beside the tests of other packages.
	quick := func(s *settings) { s.slowNice = workerNice }
	options = append([]Option{WithCommand("/proc/self/exe", WorkerCommand), WithLogger(testLog(t)), quick}, options...)
	p, err := New(cfg, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func webpOptions(quality int) Options {
	return Options{Formats: []header.Format{header.WebP}, Quality: quality, Keep: []string{KeepCopyright}}
}

// convertOne converts with a pool and fails the test on an error.
func convertOne(t testing.TB, p *Pool, source []byte, opt Options) Result {
	t.Helper()
	r, err := p.Convert(t.Context(), source, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// faultyWorker converts like a real one, unless a comment in the JPEG asks for a fault.
func faultyWorker([]string) int {
	return workerMain(func(e *engine) handler {
		return func(j job, source []byte) (result, []byte) {
			at := bytes.Index(source, []byte(faultMark))
			if at < 0 {
				return e.convert(j, source)
			}
			fault, _, _ := bytes.Cut(source[at+len(faultMark):], []byte("."))
			misbehave(string(fault))
			return e.convert(j, source)
		}
	})
}

// poorWorker is on a machine without an encoder for AV1.
func poorWorker() int {
	return workerMain(func(e *engine) handler {
		e.missing[header.AVIF] = "Unsupported compression"
		return e.convert
	})
}

const faultMark = "karui-test-fault:"

func misbehave(fault string) {
	fmt.Fprintln(os.Stderr, "misbehaving:", fault)
	switch fault {
	case "crash":
		_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGABRT)
		select {}
	case "exit":
		os.Exit(7)
	case "spin":
		for i := 0; ; i++ {
			_ = i
		}
	case "hang":
		select {}
	case "memory":
		var held [][]byte
		for {
			b := make([]byte, 16<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			held = append(held, b)
			_ = held
		}
	case "peek":
		peek()
	case "garbage":
		_, _ = unix.Write(poolFD, []byte("this is no frame at all, but bytes"))
		select {}
	}
}

// peek tries what a worker must not be able to do, and says how it went.
func peek() {
	_, err := os.ReadFile("/proc/self/status")
	fmt.Fprintln(os.Stderr, "peek: read a file:", err)
	_, err = os.Create("/tmp/karui-worker-was-here")
	fmt.Fprintln(os.Stderr, "peek: write a file:", err)
	_, err = net.Dial("tcp", "127.0.0.1:1")
	fmt.Fprintln(os.Stderr, "peek: dial:", err)
	err = exec.Command("/bin/true").Run()
	fmt.Fprintln(os.Stderr, "peek: run a program:", err)
	err = unix.Kill(unix.Getppid(), 0)
	fmt.Fprintln(os.Stderr, "peek: signal the pool:", err)
	fmt.Fprintln(os.Stderr, "peek: environment:", strings.Join(os.Environ(), " "))
}

// parentOf reads the process and its parent from a /proc/PID/stat.
func parentOf(path string) (pid, parent int, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, false
	}
	_, rest, found := bytes.Cut(b, []byte(") "))
	if !found {
		return 0, 0, false
	}
	var state string
	if _, err := fmt.Sscanf(string(b), "%d", &pid); err != nil {
		return 0, 0, false
	}
	if _, err := fmt.Sscanf(string(rest), "%s %d", &state, &parent); err != nil || state == "Z" {
		return 0, 0, false
	}
	return pid, parent, true
}
