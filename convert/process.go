package convert

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"karui/internal/units"
)

// Cause says why a worker process ended. It is a label in metrics, so the words never change.
type Cause string

// The causes.
const (
	CauseClosed   Cause = "closed"   // the pool was closed
	CauseRecycled Cause = "recycled" // it had done convert.recycle jobs
	CauseCrash    Cause = "crash"    // it died while it converted
	CauseIdle     Cause = "idle"     // it died between jobs
	CauseTimeout  Cause = "timeout"  // it was killed for convert.timeout
	CauseMemory   Cause = "memory"   // it was killed for convert.worker_memory
	CauseGarbage  Cause = "garbage"  // it was killed for what it sent
	CauseStart    Cause = "start"    // it could not be started
	CauseUnused   Cause = "unused"   // there was no work for it, or it was the slower one of two starts
	CauseStopped  Cause = "stopped"  // it was killed since somebody had stopped it, or it took no job
)

// command is how a worker process is started.
type command struct {
	path string
	args []string
}

// workerEnv is the whole environment of a worker.
//
// MALLOC_ARENA_MAX=2 and GOMAXPROCS=1 are what [BenchmarkWorkerEnv] is for; it gave, on two busy cores (Debian 12,
// libvips 8.14.1, glibc 2.36, jemalloc 5.3 by LD_PRELOAD; medians of 2 to 4 rounds of 40 conversions, 6 for AVIF and
// HEIC), CPU-ms for each conversion and MiB that a worker holds afterwards:
//
//	                               S 0.4 MP   M 1 MP     L 6 MP     6S:3M:1L   AVIF M      HEIC M
//	glibc, two arenas              24.1 / 55  48.8 / 62  169 /  95  48.6 / 85  207 / 113   900 / 101
//	glibc, as many as it likes     23.6 / 54  48.2 / 61  173 / 102  48.4 / 93  205 / 117   920 /  85
//	glibc, one arena               23.2 / 53  49.7 / 59  188 /  88  48.3 / 83  217 /  87   904 /  74
//	the same two, trimmed early    25.6 / 52  54.7 / 54  213 /  62  50.8 / 53
//	jemalloc                       26.6 / 62  53.2 / 72  177 /  72  47.8 / 76  220 /  83   924 /  79
//	jemalloc that keeps nothing    28.9 / 51  54.9 / 54  182 /  57  49.8 / 53
//	two arenas, GOMAXPROCS=1       23.1 / 54  46.5 / 61  173 /  93  46.8 / 88
//	two arenas, GOGC=100 (was 400) 25.4 / 50  48.7 / 55  176 /  88  44.6 / 82
//
// A conversion runs on one thread, so that arenas hardly matter; what is given back early must be had again, at 5 to
// 25 % of CPU time; jemalloc costs about a tenth and saves nothing on small pictures. One processor for Go saves 2 to
// 5 %: its scheduler has nothing to hand over while libvips works. A GOGC of 400 saved no CPU time and cost 5 MiB.
//
// VIPS_DISC_THRESHOLD: what must be decoded as a whole (interlaced or turned PNGs) goes into memory, whose limit holds,
// and never to a file, which a worker cannot open.
//
// VIPS_BLOCK_UNTRUSTED: the worker asks for the loaders of three formats by name; this closes the door to some
// others a second time.
//
// GOTRACEBACK: a trace of a crash inside libvips says nothing, and stderr is bounded.
func workerEnv(memory int64, class Class, nice int) []string {
	return []string{
		"MALLOC_ARENA_MAX=2", "GOMAXPROCS=1", "VIPS_DISC_THRESHOLD=16g", "VIPS_BLOCK_UNTRUSTED=1", "GOTRACEBACK=none",
		fmt.Sprintf("%s=%d", envMemory, memory), envClass + "=" + string(class), fmt.Sprintf("%s=%d", envNice, nice),
	}
}

const (
	// envMemory tells a worker how many bytes of memory it may use.
	envMemory = "KARUI_WORKER_MEMORY"
	// envClass tells a worker for which class it works, envNice at which priority.
	envClass = "KARUI_WORKER_CLASS"
	envNice  = "KARUI_WORKER_NICE"
)

const (
	// startLimit bounds how long a worker may take until it is ready; it takes about 0.1 s.
	startLimit = 15 * time.Second
	// stopGrace is how long a worker may take to end after its socket was closed.
	stopGrace = time.Second
	// watchEvery is how often memory and CPU time of a busy worker are looked at. The limits that the worker sets
	// itself hold in between.
	watchEvery = 100 * time.Millisecond
)

// process is one running worker. One goroutine uses it; only kill may come from elsewhere.
type process struct {
	cmd  *exec.Cmd
	conn *net.UnixConn
	// wallFactor is that of the settings.
	wallFactor time.Duration
	frames     chan frame // closed when nothing more can come; then readErr says why
	log        *slog.Logger

	readErr error
	cause   atomic.Pointer[Cause] // the first reason for which it was killed from here
	dead    chan struct{}         // closed when it was waited for
	readers sync.WaitGroup
	// said is closed when all of the worker's stderr was read; starved tells whether it complained of too little memory.
	said    chan struct{}
	starved atomic.Bool

	jobs    int
	failed  bool          // the last job made no variant
	cpuUsed time.Duration // as of the last result
	baseRSS int64         // memory held when it was ready
	// limit bounds the body of the frames that are read.
	limit atomic.Int64
}

// seat is the place of a worker in a pool.
type seat struct {
	class Class
	n     int // counted from 0 in its class
}

// startProcess starts a worker and waits until it is ready.
func startProcess(ctx context.Context, s *starter, set settings, at seat, cfg Config) (*process, ready, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, ready{}, err
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		_ = ours.Close()
		_ = theirs.Close()
		return nil, ready{}, fmt.Errorf("make a pipe for a worker's stderr: %w", err)
	}

	cmd := exec.Command(set.command.path, set.command.args...)
	cmd.Env = workerEnv(int64(cfg.WorkerMemory), at.class, set.niceOf(at.class))
	cmd.Dir = "/"
	cmd.Stderr = errWrite
	cmd.ExtraFiles = []*os.File{theirs} // file descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		// Of its own: a Ctrl-C in the terminal is for the pool alone, and the worker can be niced with all its
		// threads.
		Setpgid: true,
	}
	err = s.start(cmd, at)
	// The child has its own by now; with these open, its end would not show.
	_ = theirs.Close()
	_ = errWrite.Close()
	if err != nil {
		_ = ours.Close()
		_ = errRead.Close()
		return nil, ready{}, fmt.Errorf("start a worker: %w", err)
	}
	// Only the worker's own end may keep the readers below from an end.
	_, _ = errWrite.Close(), theirs.Close()
	p := &process{
		cmd: cmd, conn: ours, wallFactor: set.wallFactor, frames: make(chan frame), dead: make(chan struct{}), said: make(chan struct{}),
		log: set.log.With("worker", cmd.Process.Pid, "class", string(at.class)),
	}
	p.readers.Add(2)
	go p.readFrames()
	go p.readErrors(errRead)
	go func() {
		defer close(p.dead)
		_ = cmd.Wait()
	}()

	r, err := p.waitReady(ctx)
	if err != nil {
		p.kill(CauseStart)
		p.reap()
		return nil, ready{}, err
	}
	p.cpuUsed, p.baseRSS = r.CPU, r.MaxRSS
	return p, r, nil
}

const (
	// leakMost is how much a worker may hold after a job that failed, more than at its start. libvips 8.14.1 leaks
	// its decoder with every WebP that it cannot finish: 0.13 MB for a photo of 0.4 MP, the whole decoded picture
	// where that had to be turned.
	leakMost = 64 << 20
	// lookJobs is after how many jobs a worker's memory is looked at in any case.
	lookJobs = 64
)

// bloated reports whether the process holds so much between two jobs that it is better replaced.
func (p *process) bloated(memory units.Size) bool {
	most := int64(memory) / 2
	switch {
	case p.failed:
		most = min(most, p.baseRSS+leakMost)
		p.failed = false
	case p.jobs == 0 || p.jobs%lookJobs != 0:
		return false
	}
	u, err := readUsage(p.cmd.Process.Pid)
	return err == nil && u.rss > most
}

// socketPair makes the two ends that a pool and its worker talk through. Both are closed on exec.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair for a worker: %w", err)
	}
	for _, fd := range fds {
		// Fewer wake-ups for a whole image; the kernel lowers it to net.core.wmem_max. A failure costs only time.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20)
	}
	file := os.NewFile(uintptr(fds[0]), "worker")
	theirs := os.NewFile(uintptr(fds[1]), "pool")
	conn, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("use a socket pair for a worker: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

func (p *process) readFrames() {
	defer p.readers.Done()
	defer close(p.frames)
	r := bufio.NewReaderSize(p.conn, 4096) // large bodies are read past it
	for {
		f, err := readFrame(r, p.limit.Load(), newBytes)
		if err != nil {
			p.readErr = err
			if errors.Is(err, errGarbage) {
				p.kill(CauseGarbage)
			}
			return
		}
		select {
		case p.frames <- f:
		case <-p.dead:
			p.readErr = io.EOF
			return
		}
	}
}

// stderrMost is how much of a worker's stderr is logged in its life; the rest is read and dropped.
const stderrMost = 16 << 10

func (p *process) readErrors(r *os.File) {
	defer p.readers.Done()
	defer close(p.said)
	defer func() { _ = r.Close() }()
	lines := bufio.NewScanner(io.LimitReader(r, stderrMost))
	lines.Buffer(make([]byte, 0, 1024), stderrMost)
	for lines.Scan() {
		line := lines.Text()
		p.log.Debug("worker says", "line", line)
		if refusedMemory(line) {
			p.starved.Store(true)
		}
	}
	_, _ = io.Copy(io.Discard, r)
}

func (p *process) waitReady(ctx context.Context) (ready, error) {
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	select {
	case f, ok := <-p.frames:
		if !ok {
			return ready{}, fmt.Errorf("the worker ended before it was ready: %w", p.readErr)
		}
		var r ready
		if err := f.decode(frameReady, &r); err != nil {
			return ready{}, err
		}
		return r, nil
	case <-timer.C:
		return ready{}, fmt.Errorf("the worker was not ready after %s", startLimit)
	case <-ctx.Done():
		return ready{}, ctx.Err()
	}
}

// kill ends the process at once. The first cause is the one that counts.
func (p *process) kill(why Cause) {
	p.cause.CompareAndSwap(nil, &why)
	_ = p.cmd.Process.Kill()
}

// killedFor returns the cause for which the pool killed it, "" when it died by itself.
func (p *process) killedFor() Cause {
	if c := p.cause.Load(); c != nil {
		return *c
	}
	return ""
}

// stop lets the process end by itself, and kills it when it does not.
func (p *process) stop(why Cause) {
	p.cause.CompareAndSwap(nil, &why)
	_ = p.conn.CloseWrite()
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	for {
		select {
		case _, ok := <-p.frames:
			if ok {
				continue // whatever it still had to say
			}
			select {
			case <-p.dead:
			case <-timer.C:
				_ = p.cmd.Process.Kill()
			}
		case <-p.dead:
		case <-timer.C:
			_ = p.cmd.Process.Kill()
		}
		break
	}
	p.reap()
}

// reap waits for a process that ends, and for all goroutines that belong to it. It returns the CPU time that the
// process took since its last result.
func (p *process) reap() time.Duration {
	<-p.dead
	_ = p.conn.Close()
	p.readers.Wait()
	total := p.cmd.ProcessState.SystemTime() + p.cmd.ProcessState.UserTime()
	return max(total-p.cpuUsed, 0)
}
