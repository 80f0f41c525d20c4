package convert

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"karui/convert/header"
)

// WorkerMain is the body of the hidden command `worker`: it serves the pool that started this process, until that
// pool is gone, and returns the exit code. Args are the words behind the command; none are taken.
func WorkerMain(args []string) int {
	if len(args) > 0 || !isWorker() {
		fmt.Fprintln(os.Stderr, "karui worker: this command is started by karui itself, to convert images; use `karui convert`")
		return 2
	}
	return workerMain(func(e *engine) handler { return e.convert })
}

// poolFD is the file descriptor of a worker's end of the socket.
const poolFD = 3

// poolConn is a worker's end of the socket. It blocks: a worker has nothing else to do meanwhile.
type poolConn struct{ *os.File }

// writeAll implements gatherer.
func (c poolConn) writeAll(pieces [][]byte) error {
	for len(pieces) > 0 {
		n, err := unix.Writev(poolFD, pieces)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write to the pool: %w", err)
		}
		for len(pieces) > 0 && n >= len(pieces[0]) {
			n -= len(pieces[0])
			pieces = pieces[1:]
		}
		if len(pieces) > 0 {
			pieces[0] = pieces[0][n:]
		}
	}
	return nil
}

// isWorker reports whether a pool started this process: descriptor 3 is a socket.
func isWorker() bool {
	kind, err := unix.GetsockoptInt(poolFD, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_STREAM
}

// handler does one job. It may change source, and append up to 16 bytes to it without a copy.
type handler func(j job, source []byte) (result, []byte)

func workerMain(handle func(*engine) handler) int {
	conn := poolConn{os.NewFile(poolFD, "pool")}
	memory, err := strconv.ParseInt(os.Getenv(envMemory), 10, 64)
	if err != nil || memory <= 0 {
		fmt.Fprintf(os.Stderr, "worker: %s=%q is no number of bytes\n", envMemory, os.Getenv(envMemory))
		return exitSetup
	}
	nice, err := strconv.Atoi(os.Getenv(envNice))
	if err != nil || nice < workerNice || nice > 19 {
		fmt.Fprintf(os.Stderr, "worker: %s=%q is no priority for it\n", envNice, os.Getenv(envNice))
		return exitSetup
	}
	onCPULimit(func() { os.Exit(exitCPU) })
	class := Class(os.Getenv(envClass))
	guards := lowerWorker(class)
	e, err := startEngine()
	if err != nil {
		fmt.Fprintf(os.Stderr, "worker: %v\n", err)
		return exitSetup
	}
	if err := warmUp(e, class); err != nil {
		fmt.Fprintf(os.Stderr, "worker: %v\n", err)
		return exitSetup
	}
	guards.confine(memory, nice)
	do := handle(e)
	hello := ready{Guards: guards.on, Missing: guards.missing, NoEncoder: e.lacking(), CPU: cpuUsed(), MaxRSS: maxRSS()}
	w := &worker{conn: conn, exit: os.Exit, limitCPU: limitCPU, maxBody: memory}
	return w.serve(hello, do)
}

// warmUp converts the built-in picture once, so that whatever libraries load late is loaded while files can still be
// opened, and so that the first job is no slower than the others. Which slow encoders there are depends on the
// machine: that one is missing does not keep the others from working.
func warmUp(e *engine, class Class) error {
	for _, f := range []header.Format{header.AVIF, header.HEIC} {
		if class == Slow && CanMake(f) {
			e.probe(f)
		}
	}
	j, source := pingJob(0, pingTimeout)
	if r, _ := e.convert(j, append(make([]byte, 0, len(source)+spare), source...)); r.Code != Converted && r.Code != NotSmaller {
		return fmt.Errorf("the built-in picture cannot be converted: %s: %s", r.Code, r.Reason)
	}
	return nil
}

// worker serves one pool over conn.
type worker struct {
	conn     io.ReadWriter
	exit     func(code int)
	limitCPU func(most time.Duration)
	maxBody  int64
}

const (
	// spare is the room behind an original for what a repair appends.
	spare = 16
	// keepBuffer is the size up to which the memory for originals is used again.
	keepBuffer = 8 << 20
)

type task struct {
	job    job
	source []byte
}

// serve reads jobs and answers them, until the connection ends; then exit is called, also in the middle of a job:
// nobody waits for that any more. It returns when exit does.
func (w *worker) serve(hello ready, handle handler) int {
	runtime.LockOSThread() // libvips keeps things by thread
	defer runtime.UnlockOSThread()
	if err := writeFrame(w.conn, frameReady, hello, nil); err != nil {
		return exitOrphan
	}
	tasks := make(chan task)
	memory := make(chan []byte, 1) // for the next original; empty while a job is done
	memory <- nil
	go func() {
		defer close(tasks)
		w.exit(w.read(tasks, memory))
	}()
	for t := range tasks {
		before := cpuUsed()
		w.limitCPU(before + t.job.Timeout)
		r, body := handle(t.job, t.source)
		r.ID, r.CPU, r.MaxRSS = t.job.ID, cpuUsed()-before, maxRSS()
		if cap(t.source) > keepBuffer {
			t.source = nil
		}
		memory <- t.source
		// A failure shows at the reading side too.
		_ = writeFrame(w.conn, frameResult, r, body)
	}
	return exitOrphan
}

// read passes jobs on until there are no more, and returns the exit code for that.
func (w *worker) read(tasks chan<- task, memory <-chan []byte) int {
	r := bufio.NewReaderSize(w.conn, 4096) // originals are read past it
	for {
		alone := false
		f, err := readFrame(r, w.maxBody, func(n int) []byte {
			select {
			case b := <-memory:
				alone = true
				if cap(b) < n+spare {
					b = make([]byte, n+spare)
				}
				return b[:n]
			default:
				return make([]byte, n)
			}
		})
		var j job
		if err == nil {
			err = f.decode(frameJob, &j)
		}
		switch {
		case err != nil && !errors.Is(err, errGarbage):
			return exitOrphan
		case err != nil, !alone: // no original, or a second job during the first
			return exitGarbage
		}
		if err := writeFrame(w.conn, frameStarted, started{ID: j.ID}, nil); err != nil {
			return exitOrphan
		}
		tasks <- task{j, f.body}
	}
}

// onCPULimit calls end when the kernel says that the limit of [limitCPU] is reached. Go ignores the signal otherwise.
func onCPULimit(end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGXCPU)
	go func() {
		<-signals
		end()
	}()
}

// limitCPU lets the process use CPU time up to most in all, in whole seconds.
func limitCPU(most time.Duration) {
	seconds := uint64(most/time.Second) + 2
	_ = unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: unix.RLIM_INFINITY})
}

func cpuUsed() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxRSS is the most memory that the process ever held, in bytes.
func maxRSS() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss << 10
}
